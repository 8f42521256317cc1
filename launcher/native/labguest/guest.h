/* The lab's agent: process 1 of the guest. It sets the machine up, then runs programs as the host's frames ask. */
#ifndef NUMAPLAN_LAB_GUEST_H
#define NUMAPLAN_LAB_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Ports of the virtio serial device, as the host numbers them. */
enum port { PORT_CONTROL = 1, PORT_STDIN, PORT_STDOUT, PORT_STDERR };

/* Print to the console and power off; the host shows the console's end. */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void power_off(void);

/* boot.c */
void boot_load_modules(void);
void boot_enter_host_tree(void);
int boot_open_port(enum port);
bool write_text(const char *path, const char *text);

/* mark.c: commands to the counting plugin (../lab/marks.h) */
void mark_open(void);
void mark(unsigned slot);
void mark_with(unsigned slot, unsigned count, const uint64_t *numbers);

/* frame.c: a frame is a 4-byte little-endian length, then strings that each end in NUL, as pairs of key and value */
struct frame {
    char *data;
    size_t length, room;
};
bool frame_read(int fd, struct frame *);
const char *frame_next(const struct frame *, size_t *position);
void frame_clear(struct frame *);
void frame_add(struct frame *, const char *key, const char *value);
void frame_add_number(struct frame *, const char *key, long long value);
void frame_send(int fd, const struct frame *);

/* calibrate.c */
void calibrate(struct frame *ready); /* adds the node of each cpu */

/* job.c: what the host asks to be run */
struct job {
    char **argv, **environment;
    const char *program, *directory;
    const char *trace; /* where to write the trace of births of tasks; NULL: none */
    uid_t uid;
    gid_t gid;
    gid_t groups[64];
    size_t group_count;
    int cpus[1024]; /* the k-th thread made is put on the k-th of these; none: the kernel decides */
    size_t cpu_count;
    long long timeout_ms; /* 0: none */
    mode_t umask;
    bool interleave, exclude, use_stdin;
    bool balancing;
};
bool job_parse(const struct frame *, struct job *);
void job_free(struct job *);

/* start.c: start the job's program; -1 with *error set when it cannot be */
struct pipes {
    int in, out, err; /* our ends */
};
pid_t start_program(const struct job *, const struct frame *, struct pipes *, int *error);

/* run.c */
void run_job(const struct frame *, int control);

/* pin.c: put the program's threads on the job's cpus in the order in which they were made */
struct pids {
    pid_t *items;
    size_t count, room;
};
struct pinning {
    size_t next;           /* of the job's cpus */
    struct pids early;     /* born, and their creators not yet heard of */
    struct pids listening; /* stopped by a signal */
};
bool pin_follow(pid_t program); /* before it creates any task */
void pin_at_stop(struct pinning *, const struct job *, pid_t task, int status);
void pin_end(struct pinning *);

/* trace.c */
void trace_start(void);
void trace_stop(const char *target);

/* sampler.c: the virtual machine's memory sampler, for who asks at SAMPLER_SOCKET while a job runs */
#define SAMPLER_SOCKET "/dev/numaplan-lab"
void sampler_open(void);
void sampler_start(void); /* in a task of its own, which ends with the job */

/* tasks.c: from the kernel's address of a task to its ids */
struct known_task {
    uint64_t address;
    pid_t id; /* of a process's first thread */
};
struct task_ids {
    uint32_t tid, pid;
};
bool tasks_learn(const struct known_task *, size_t count); /* from some tasks; false: this kernel does not tell */
bool tasks_find(uint64_t address, struct task_ids *);
void tasks_forget(void); /* before samples of a later time */

/* stream.c: samples in the form in which `perf record -o -` writes them */
struct bytes {
    char *data;
    size_t used, room;
};
struct sample;
void stream_learn_nodes(void);
bool stream_begin(struct bytes *);
bool stream_sample(struct bytes *, const struct sample *, struct task_ids, int64_t clock_shift);
bool stream_lost(struct bytes *, uint64_t count);

/* vmstat.c */
struct vmstat {
    long long values[8];
};
void vmstat_read(struct vmstat *);
void vmstat_add_change(struct frame *, const struct vmstat *before, const struct vmstat *after);

#endif
