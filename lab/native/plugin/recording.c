#include "recording.h"

#include "sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFERED 1024u

bool lab_recording;
struct lab_recording_gap lab_recording_gaps[VCPUS_MAX];

static uint64_t period;
static int problem; /* errno of the first write that failed */
static struct vcpu {
    _Alignas(64) struct lab_recorded_access *buffer;
    uint64_t random, lost;
    unsigned used;
    uint16_t cpu;
    int file;
} vcpus[VCPUS_MAX];
static unsigned vcpu_count;

bool lab_recording_option(const char *name, const char *value) {
    if (strcmp(name, "record")) return false;
    return lab_recording = (period = strtoull(value, NULL, 10)) > 0;
}

/* Up to twice the period, so that no loop of the program keeps step with it; the period in the mean. */
static int64_t next_gap(struct vcpu *vcpu) {
    int64_t gap = 1;
    for (int draws = 0; draws < 2 && period > 1; draws++) gap += (int64_t)(lab_random(&vcpu->random) % period);
    return gap;
}

static bool open_one(struct vcpu *vcpu, const char *directory, unsigned number) {
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/recorded-%u", directory, number);
    vcpu->file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    vcpu->buffer = malloc(BUFFERED * sizeof *vcpu->buffer);
    vcpu->random = number + 1;
    lab_recording_gaps[number].left = next_gap(vcpu);
    return vcpu->file >= 0 && vcpu->buffer;
}

bool lab_recording_start(const char *directory, unsigned count) {
    bool ok = true;
    for (vcpu_count = 0; ok && vcpu_count < count; vcpu_count++)
        ok = open_one(&vcpus[vcpu_count], directory, vcpu_count);
    return ok;
}

void lab_recording_set_cpu(unsigned vcpu, unsigned cpu) { vcpus[vcpu].cpu = (uint16_t)cpu; }

/* After a failure nothing more is written: a file with a hole would be no recording. */
static void flush(struct vcpu *vcpu) {
    const char *at = (const char *)vcpu->buffer;
    for (size_t left = vcpu->used * sizeof *vcpu->buffer; left > 0 && !problem;) {
        ssize_t wrote = write(vcpu->file, at, left);
        if (wrote < 0 && errno != EINTR) problem = errno;
        if (wrote > 0) at += wrote, left -= (size_t)wrote;
    }
    if (problem) vcpu->lost += vcpu->used;
    vcpu->used = 0;
}

void lab_recording_take(unsigned number, const struct lab_recorded_access *access, unsigned offset, bool store) {
    struct vcpu *vcpu = &vcpus[number];
    struct lab_recorded_access *next = &vcpu->buffer[vcpu->used];
    *next = *access;
    next->time_ns = lab_now_ns();
    next->cpu = vcpu->cpu;
    next->address += offset;
    next->physical = lab_nodes_physical(access->physical + offset);
    next->store = store;
    if (++vcpu->used == BUFFERED) flush(vcpu);
    lab_recording_gaps[number].left = next_gap(vcpu);
}

void lab_recording_finish(FILE *status, int failed) {
    uint64_t lost = 0;
    for (unsigned v = 0; v < vcpu_count; v++) {
        flush(&vcpus[v]);
        lost += vcpus[v].lost;
        close(vcpus[v].file);
        free(vcpus[v].buffer);
        vcpus[v] = (struct vcpu){.cpu = vcpus[v].cpu};
    }
    vcpu_count = 0;
    fprintf(status, "error %d lost %llu\n", problem ? problem : failed, (unsigned long long)lost);
}
