/* trace.elf exec TABLE FOLDER hold|yield FIT LD_PRELOAD=… PROGRAM [ARGV]…: started in place of a program that cannot
 * load the preload library, by a process that did (native/enforce/outside.c).
 *
 * Names this process in the job, has a tracer attach to it if the plan knows it, and becomes the program.
 */
#include "exec.h"

#include "processes.h"
#include "trace.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TABLE = 2, FOLDER, MODE, FIT, PRELOADED, PROGRAM, ARGV, NOT_RUN = 127 };

/* `p0.1.2`: from the control file's entries up to the first. */
void tr_name_of(const struct np_entry *entry, char name[TR_PATH]) {
    const struct np_entry *parent = np_process_parent(entry);
    if (entry->rank) {
        snprintf(name, TR_PATH, "r%u", entry->rank - 1);
    } else if (!parent) {
        strcpy(name, "p0");
    } else {
        tr_name_of(parent, name);
        size_t length = strlen(name), room = TR_PATH - length;
        if (!length || (size_t)snprintf(name + length, room, ".%u", entry->number) >= room) *name = 0;
    }
}

static bool start_naming(char *folder, char name[TR_PATH]) {
    if (setenv("NUMAPLAN_LOG", folder, 1) || !np_processes_open()) return false;
    tr_name_of(np_process(), name);
    return *name;
}

/* A fork of which the program will never hear: no signal at its end, and not among its children. */
pid_t tr_quiet_fork(void) { return (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL); }

void tr_leave_program(void) {
    setsid();
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0u, 0); /* the program's: who reads from it waits for their end */
}

/* In a child of its child, so that who becomes the program has no child more than it would have had. */
static void trace_from_outside(char **argv, const char *name) {
    int attached[2]; /* a pipe: the tracer writes when it has */
    char answer;
    pid_t pid = getpid();
    if (pipe(attached)) return;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    pid_t between = tr_quiet_fork();
    if (between == 0) {
        if (tr_quiet_fork() == 0) {
            dup2(attached[1], STDOUT_FILENO);
            tr_leave_program();
            _exit(tr_trace(&(struct tr_target){pid, name, NULL, 0}, argv[TABLE], argv[FOLDER], argv[MODE]));
        }
        _exit(0);
    }
    close(attached[1]);
    if (between > 0) {
        waitpid(between, NULL, __WCLONE);
        ssize_t got = read(attached[0], &answer, 1); /* none: it could not attach, and the program runs unbound */
        (void)got;
    }
    close(attached[0]);
    prctl(PR_SET_PTRACER, 0, 0, 0, 0);
}

static bool is_planned(const struct pt_table *table, uint64_t process) {
    for (uint32_t i = 0; i < table->header->threads; i++)
        if (table->threads[i].path && table->threads[i].process == process) return true;
    return false;
}

/* Without us it would have had the cpus of its parent, but those are what we gave one of that one's threads. */
static int unbind(const struct pt_table *table) {
    static unsigned char mask[PT_MASK];
    const struct pt_thread *any = pt_find_thread(table, 0, 0);
    if (!any || !any->cpus) return 0;
    pt_fill_mask(&table->cpus[any->first_cpu], any->cpus, mask);
    syscall(SYS_sched_setaffinity, 0, sizeof mask, mask);
    return (int)any->cpus;
}

/* Its memory by the kernel's policy of the process, which exec keeps: what is left to first touch stays where bound
 * threads have put it (AutoNUMA moves only what no policy is for). Where a policy is refused: first touch.
 */
static void place_memory(const struct pt_table *table, uint64_t process) {
    const uint32_t *nodes = NULL;
    uint32_t count = pt_memory_nodes(table, process, &nodes);
    if (count) pt_set_memory(nodes, count);
    else if (!table->header->autonuma) pt_change_policy(MPOL_DEFAULT, MPOL_LOCAL);
}

/* That of its own name, whoever has it; bound: it runs there, for others to see. */
static void take_part(const char *path, bool bound) {
    np_choose_unseen(np_process()->hash, bound ? np_played(pt_hash_program(path), false) : 0);
}

static char **environment(char **envp, char *preloaded, int cpus) {
    static char count[32];
    size_t n = np_count(envp);
    char **own = calloc(n + 3, sizeof *own);
    if (!own) return envp;
    memcpy(own, envp, n * sizeof *own);
    if (preloaded[strlen("LD_PRELOAD=")]) own[n++] = preloaded;
    snprintf(count, sizeof count, "GOMAXPROCS=%d", cpus);
    if (cpus && !np_value_of(envp, "GOMAXPROCS")) own[n++] = count;
    return own;
}

int tr_exec(int argc, char **argv, char **envp) {
    struct pt_table table;
    char name[TR_PATH];
    if (argc < ARGV) return 2;
    int fit = atoi(argv[FIT]), cpus = 0;
    if (pt_load(argv[TABLE], &table) && start_naming(argv[FOLDER], name)) {
        cpus = unbind(&table);
        /* the kernel would take privileges away that our tracer does not have */
        bool can = fit != NP_PRIVILEGED || geteuid() == 0;
        take_part(argv[PROGRAM], can);
        if (can && is_planned(&table, pt_hash(name))) {
            trace_from_outside(argv, name);
            place_memory(&table, pt_hash(name));
        }
    }
    execve(argv[PROGRAM], argv + ARGV, environment(envp, argv[PRELOADED], fit == NP_GO ? cpus : 0));
    return NOT_RUN;
}
