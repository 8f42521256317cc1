/*
 * /tmp and /run, where programs make sockets, which the host's file tree takes none of (QEMU's 9p): for the program they
 * are overlays, the host's files below and empty memory above, in a mount namespace of its own. The agent's stay the
 * host's. What the program left in the memory goes to the host when all its processes have ended.
 */
#include "guest.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYERS "/dev/numaplan-layers"
#define OPTIONS "redirect_dir=off,index=off,metacopy=off"

static const char *const folders[] = {"tmp", "run"};
#define FOLDERS (sizeof folders / sizeof *folders)
#define LONGEST 128

static void layer_of(const char *folder, const char *which, char path[LONGEST]) {
    snprintf(path, LONGEST, LAYERS "/%s-%s", folder, which);
}

void guest_temporary_open(void) {
    char own[LONGEST], upper[LONGEST], work[LONGEST];
    struct stat status;
    mkdir(LAYERS, 0700);
    if (mount("layers", LAYERS, "tmpfs", 0, "mode=0700")) guest_die("mount " LAYERS ": %s", strerror(errno));
    for (size_t i = 0; i < FOLDERS; i++) {
        snprintf(own, sizeof own, "/%s", folders[i]);
        layer_of(folders[i], "upper", upper);
        layer_of(folders[i], "work", work);
        if (stat(own, &status)) continue;
        mkdir(work, 0700);
        mkdir(upper, 0700); /* what the folder is to look like */
        (void)!chown(upper, status.st_uid, status.st_gid);
        chmod(upper, status.st_mode & 07777);
    }
}

/* A kernel without overlays leaves them as they are on the host. */
bool guest_temporary_enter(void) {
    char own[LONGEST], upper[LONGEST], work[LONGEST], options[4 * LONGEST];
    if (unshare(CLONE_NEWNS)) return false;
    for (size_t i = 0; i < FOLDERS; i++) {
        snprintf(own, sizeof own, "/%s", folders[i]);
        layer_of(folders[i], "upper", upper);
        layer_of(folders[i], "work", work);
        snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s,workdir=%s," OPTIONS, own, upper, work);
        (void)!mount("overlay", own, "overlay", 0, options);
    }
    return true;
}

void guest_temporary_close(void) {
    char own[LONGEST], upper[LONGEST];
    for (size_t i = 0; i < FOLDERS; i++) {
        snprintf(own, sizeof own, "/%s", folders[i]);
        layer_of(folders[i], "upper", upper);
        guest_layer_apply(upper, own);
    }
    umount2(LAYERS, MNT_DETACH);
}
