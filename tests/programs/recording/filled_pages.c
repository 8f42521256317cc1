/* Thread 0 lets the kernel fill PAGES pages, by the call that is named; then thread 1 reads each line of them twice.
 *
 *     filled_pages read|pread|recv|readv|preadv|preadv2|recvmsg|many|longer|half|write|refused
 *
 * many: readv of as many pieces as there are half pages and as many empty ones; longer: recv, cut off, of a message
 * longer than the pages; half: read of a file that has half as much. write fills nothing, and neither does a read that
 * is refused: thread 1 is the first to touch these pages.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGES = 64, BYTES = PAGES << 12, LINE = 64, HALVES = 2 * PAGES };

static char *memory;
static volatile int sum;

static void *reads(void *nothing) {
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < BYTES; i += LINE) sum += memory[i];
    return nothing;
}

static char text[2 * BYTES];

static int source(size_t bytes) {
    int file = memfd_create("text", 0);
    return file >= 0 && write(file, text, bytes) == (ssize_t)bytes && lseek(file, 0, SEEK_SET) == 0 ? file : -1;
}

static int sender(int type, size_t bytes) {
    int ends[2], size = 4 * BYTES;
    if (socketpair(AF_UNIX, type, 0, ends)) return -1;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return send(ends[0], text, bytes, 0) == (ssize_t)bytes ? ends[1] : -1;
}

/* Half pages, each after a piece of nothing. */
static ssize_t read_many(int file) {
    struct iovec pieces[2 * HALVES] = {{0}};
    for (int i = 0; i < HALVES; i++) pieces[2 * i + 1] = (struct iovec){memory + i * (BYTES / HALVES), BYTES / HALVES};
    return readv(file, pieces, 2 * HALVES);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    bool half = !strcmp(how, "half"), longer = !strcmp(how, "longer");
    memset(text, 'x', sizeof text);
    int file = !strncmp(how, "recv", 4) ? sender(SOCK_STREAM, BYTES)
               : longer                 ? sender(SOCK_DGRAM, 2 * BYTES)
                                        : source(half ? BYTES / 2 : BYTES);
    memory =
        mmap((void *)0x500000000000, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    struct iovec pieces[] = {{memory, 100}, {memory + 100, BYTES / 2}, {memory + 100 + BYTES / 2, BYTES / 2 - 100}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 3};
    ssize_t got = -1;
    if (!strcmp(how, "read") || half) got = read(file, memory, BYTES);
    if (!strcmp(how, "pread")) got = pread(file, memory, BYTES, 0);
    if (!strcmp(how, "recv")) got = recv(file, memory, BYTES, MSG_WAITALL);
    if (!strcmp(how, "readv")) got = readv(file, pieces, 3);
    if (!strcmp(how, "preadv")) got = preadv(file, pieces, 3, 0);
    if (!strcmp(how, "preadv2")) got = preadv2(file, pieces, 3, 0, 0);
    if (!strcmp(how, "recvmsg")) got = recvmsg(file, &message, MSG_WAITALL);
    if (!strcmp(how, "many")) got = read_many(file);
    if (longer) got = recv(file, memory, BYTES, MSG_TRUNC) / 2;
    if (!strcmp(how, "write")) got = pwrite(file, memory, BYTES, 0);
    if (!strcmp(how, "refused")) got = read(open("/dev/null", O_WRONLY), memory, BYTES) < 0 ? BYTES : -1;
    if (memory == MAP_FAILED || got != (half ? BYTES / 2 : BYTES)) return 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, reads, NULL) || pthread_join(thread, NULL)) return 1;
    return 0;
}
