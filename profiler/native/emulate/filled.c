/* Memory that system calls fill for a thread (read, recv): the kernel touches it on that thread's cpu, so it is there
 * that a new page goes. No access is counted of it: who has read a file is often not who uses it.
 */
#include "emulate.h"

#include <sys/socket.h>
#include <sys/uio.h>

enum { AT_ONCE = 64, MOST_PIECES = 1024 }; /* pieces that are read at once, and that the kernel takes */

void em_filling(struct em_thread *t, enum em_syscall_kind kind, uint64_t a2, uint64_t a3) {
    bool fills = kind == CALL_READ || kind == CALL_READ_PIECES || kind == CALL_READ_MESSAGE;
    bool told = em_options.uses || em_options.cached;
    t->filling = (struct em_filling){fills && told ? kind : CALL_OTHER, a2, a3};
}

static void touch(struct em_thread *t, uint64_t start, uint64_t bytes) {
    uint64_t end = start + bytes;
    if (bytes == 0 || end < start) return;
    for (uint64_t page = start >> PAGE_SHIFT; page <= (end - 1) >> PAGE_SHIFT; page++) {
        if (em_options.uses) em_use(t, page << PAGE_SHIFT);
        if (!em_options.cached) continue;
        caches_lock();
        caches_page(&t->core, page << (PAGE_SHIFT - LINE_SHIFT));
        caches_unlock();
    }
}

static void touch_pieces(struct em_thread *t, uint64_t list, uint64_t count, uint64_t bytes) {
    struct iovec pieces[AT_ONCE];
    for (uint64_t at = 0; at < count && at < MOST_PIECES && bytes; at += AT_ONCE) {
        size_t many = count - at < AT_ONCE ? count - at : AT_ONCE;
        if (em_memory_read(list + at * sizeof *pieces, pieces, many * sizeof *pieces) < many * sizeof *pieces) return;
        for (size_t i = 0; i < many && bytes; i++) {
            uint64_t part = pieces[i].iov_len < bytes ? pieces[i].iov_len : bytes;
            touch(t, (uint64_t)(uintptr_t)pieces[i].iov_base, part);
            bytes -= part;
        }
    }
}

/* The thread has the turn, if threads take turns. The call's result is the bytes that it has filled, and more where a
 * message was longer than the memory for it. */
void em_filled(struct em_thread *t, int64_t result) {
    struct em_filling call = t->filling;
    struct msghdr message;
    t->filling.kind = CALL_OTHER;
    if (result <= 0 || em_part_over() || (em_options.fair && !t->holding)) return;
    uint64_t bytes = (uint64_t)result;
    if (call.kind == CALL_READ) touch(t, call.address, bytes < call.count ? bytes : call.count);
    if (call.kind == CALL_READ_PIECES) touch_pieces(t, call.address, call.count, bytes);
    if (call.kind == CALL_READ_MESSAGE && em_memory_read(call.address, &message, sizeof message) == sizeof message)
        touch_pieces(t, (uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen, bytes);
}
