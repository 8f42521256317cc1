/* Memory that system calls fill for a thread (read, recv), or take from it (write, send): the kernel copies on that
 * thread's cpu. So it is there that a new page goes, it is from this thread that others take the lines of what was
 * read, and it is this one that takes those of what is written. No access is counted of it: who reads or writes a file
 * is often not who uses the data.
 */
#include "emulate.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

enum { AT_ONCE = 64, MOST_PIECES = 1024 }; /* pieces that are read at once, and that the kernel takes */

/* /dev/null takes nothing. */
static bool is_null(int file) {
    struct stat found;
    return fstat(file, &found) == 0 && S_ISCHR(found.st_mode) && found.st_rdev == makedev(1, 3);
}

static bool fills(enum em_syscall_kind kind) {
    return kind == CALL_READ || kind == CALL_READ_PIECES || kind == CALL_READ_MESSAGE;
}

static bool takes(enum em_syscall_kind kind) {
    return kind == CALL_WRITE || kind == CALL_WRITE_PIECES || kind == CALL_WRITE_MESSAGE;
}

void em_buffers_given(struct em_thread *t, enum em_syscall_kind kind, uint64_t a1, uint64_t a2, uint64_t a3) {
    bool told =
        fills(kind) ? em_options.uses || em_options.cached : takes(kind) && em_options.cached && !is_null((int)a1);
    t->buffers = (struct em_buffers){told ? kind : CALL_OTHER, a2, a3};
}

static void copied(struct em_thread *t, bool filled, uint64_t start, uint64_t bytes) {
    uint64_t end = start + bytes;
    if (bytes == 0 || end < start) return;
    for (uint64_t page = start >> PAGE_SHIFT; filled && page <= (end - 1) >> PAGE_SHIFT; page++)
        if (em_options.uses) em_use(t, page << PAGE_SHIFT);
    if (em_options.cached) em_lines_copied(t, start, end, filled);
}

static void copied_pieces(struct em_thread *t, bool filled, uint64_t list, uint64_t count, uint64_t bytes) {
    struct iovec pieces[AT_ONCE];
    for (uint64_t at = 0; at < count && at < MOST_PIECES && bytes; at += AT_ONCE) {
        size_t many = count - at < AT_ONCE ? count - at : AT_ONCE;
        if (em_memory_read(list + at * sizeof *pieces, pieces, many * sizeof *pieces) < many * sizeof *pieces) return;
        for (size_t i = 0; i < many && bytes; i++) {
            uint64_t part = pieces[i].iov_len < bytes ? pieces[i].iov_len : bytes;
            copied(t, filled, (uint64_t)(uintptr_t)pieces[i].iov_base, part);
            bytes -= part;
        }
    }
}

/* The thread has the turn, if threads take turns. The call's result is the bytes that were copied, and more where a
 * message was longer than the memory for it. */
void em_buffers_done(struct em_thread *t, int64_t result) {
    struct em_buffers call = t->buffers;
    struct msghdr message;
    t->buffers.kind = CALL_OTHER;
    if (result <= 0 || em_part_over() || (em_options.fair && !t->holding)) return;
    uint64_t bytes = (uint64_t)result;
    bool filled = fills(call.kind);
    if (call.kind == CALL_READ || call.kind == CALL_WRITE)
        copied(t, filled, call.address, bytes < call.count ? bytes : call.count);
    if (call.kind == CALL_READ_PIECES || call.kind == CALL_WRITE_PIECES)
        copied_pieces(t, filled, call.address, call.count, bytes);
    if ((call.kind == CALL_READ_MESSAGE || call.kind == CALL_WRITE_MESSAGE) &&
        em_memory_read(call.address, &message, sizeof message) == sizeof message)
        copied_pieces(t, filled, (uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen, bytes);
}
