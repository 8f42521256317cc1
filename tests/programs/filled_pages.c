/* Thread 0 lets the kernel fill PAGES pages, by the call that is named; then thread 1 reads each line of them twice.
 *
 *     filled_pages read|pread|recv|readv|preadv|preadv2|recvmsg|write
 *
 * `write` fills nothing: thread 1 is the first to touch these pages.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGES = 16, BYTES = PAGES << 12, LINE = 64 };

static char *memory;
static volatile int sum;

static void *reads(void *nothing) {
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < BYTES; i += LINE) sum += memory[i];
    return nothing;
}

static int source(void) {
    static char text[BYTES];
    int file = memfd_create("text", 0);
    memset(text, 'x', sizeof text);
    return file >= 0 && write(file, text, sizeof text) == BYTES && lseek(file, 0, SEEK_SET) == 0 ? file : -1;
}

static int sender(void) {
    static char text[BYTES];
    int ends[2], size = 4 * BYTES;
    memset(text, 'x', sizeof text);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return -1;
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    return send(ends[0], text, sizeof text, 0) == BYTES ? ends[1] : -1;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int file = !strncmp(how, "recv", 4) ? sender() : source();
    memory = mmap((void *)0x500000000000, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    struct iovec pieces[] = {{memory, 100}, {memory + 100, BYTES / 2}, {memory + 100 + BYTES / 2, BYTES / 2 - 100}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 3};
    ssize_t got = -1;
    if (!strcmp(how, "read")) got = read(file, memory, BYTES);
    if (!strcmp(how, "pread")) got = pread(file, memory, BYTES, 0);
    if (!strcmp(how, "recv")) got = recv(file, memory, BYTES, MSG_WAITALL);
    if (!strcmp(how, "readv")) got = readv(file, pieces, 3);
    if (!strcmp(how, "preadv")) got = preadv(file, pieces, 3, 0);
    if (!strcmp(how, "preadv2")) got = preadv2(file, pieces, 3, 0, 0);
    if (!strcmp(how, "recvmsg")) got = recvmsg(file, &message, MSG_WAITALL);
    if (!strcmp(how, "write")) got = pwrite(file, memory, BYTES, 0);
    if (memory == MAP_FAILED || got != BYTES) return 1;
    pthread_t thread;
    if (pthread_create(&thread, NULL, reads, NULL) || pthread_join(thread, NULL)) return 1;
    return 0;
}
