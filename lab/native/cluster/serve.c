/* Runs on each host but the first: starts what the first one's launcher asks for, and passes on what it says. */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER 65536

static int listen_at_port(void) {
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(SHELL_PORT_NUMBER)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    return fd >= 0 && !bind(fd, (struct sockaddr *)&any, sizeof any) && !listen(fd, SOMAXCONN) ? fd : -1;
}

_Noreturn static void become_command(const char *folder, const char *command, int out, int err) {
    int nothing = open("/dev/null", O_RDONLY);
    signal(SIGCHLD, SIG_DFL);
    dup2(nothing, 0);
    dup2(out, 1);
    dup2(err, 2);
    (void)!chdir(folder);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

/* False when there will be no more. */
static bool pass_on(int from, int to, enum shell_kind kind) {
    char data[BUFFER];
    ssize_t got = read(from, data, sizeof data);
    return (got > 0 && shell_send(to, kind, data, (size_t)got)) || (got < 0 && errno == EINTR);
}

/* As ssh: over when nobody can write to its streams any more. */
static void pass_streams_on(int out, int err, int to) {
    struct pollfd streams[] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        poll(streams, 2, -1);
        for (int i = 0; i < 2; i++)
            if (streams[i].revents && !pass_on(streams[i].fd, to, i ? SHELL_ERR : SHELL_OUT)) streams[i].fd = -1;
    }
}

static void serve_one(int peer) {
    struct shell_piece piece;
    int out[2], err[2], status = 0;
    char *folder = shell_receive(peer, &piece), *command = folder ? shell_receive(peer, &piece) : NULL;
    if (!command || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) _exit(1);
    pid_t pid = fork();
    if (pid == 0) become_command(folder, command, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    pass_streams_on(out[0], err[0], peer);
    waitpid(pid, &status, 0);
    unsigned char code = (unsigned char)(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    shell_send(peer, SHELL_END, &code, 1);
    _exit(0);
}

int shell_serve(void) {
    int port = listen_at_port();
    if (port < 0) {
        fprintf(stderr, "nlab: cannot listen at port " SHELL_PORT ": %s\n", strerror(errno));
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    while (1) {
        int peer = accept4(port, NULL, NULL, SOCK_CLOEXEC);
        if (peer >= 0 && fork() == 0) serve_one(peer);
        close(peer);
        while (waitpid(-1, NULL, WNOHANG) > 0);
    }
}
