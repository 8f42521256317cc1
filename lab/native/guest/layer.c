/* What a program did to an overlay, done to the files below it. */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define OPAQUE "trusted.overlay.opaque" /* of a folder that replaces the one below */
#define CHUNK (256u << 10)

static void apply(int from, int to);

static int open_folder(int parent, const char *name) {
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static const char *next_name(DIR *folder) {
    struct dirent *entry;
    while ((entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return entry->d_name;
    return NULL;
}

static void remove_tree(int parent, const char *name) {
    const char *inner;
    int fd = unlinkat(parent, name, 0) ? open_folder(parent, name) : -1;
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (!folder) return;
    while ((inner = next_name(folder))) remove_tree(fd, inner);
    closedir(folder);
    unlinkat(parent, name, AT_REMOVEDIR);
}

static void copy_attributes(int fd, const struct stat *status) {
    (void)!fchown(fd, status->st_uid, status->st_gid);
    fchmod(fd, status->st_mode & 07777);
    futimens(fd, (struct timespec[]){status->st_atim, status->st_mtim});
}

static bool write_all(int fd, const char *data, ssize_t bytes, off_t at) {
    for (ssize_t done = 0, put; done < bytes; done += put)
        if ((put = pwrite(fd, data + done, (size_t)(bytes - done), at + done)) <= 0) return false;
    return true;
}

/* Holes stay holes. */
static bool copy_content(int from, int to, off_t bytes) {
    static char data[CHUNK];
    ssize_t got;
    off_t at = 0;
    if (ftruncate(to, 0) || ftruncate(to, bytes)) return false;
    while (at < bytes && (at = lseek(from, at, SEEK_DATA)) >= 0) {
        off_t end = lseek(from, at, SEEK_HOLE);
        for (; at < end; at += got) {
            size_t wanted = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
            if ((got = pread(from, data, wanted, at)) <= 0 || !write_all(to, data, got, at)) return false;
        }
    }
    return true;
}

/* The file that is there stays the same one, if it is a file and can be written. */
static void apply_file(int from, int to, const char *name, const struct stat *status) {
    const int how = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int source = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), target = openat(to, name, how, 0600);
    if (target < 0) {
        remove_tree(to, name);
        target = openat(to, name, how, 0600);
    }
    if (target < 0 || !copy_content(source, target, status->st_size))
        fprintf(stderr, "numaplan lab: %s could not be written back: %s\n", name, strerror(errno));
    copy_attributes(target, status);
    close(source);
    close(target);
}

static void apply_link(int from, int to, const char *name) {
    char text[4096];
    ssize_t length = readlinkat(from, name, text, sizeof text - 1);
    if (length < 0) return;
    text[length] = '\0';
    remove_tree(to, name);
    (void)!symlinkat(text, to, name);
}

static void apply_folder(int from, int to, const char *name, const struct stat *status) {
    struct stat below;
    int source = open_folder(from, name);
    bool there = !fstatat(to, name, &below, AT_SYMLINK_NOFOLLOW);
    if (there && (!S_ISDIR(below.st_mode) || fgetxattr(source, OPAQUE, NULL, 0) > 0)) remove_tree(to, name);
    mkdirat(to, name, 0700);
    int target = open_folder(to, name);
    if (target >= 0) {
        apply(source, target);
        copy_attributes(target, status);
    }
    close(source);
    close(target);
}

static void apply(int from, int to) {
    const char *name;
    struct stat status;
    DIR *folder = fdopendir(dup(from));
    while (folder && (name = next_name(folder))) {
        if (fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW)) continue;
        if (S_ISREG(status.st_mode)) apply_file(from, to, name, &status);
        else if (S_ISDIR(status.st_mode)) apply_folder(from, to, name, &status);
        else if (S_ISLNK(status.st_mode)) apply_link(from, to, name);
        else if (S_ISCHR(status.st_mode) && status.st_rdev == 0) remove_tree(to, name); /* it was removed */
    }
    if (folder) closedir(folder);
}

void guest_layer_apply(const char *layer, const char *below) {
    int from = open_folder(AT_FDCWD, layer), to = open(below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from >= 0 && to >= 0) apply(from, to);
    close(from);
    close(to);
}
