/* The lab's agent: process 1 of the guest. It sets the machine up, then runs programs as the host's frames ask. */
#ifndef NUMAPLAN_LAB_GUEST_H
#define NUMAPLAN_LAB_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Ports of the virtio serial device, as the host numbers them. */
enum guest_port { PORT_CONTROL = 1, PORT_STDIN, PORT_STDOUT, PORT_STDERR, PORT_ONLINE };

/* die.c: print to the console and power off; the host shows the console's end. */
_Noreturn void guest_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void guest_power_off(void);

/* boot.c */
void guest_load_modules(void);
void guest_enter_host_tree(void);
int guest_open_port(enum guest_port);
bool guest_write_text(const char *path, const char *text);

/* network.c */
void guest_start_network(void);

/* mark.c: commands to the counting plugin (../plugin/marks.h) */
void guest_mark_open(void);
void guest_mark(unsigned slot);
void guest_mark_with(unsigned slot, unsigned count, const uint64_t *numbers);

/* frame.c: a frame is a 4-byte little-endian length, then strings that each end in NUL, as pairs of key and value */
struct guest_frame {
    char *data;
    size_t length, room;
};
bool guest_frame_read(int fd, struct guest_frame *);
const char *guest_frame_next(const struct guest_frame *, size_t *position);
void guest_frame_clear(struct guest_frame *);
void guest_frame_add(struct guest_frame *, const char *key, const char *value);
void guest_frame_add_number(struct guest_frame *, const char *key, long long value);
void guest_frame_send(int fd, const struct guest_frame *);

/* calibrate.c */
void guest_calibrate(struct guest_frame *ready); /* adds the node of each cpu */

/* job.c: what the host asks to be run */
struct guest_job {
    char **argv, **environment;
    const char *program, *directory;
    const char *trace; /* where to write the trace of births of tasks; NULL: none */
    uid_t uid;
    gid_t gid;
    gid_t groups[64];
    size_t group_count;
    int cpus[1024]; /* the k-th thread made is put on the k-th of these; none: the kernel decides */
    size_t cpu_count;
    int first[1024]; /* where the first process starts; none: the kernel decides */
    size_t first_count;
    long long timeout_ms; /* 0: none */
    mode_t umask;
    bool interleave, exclude, use_stdin;
    bool balancing;
};
bool guest_job_parse(const struct guest_frame *, struct guest_job *);
void guest_job_free(struct guest_job *);

/* start.c: start the job's program; -1 with *error set when it cannot be */
struct guest_pipes {
    int in, out, err; /* our ends */
};
pid_t guest_start_program(const struct guest_job *, const struct guest_frame *, struct guest_pipes *, int *error);

/* temporary.c: folders in which the program, and not the host's file tree, can have sockets */
void guest_temporary_open(void);  /* before the program starts */
bool guest_temporary_enter(void); /* in its first process */
void guest_temporary_close(void); /* when all its processes have ended */

/* layer.c */
void guest_layer_apply(const char *layer, const char *below);

/* run.c */
void guest_run_job(const struct guest_frame *, int control);

/* affinity.c: what the program is told of its cpus where each of its threads is on one */
void guest_affinity_watch(void);           /* in its first process */
void guest_affinity_start(pid_t program);
void guest_affinity_born(pid_t task, pid_t creator);
bool guest_affinity_called(pid_t task);    /* it asks, or binds; true: wait for the kernel's answer */
void guest_affinity_answered(pid_t task);

/* pin.c: put the program's threads on the job's cpus in the order in which they were made */
struct guest_pids {
    pid_t *items;
    size_t count, room;
};
struct guest_pinning {
    size_t next;           /* of the job's cpus */
    struct guest_pids early;     /* born, and their creators not yet heard of */
    struct guest_pids listening; /* stopped by a signal */
};
bool guest_pin_follow(pid_t program); /* before it creates any task */
void guest_pin_at_stop(struct guest_pinning *, const struct guest_job *, pid_t task, int status);
void guest_pin_end(struct guest_pinning *);

/* trace.c */
void guest_trace_prepare(void); /* as it boots */
/* Pages moved since then; false where the kernel counts none. compacted: within their node. Both or none of one page. */
struct guest_moves {
    long long compacted, others;
};
bool guest_trace_moves(struct guest_moves *);
void guest_trace_start(void);
void guest_trace_stop(const char *target);

/* sampler.c: the virtual machine's memory sampler, for who asks at SAMPLER_SOCKET while a job runs */
#define SAMPLER_SOCKET "/dev/numaplan-lab"
void guest_sampler_open(void);
void guest_sampler_start(void); /* in a task of its own, which ends with the job */
struct guest_moment {
    int64_t guest_ns, host_ns; /* by CLOCK_MONOTONIC; 0: there is no sampler */
};
struct guest_moment guest_sampler_moment(void); /* one moment by the clocks of both */

/* tasks.c: from the kernel's address of a task to its ids */
struct guest_known_task {
    uint64_t address;
    pid_t id; /* of a process's first thread */
};
struct guest_task_ids {
    uint32_t tid, pid;
};
/* From some tasks; false: this kernel does not tell. */
bool guest_tasks_learn(const struct guest_known_task *, size_t count);
bool guest_tasks_find(uint64_t address, struct guest_task_ids *);
void guest_tasks_forget(void); /* before samples of a later time */

/* stream.c: samples in the form in which `perf record -o -` writes them */
struct guest_bytes {
    char *data;
    size_t used, room;
};
struct lab_sample;
bool guest_bytes_add(struct guest_bytes *, const void *data, size_t count);
void guest_stream_learn_nodes(void);
bool guest_stream_begin(struct guest_bytes *);
bool guest_stream_sample(struct guest_bytes *, const struct lab_sample *, struct guest_task_ids, int64_t clock_shift);
bool guest_stream_lost(struct guest_bytes *, uint64_t count);

/* remote.c: serves the host's loop, if there is one */
int guest_remote_open(void); /* the port to wait at */
void guest_remote_serve(void);

/* vmstat.c */
struct guest_vmstat {
    long long values[8];
    struct guest_moves moves;
};
void guest_vmstat_read(struct guest_vmstat *);
void guest_vmstat_add_change(struct guest_frame *, const struct guest_vmstat *before, const struct guest_vmstat *after);

#endif
