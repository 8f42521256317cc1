/* Marked memory that the program hands to the kernel, which would answer EFAULT: touched before. And memory that goes. */
#include "next_touch.h"
#include "preload.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

static void touch_vectors(const struct iovec *vectors, size_t count) {
    nt_touch(vectors, count * sizeof *vectors);
    for (size_t i = 0; i < count; i++) nt_touch(vectors[i].iov_base, vectors[i].iov_len);
}

static void touch_message(const struct msghdr *message) {
    nt_touch(message, sizeof *message);
    nt_touch(message->msg_name, message->msg_namelen);
    nt_touch(message->msg_control, message->msg_controllen);
    touch_vectors(message->msg_iov, message->msg_iovlen);
}

static void touch_items(const void *items, size_t size, size_t count) { nt_touch(items, size * count); }

#undef fread_unlocked
#undef fwrite_unlocked
#define UNPACK(...) __VA_ARGS__

/* A call as libc has it, after `touch` where anything is marked. */
#define TOUCHING(type, name, parameters, arguments, touch) \
    type name(UNPACK parameters) {                         \
        NP_REAL(type, #name, UNPACK parameters);           \
        if (nt_any()) touch;                               \
        return real(UNPACK arguments);                     \
    }

TOUCHING(ssize_t, read, (int file, void *to, size_t bytes), (file, to, bytes), nt_touch(to, bytes))
TOUCHING(ssize_t, pread, (int file, void *to, size_t bytes, off_t at), (file, to, bytes, at), nt_touch(to, bytes))
TOUCHING(ssize_t, pread64, (int file, void *to, size_t bytes, off64_t at), (file, to, bytes, at), nt_touch(to, bytes))
TOUCHING(ssize_t, write, (int file, const void *from, size_t bytes), (file, from, bytes), nt_touch(from, bytes))
TOUCHING(ssize_t, pwrite, (int file, const void *from, size_t bytes, off_t at), (file, from, bytes, at),
         nt_touch(from, bytes))
TOUCHING(ssize_t, pwrite64, (int file, const void *from, size_t bytes, off64_t at), (file, from, bytes, at),
         nt_touch(from, bytes))
TOUCHING(ssize_t, readv, (int file, const struct iovec *to, int count), (file, to, count),
         touch_vectors(to, count > 0 ? (size_t)count : 0))
TOUCHING(ssize_t, writev, (int file, const struct iovec *from, int count), (file, from, count),
         touch_vectors(from, count > 0 ? (size_t)count : 0))
TOUCHING(ssize_t, preadv, (int file, const struct iovec *to, int count, off_t at), (file, to, count, at),
         touch_vectors(to, count > 0 ? (size_t)count : 0))
TOUCHING(ssize_t, pwritev, (int file, const struct iovec *from, int count, off_t at), (file, from, count, at),
         touch_vectors(from, count > 0 ? (size_t)count : 0))
TOUCHING(ssize_t, recv, (int socket, void *to, size_t bytes, int flags), (socket, to, bytes, flags),
         nt_touch(to, bytes))
TOUCHING(ssize_t, recvfrom,
         (int socket, void *restrict to, size_t bytes, int flags, struct sockaddr *restrict who,
          socklen_t *restrict size),
         (socket, to, bytes, flags, who, size), nt_touch(to, bytes))
TOUCHING(ssize_t, recvmsg, (int socket, struct msghdr *message, int flags), (socket, message, flags),
         touch_message(message))
TOUCHING(ssize_t, send, (int socket, const void *from, size_t bytes, int flags), (socket, from, bytes, flags),
         nt_touch(from, bytes))
TOUCHING(ssize_t, sendto,
         (int socket, const void *from, size_t bytes, int flags, const struct sockaddr *who, socklen_t size),
         (socket, from, bytes, flags, who, size), nt_touch(from, bytes))
TOUCHING(ssize_t, sendmsg, (int socket, const struct msghdr *message, int flags), (socket, message, flags),
         touch_message(message))
/* Large pieces go past the stream's buffer. */
TOUCHING(size_t, fread, (void *restrict to, size_t size, size_t count, FILE *restrict stream),
         (to, size, count, stream), touch_items(to, size, count))
TOUCHING(size_t, fread_unlocked, (void *restrict to, size_t size, size_t count, FILE *restrict stream),
         (to, size, count, stream), touch_items(to, size, count))
TOUCHING(size_t, fwrite, (const void *restrict from, size_t size, size_t count, FILE *restrict stream),
         (from, size, count, stream), touch_items(from, size, count))
TOUCHING(size_t, fwrite_unlocked, (const void *restrict from, size_t size, size_t count, FILE *restrict stream),
         (from, size, count, stream), touch_items(from, size, count))
/* The same as compilers call them under _FORTIFY_SOURCE. */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
ssize_t __recv_chk(int, void *, size_t, size_t, int);
size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
TOUCHING(ssize_t, __read_chk, (int file, void *to, size_t bytes, size_t room), (file, to, bytes, room),
         nt_touch(to, bytes))
TOUCHING(ssize_t, __pread64_chk, (int file, void *to, size_t bytes, off64_t at, size_t room),
         (file, to, bytes, at, room), nt_touch(to, bytes))
TOUCHING(ssize_t, __recv_chk, (int socket, void *to, size_t bytes, size_t room, int flags),
         (socket, to, bytes, room, flags), nt_touch(to, bytes))
TOUCHING(size_t, __fread_chk, (void *to, size_t room, size_t size, size_t count, FILE *stream),
         (to, room, size, count, stream), touch_items(to, size, count))

/* Rights that the program sets count from now on. */
TOUCHING(int, mprotect, (void *start, size_t bytes, int protection), (start, bytes, protection),
         nt_release((uintptr_t)start, (uintptr_t)start + bytes))

void nt_leaving(uintptr_t address, size_t bytes) {
    uintptr_t end;
    if (!nt_any() || __builtin_add_overflow(address, bytes, &end)) return;
    int saved = errno;
    nt_release(address, end);
    errno = saved;
}

/* An allocator may unmap a large block behind our back, or give it to others. */
void nt_freeing(void *block) {
    if (!nt_any()) return;
    size_t bytes = malloc_usable_size(block);
    if (bytes >= NP_LARGE) nt_leaving((uintptr_t)block, bytes);
}
