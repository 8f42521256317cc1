/* Run one job: move its streams, wait for its end, count from its start to its end, report. */
#include "../plugin/marks.h"
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (256u << 10)
#define PULSE_MS 5000

/* One direction of one stream. */
struct pump {
    int source, target; /* -1: closed */
    size_t begin, end;
    long long total;
    char data[BUFFER];
};

static struct pump to_program, from_out, from_err;
static int ports[3] = {-1, -1, -1};
static int children = -1; /* tells of children's ends */

static long long now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void pump_open(struct pump *pump, int source, int target) {
    pump->source = source;
    pump->target = target;
    pump->begin = pump->end = 0;
    pump->total = 0;
    if (source >= 0) fcntl(source, F_SETFL, fcntl(source, F_GETFL) | O_NONBLOCK);
    if (target >= 0) fcntl(target, F_SETFL, fcntl(target, F_GETFL) | O_NONBLOCK);
}

static void pump_fill(struct pump *pump) {
    if (pump->source < 0 || pump->end > pump->begin) return;
    ssize_t got = read(pump->source, pump->data, sizeof pump->data);
    pump->begin = 0;
    pump->end = got > 0 ? (size_t)got : 0;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) pump->source = -1;
}

static void pump_drain(struct pump *pump) {
    while (pump->target >= 0 && pump->end > pump->begin) {
        ssize_t put = write(pump->target, pump->data + pump->begin, pump->end - pump->begin);
        if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (put < 0) pump->begin = pump->end;
        else {
            pump->begin += (size_t)put;
            pump->total += put;
        }
        if (put < 0 && errno == EPIPE) pump->source = -1;
    }
}

static struct pollfd pump_wants(const struct pump *pump) {
    if (pump->end > pump->begin) return (struct pollfd){.fd = pump->target, .events = POLLOUT};
    return (struct pollfd){.fd = pump->source, .events = POLLIN};
}

static void pump_step(struct pump *pump) {
    pump_drain(pump);
    pump_fill(pump);
    pump_drain(pump);
}

/* Whatever is in the pipes when the program has ended still belongs to its output. */
static void pump_finish(struct pump *pump) {
    do {
        pump_step(pump);
        if (pump->end > pump->begin) poll(&(struct pollfd){.fd = pump->target, .events = POLLOUT}, 1, PULSE_MS);
        else if (pump->source >= 0 && poll(&(struct pollfd){.fd = pump->source, .events = POLLIN}, 1, 0) <= 0)
            pump->source = -1;
    } while (pump->source >= 0 || pump->end > pump->begin);
}

/* Closes the program's standard input once the host's has ended and all of it was passed on. */
static void finish_input(int *input) {
    if (*input >= 0 && to_program.source < 0 && to_program.end == to_program.begin) {
        close(*input);
        *input = -1;
        to_program.target = -1;
    }
}

/* __WALL: threads too, of programs whose births are followed. */
static bool reap(pid_t program, struct guest_pinning *pinning, const struct guest_job *job, int *status) {
    int other;
    pid_t pid;
    bool ended = false;
    while ((pid = waitpid(-1, &other, WNOHANG | __WALL)) > 0)
        if (WIFSTOPPED(other)) {
            guest_pin_at_stop(pinning, job, pid, other);
        } else if (pid == program) {
            *status = other;
            ended = true;
        }
    return ended;
}

/* The host tells, while a program runs, of a signal for it, or that nobody reads one of its streams any more: neither
 * do we then, and the program learns it as it would have there. */
static void heed(int control, pid_t program, struct guest_pipes *ends) {
    struct guest_frame frame = {0};
    size_t position = 0;
    const char *key, *value;
    if (!guest_frame_read(control, &frame)) guest_die("the host closed the control port");
    while ((key = guest_frame_next(&frame, &position)) && (value = guest_frame_next(&frame, &position))) {
        if (!strcmp(key, "signal")) kill(-program, atoi(value));
        int *end = strcmp(value, "stderr") ? &ends->out : &ends->err;
        if (strcmp(key, "closed") || *end < 0) continue;
        (end == &ends->err ? &from_err : &from_out)->source = -1;
        close(*end);
        *end = -1;
    }
    guest_frame_clear(&frame);
}

/* Not longer than PULSE_MS, so that the host can tell a guest in which all sleep from one that is dead. */
static int wait_ms(const struct guest_job *job, long long deadline) {
    long long left = deadline - now_ms();
    return job->timeout_ms == 0 || left > PULSE_MS ? PULSE_MS : left < 0 ? 0 : (int)left;
}

/* Moves data until the program ends or its time is over; returns whether it ran out of time. */
static bool attend(pid_t program, const struct guest_job *job, struct guest_pipes *ends, int control, int *status) {
    struct guest_pinning pinning = {.next = 1};
    long long deadline = now_ms() + job->timeout_ms;
    bool late = false;
    pump_open(&to_program, ends->in >= 0 ? ports[0] : -1, ends->in);
    pump_open(&from_out, ends->out, ports[1]);
    pump_open(&from_err, ends->err, ports[2]);
    while (!reap(program, &pinning, job, status)) {
        struct pollfd wants[] = {{.fd = children, .events = POLLIN},
                                 {.fd = control, .events = POLLIN},
                                 pump_wants(&to_program),
                                 pump_wants(&from_out),
                                 pump_wants(&from_err)};
        poll(wants, sizeof wants / sizeof *wants, wait_ms(job, deadline));
        struct signalfd_siginfo info;
        (void)!read(children, &info, sizeof info);
        if (wants[1].revents) heed(control, program, ends);
        pump_step(&to_program);
        pump_step(&from_out);
        pump_step(&from_err);
        finish_input(&ends->in);
        if (job->timeout_ms && !late && now_ms() >= deadline) {
            late = true;
            kill(-1, SIGKILL);
        }
    }
    guest_pin_end(&pinning);
    return late;
}

static void close_pipes(const struct guest_pipes *ends) {
    if (ends->in >= 0) close(ends->in);
    if (ends->out >= 0) close(ends->out);
    if (ends->err >= 0) close(ends->err);
}

static void close_streams(void) {
    kill(-1, SIGKILL); /* what the program left running */
    while (waitpid(-1, NULL, __WALL) > 0);
    pump_finish(&from_out);
    pump_finish(&from_err);
}

static int watch_children(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void add_moment(struct guest_frame *answer, const char *guest, const char *host, struct guest_moment moment) {
    guest_frame_add_number(answer, guest, moment.guest_ns);
    guest_frame_add_number(answer, host, moment.host_ns);
}

static void run_and_report(const struct guest_frame *request, const struct guest_job *job, int control,
                           struct guest_frame *answer) {
    struct guest_vmstat before, after;
    struct guest_pipes ends;
    int status = 0, error = 0;
    if (children < 0) {
        children = watch_children();
        for (int i = 0; i < 3; i++) ports[i] = guest_open_port(PORT_STDIN + i);
    }
    from_out.total = from_err.total = 0;
    /* What the host changed since is seen, and every run finds the same: no file's pages placed yet. */
    guest_write_text("/proc/sys/vm/drop_caches", "3");
    guest_write_text("/proc/sys/kernel/numa_balancing", job->balancing ? "1" : "0");
    guest_temporary_open();
    if (job->trace) guest_trace_start();
    guest_vmstat_read(&before);
    guest_mark(MARK_START);
    guest_mark(MARK_EXCLUDE);
    guest_sampler_start();
    const struct guest_moment began = guest_sampler_moment();
    long long started = now_ms();
    pid_t program = guest_start_program(job, request, &ends, &error);
    bool late = program >= 0 && attend(program, job, &ends, control, &status);
    guest_mark(MARK_STOP);
    long long ended = now_ms();
    add_moment(answer, "guest_began", "host_began", began);
    add_moment(answer, "guest_ended", "host_ended", guest_sampler_moment());
    guest_vmstat_read(&after);
    if (program >= 0) close_streams();
    close_pipes(&ends);
    guest_temporary_close();
    if (job->trace) guest_trace_stop(job->trace);
    sync();
    guest_frame_add(answer, "event", error ? "failed" : "exit");
    guest_frame_add_number(answer, "error", error);
    guest_frame_add_number(answer, "status", status);
    guest_frame_add_number(answer, "late", late);
    guest_frame_add_number(answer, "milliseconds", ended - started);
    guest_frame_add_number(answer, "stdout", from_out.total);
    guest_frame_add_number(answer, "stderr", from_err.total);
    guest_vmstat_add_change(answer, &before, &after);
}

void guest_run_job(const struct guest_frame *request, int control) {
    struct guest_job job;
    struct guest_frame answer = {0};
    if (guest_job_parse(request, &job)) { /* else: news of a stream of a program that has ended meanwhile */
        run_and_report(request, &job, control, &answer);
        guest_frame_send(control, &answer);
    }
    guest_frame_clear(&answer);
    guest_job_free(&job);
}
