#include "sampling.h"

#include "samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ASK_AGAIN 65536 /* accesses until the period is read again while nobody wants samples */
#define LEAST_RECORDS 64u

struct lab_sampling_countdown lab_sampling_countdowns[VCPUS_MAX];

static struct lab_samples_head *head; /* NULL: no sampler */
static struct vcpu {
    _Alignas(64) uint64_t task;
    uint64_t random;
    uint16_t cpu;
} vcpus[VCPUS_MAX];

bool lab_sampling_open(const char *path, unsigned count) {
    struct stat status;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && !fstat(fd, &status);
    uint64_t bytes = ok ? (uint64_t)status.st_size : 0, before = lab_samples_head_bytes(count);
    uint32_t records = LEAST_RECORDS;
    ok = ok && before + count * records * sizeof(struct lab_sample) <= bytes;
    void *memory = ok ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    if (memory == MAP_FAILED) return false;
    while (before + count * 2 * records * sizeof(struct lab_sample) <= bytes) records *= 2;
    for (unsigned v = 0; v < count; v++) {
        lab_sampling_countdowns[v].left = ASK_AGAIN;
        vcpus[v].random = v + 1;
        vcpus[v].cpu = (uint16_t)v;
    }
    head = memory;
    head->vcpus = count;
    head->ring_records = records;
    __atomic_store_n(&head->magic, SAMPLES_MAGIC, __ATOMIC_RELEASE);
    return true;
}

void lab_sampling_set_cpu(unsigned vcpu, unsigned cpu) { vcpus[vcpu].cpu = (uint16_t)cpu; }

void lab_sampling_switch(unsigned vcpu, uint64_t task) {
    vcpus[vcpu].task = task;
    if (head) __atomic_store_n(&head->rings[vcpu].switches, head->rings[vcpu].switches + 1, __ATOMIC_RELAXED);
}

uint64_t lab_now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

void lab_sampling_answer(unsigned vcpu) {
    if (!head) return;
    head->task = vcpus[vcpu].task;
    __atomic_store_n(&head->time_ns, lab_now_ns(), __ATOMIC_RELEASE);
}

/* Within a quarter of the period, so that no loop of the program keeps step with it (xorshift64). */
static int64_t jittered(struct vcpu *vcpu, uint64_t period) {
    vcpu->random ^= vcpu->random << 13;
    vcpu->random ^= vcpu->random >> 7;
    vcpu->random ^= vcpu->random << 17;
    return (int64_t)(period - period / 4 + vcpu->random % (period / 2 + 1));
}

static void put(unsigned number, const struct lab_sample *sample) {
    struct lab_samples_ring *ring = &head->rings[number];
    uint64_t at = ring->head;
    if (at - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) >= head->ring_records) {
        __atomic_store_n(&ring->lost, ring->lost + 1, __ATOMIC_RELAXED);
        return;
    }
    lab_samples_of(head, number)[at % head->ring_records] = *sample;
    __atomic_store_n(&ring->head, at + 1, __ATOMIC_RELEASE);
}

void lab_sampling_take(unsigned number, uint64_t address, uint64_t code, unsigned flags, unsigned node) {
    struct vcpu *vcpu = &vcpus[number];
    int64_t *left = &lab_sampling_countdowns[number].left;
    uint64_t period = head ? __atomic_load_n(&head->period, __ATOMIC_RELAXED) : 0;
    if (period == 0 || period > UINT32_MAX) {
        *left = ASK_AGAIN;
        return;
    }
    *left += jittered(vcpu, period);
    if (*left <= 0) *left = 1;
    put(number, &(struct lab_sample){.time_ns = lab_now_ns(),
                                     .task = vcpu->task,
                                     .address = address,
                                     .code = code,
                                     .period = (uint32_t)period,
                                     .cpu = vcpu->cpu,
                                     .node = (uint8_t)node,
                                     .flags = (uint8_t)flags});
}
