/* The program's memory, as the plugin reads and writes it: an address that is none is left to the kernel to refuse. */
#include "emulate.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

static bool base_known;
static uint64_t base; /* the host's address of the program's 0 */

/* It is seen by an instruction that is translated. */
void em_memory_see(uint64_t guest, const void *at_host) {
    if (base_known || !at_host) return;
    base = (uint64_t)(uintptr_t)at_host - guest;
    __atomic_store_n(&base_known, true, __ATOMIC_RELEASE);
}

bool em_memory_seen(void) { return __atomic_load_n(&base_known, __ATOMIC_ACQUIRE); }

uint64_t em_memory_guest(uint64_t at_host) { return at_host - base; }

/* By a file where the call is forbidden, as the sandbox of a container may. */
size_t em_memory_read(uint64_t address, void *bytes, size_t size) {
    struct iovec to = {bytes, size}, from = {(void *)(uintptr_t)(address + base), size};
    ssize_t got = em_memory_seen() ? process_vm_readv(getpid(), &to, 1, &from, 1, 0) : 0;
    if (got >= 0) return (size_t)got;
    int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    got = file < 0 ? -1 : pread(file, bytes, size, (off_t)(address + base));
    if (file >= 0) close(file);
    return got < 0 ? 0 : (size_t)got;
}

bool em_memory_write(uint64_t address, const void *bytes, size_t size) {
    int file = em_memory_seen() ? open("/proc/self/mem", O_RDWR | O_CLOEXEC) : -1;
    ssize_t put = file < 0 ? -1 : pwrite(file, bytes, size, (off_t)(address + base));
    if (file >= 0) close(file);
    return put == (ssize_t)size;
}
