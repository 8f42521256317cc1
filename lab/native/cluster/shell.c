/* The remote shell that launchers call. A host may still be starting: it is called until it answers. */
#include "cluster.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 120

static int connect_to(const struct addrinfo *address) {
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen)) {
        close(fd);
        return -1;
    }
    return fd;
}

static int reach(const char *host) {
    struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
    const struct timespec pause = {.tv_nsec = 20000000};
    struct timespec now;
    int fd;
    int error = getaddrinfo(host, SHELL_PORT, &wanted, &found);
    if (error) {
        fprintf(stderr, "nlab: host %s: %s\n", host, gai_strerror(error));
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec + PATIENCE_S; (fd = connect_to(found)) < 0 && now.tv_sec < end;) {
        nanosleep(&pause, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    if (fd < 0) fprintf(stderr, "nlab: host %s: %s\n", host, strerror(errno));
    freeaddrinfo(found);
    return fd;
}

static bool ask(int fd, int count, char **words) {
    size_t room = 1;
    for (int i = 0; i < count; i++) room += strlen(words[i]) + 1;
    char *command = calloc(1, room), *folder = getcwd(NULL, 0), *end = command;
    for (int i = 0; command && i < count; i++) end += sprintf(end, "%s%s", i ? " " : "", words[i]);
    bool ok = command && folder && shell_send(fd, SHELL_FOLDER, folder, strlen(folder)) &&
              shell_send(fd, SHELL_COMMAND, command, strlen(command));
    free(folder);
    free(command);
    return ok;
}

int shell_call(int count, char **words) {
    struct shell_piece piece;
    char *data;
    int code = -1;
    while (count > 0 && words[0][0] == '-') count--, words++;
    if (count < 2) {
        fprintf(stderr, "nlab: give a host and a command\n");
        return 2;
    }
    int fd = reach(words[0]);
    if (fd < 0 || !ask(fd, count - 1, words + 1)) return 255;
    while (code < 0 && (data = shell_receive(fd, &piece))) {
        if (piece.kind == SHELL_END) code = (unsigned char)data[0];
        else shell_write(piece.kind == SHELL_OUT ? 1 : 2, data, piece.bytes);
        free(data);
    }
    return code < 0 ? 255 : code;
}
