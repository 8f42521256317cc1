#include "cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define LONGEST (1u << 22)

bool shell_write(int fd, const void *data, size_t bytes) {
    for (const char *at = data; bytes > 0;) {
        ssize_t put = write(fd, at, bytes);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

static bool read_all(int fd, void *data, size_t bytes) {
    for (char *at = data; bytes > 0;) {
        ssize_t got = read(fd, at, bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

bool shell_send(int fd, enum shell_kind kind, const void *data, size_t bytes) {
    struct shell_piece piece = {.kind = (unsigned char)kind, .bytes = (unsigned)bytes};
    return shell_write(fd, &piece, sizeof piece) && shell_write(fd, data, bytes);
}

char *shell_receive(int fd, struct shell_piece *piece) {
    char *data = NULL;
    bool ok = read_all(fd, piece, sizeof *piece) && piece->bytes <= LONGEST && (data = calloc(1, piece->bytes + 1)) &&
              read_all(fd, data, piece->bytes);
    if (!ok) free(data);
    return ok ? data : NULL;
}
