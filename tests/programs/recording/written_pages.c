/* Thread 1 writes each line of PAGES pages; then thread 0 has the kernel take them, by the call that is named.
 *
 *     written_pages write|pwrite|send|writev|pwritev|pwritev2|sendmsg|half|refused|null
 *
 * half: a write of half of them; refused: one to where nothing can be written; null: one to /dev/null,
 * which takes nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGES = 64, BYTES = PAGES << 12, LINE = 64 };

static char *memory;

static void *writes(void *nothing) {
    for (int i = 0; i < BYTES; i += LINE) memory[i] = 1;
    return nothing;
}

static int sender(void) {
    int ends[2], size = 4 * BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return -1;
    return setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size) ? -1 : ends[0];
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    int file = !strncmp(how, "send", 4) ? sender() : memfd_create("text", 0);
    memory =
        mmap((void *)0x500000000000, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    pthread_t thread;
    if (memory == MAP_FAILED || pthread_create(&thread, NULL, writes, NULL) || pthread_join(thread, NULL)) return 1;
    struct iovec pieces[] = {{memory, 100}, {memory + 100, BYTES / 2}, {memory + 100 + BYTES / 2, BYTES / 2 - 100}};
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 3};
    ssize_t put = -1, wanted = BYTES;
    if (!strcmp(how, "write")) put = write(file, memory, BYTES);
    if (!strcmp(how, "pwrite")) put = pwrite(file, memory, BYTES, 0);
    if (!strcmp(how, "send")) put = send(file, memory, BYTES, 0);
    if (!strcmp(how, "writev")) put = writev(file, pieces, 3);
    if (!strcmp(how, "pwritev")) put = pwritev(file, pieces, 3, 0);
    if (!strcmp(how, "pwritev2")) put = pwritev2(file, pieces, 3, 0, 0);
    if (!strcmp(how, "sendmsg")) put = sendmsg(file, &message, 0);
    if (!strcmp(how, "half")) put = write(file, memory, wanted = BYTES / 2);
    if (!strcmp(how, "refused")) put = write(open("/dev/null", O_RDONLY), memory, BYTES), wanted = -1;
    if (!strcmp(how, "null")) put = write(open("/dev/null", O_WRONLY), memory, BYTES);
    return put != wanted;
}
