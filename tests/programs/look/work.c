/* Threads at work with their cpus and memory where they are told, and what /proc says of them meanwhile.
 *
 *     work [-g CPUS/MEMS] [-x] [-f NODE] [-H NODE:PAGES] [-d NODE] THREAD... [-- THREAD...]...
 *
 * Each -- begins another process. THREAD is CPUS:HOW:MIB. CPUS is a list or - for all. HOW is a letter and nodes: t
 * touched first by a cpu of each of these nodes in turn, b or p bound to them or preferring them, h of huge pages, s a
 * thread that only sleeps. -g: in a cgroup with these cpus and memory nodes; -x: where mbind is forbidden; -f: leave
 * little room on a node; -H: a pool of huge pages on it; -d: its memory is moved to a node, as by demotion.
 *
 * Counting begins when the work does. $CURE, if set, is run by a shell before that: $P0, $P1 … are the processes, $T0,
 * $T1 … all threads. $SHOTS, if set: two snapshots go to stdout, each file behind a line of its name that begins with
 * \1. $ENDLESS, if set: it is ended by a signal. Nodes have two cpus each.
 */
#include "../../../lab/native/plugin/marks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 32, PAGE = 4096, HUGE = 2 << 20, STRIDE = 61, ROUND = 4096, LEAST = 400000, CPUS = 8 };
enum { SHOTS_MS = 400, ROOM_KB = 12 << 10 };
#define GROUP "/sys/fs/cgroup/look"

struct thread {
    char cpus[32], how;
    char nodes[16];
    size_t bytes;
    pid_t tid;
    long done;
    volatile uint64_t *words;
};

static struct shared {
    pid_t pid[MOST];
    int processes, threads;
    struct thread thread[MOST];
    int first[MOST + 1];
    int go, stop;
} *all;

static int forbidden, group_set, demoted = -1;

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void fail(const char *what) {
    perror(what);
    exit(3);
}

static void mark(int slot) {
    static volatile uint64_t *page;
    if (!page)
        page = mmap((void *)MARK_PAGE, MARK_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
                    -1, 0);
    page[slot] = 0;
}

static unsigned long listed(const char *text) {
    unsigned long found = 0;
    for (char *end; *text; text = *end ? end + 1 : end) {
        long low = strtol(text, &end, 10), high = low;
        if (*end == '-') high = strtol(end + 1, &end, 10);
        for (; low <= high; low++) found |= 1UL << low;
    }
    return found;
}

static void run_on(unsigned long cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = 0; cpu < CPUS; cpu++)
        if (cpus >> cpu & 1) CPU_SET(cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set); /* a cgroup may forbid it, as is wanted then */
}

static bool write_text(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return ok;
}

static void forbid_mbind(void) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    if (!dlopen("libnuma.so.1", RTLD_NOW)) fail("libnuma.so.1");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("seccomp");
}

/* Its memory, each page touched once. */
static void place(struct thread *thread) {
    unsigned long nodes = listed(thread->nodes);
    int count = __builtin_popcountl(nodes), part = 0;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (thread->how == 'h' ? MAP_HUGETLB : 0);
    char *memory = mmap(NULL, thread->bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    if (thread->how != 'h') madvise(memory, thread->bytes, MADV_NOHUGEPAGE);
    int policy = thread->how == 'b' ? MPOL_BIND : MPOL_PREFERRED;
    if (thread->how == 'b' || thread->how == 'p') syscall(SYS_mbind, memory, thread->bytes, policy, &nodes, 64UL, 0);
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    for (int node = 0; node < CPUS / 2; node++) {
        if (!(nodes >> node & 1)) continue;
        bool bound = thread->how == 'b' || thread->how == 'p'; /* then from elsewhere, as that must not matter */
        run_on(3UL << 2 * (bound ? (node + 2) % (CPUS / 2) : node));
        for (size_t at = thread->bytes / count * part; at < thread->bytes / count * (part + 1); at += PAGE)
            memory[at] = 1;
        part++;
    }
    sched_setaffinity(0, sizeof before, &before);
    thread->words = (volatile uint64_t *)memory;
}

static void *work(void *given) {
    struct thread *thread = given;
    if (*thread->cpus != '-') run_on(listed(thread->cpus));
    thread->tid = (pid_t)syscall(SYS_gettid);
    while (!__atomic_load_n(&all->go, __ATOMIC_ACQUIRE) || (thread->how == 's' && !all->stop)) pause_ms(5);
    volatile uint64_t *words = thread->words;
    size_t count = thread->bytes / 8, at = 0;
    while (!__atomic_load_n(&all->stop, __ATOMIC_RELAXED)) {
        for (int i = 0; i < ROUND; i += 2, at = (at + STRIDE) % count) {
            words[at] = (uint64_t)i;
            (void)words[(at + count / 2) % count];
        }
        thread->done += ROUND;
    }
    return NULL;
}

static void be_process(int number) {
    pthread_t ids[MOST];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (group_set && !write_text(GROUP "/cgroup.procs", "0")) fail("cgroup.procs");
    if (forbidden) forbid_mbind();
    for (int i = all->first[number]; i < all->first[number + 1]; i++)
        if (all->thread[i].how != 's') place(&all->thread[i]);
    unsigned long from = ~0UL, to = demoted >= 0 ? 1UL << demoted : 0;
    if (to && syscall(SYS_migrate_pages, 0, 64UL, &from, &to) < 0) fail("migrate_pages");
    for (int i = all->first[number]; i < all->first[number + 1]; i++)
        if (pthread_create(&ids[i], NULL, work, &all->thread[i])) fail("pthread_create");
    for (int i = all->first[number]; i < all->first[number + 1]; i++) pthread_join(ids[i], NULL);
    exit(0);
}

static void show(int shot, const char *path) {
    static char buffer[1 << 20];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    printf("\1%d%s\n", shot, path);
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) fwrite(buffer, 1, (size_t)got, stdout);
    close(fd);
}

static void show_time(int shot, pid_t pid) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("\1%d/proc/%d/time_ns\n%lld\n", shot, pid, now.tv_sec * 1000000000LL + now.tv_nsec);
}

/* What changes quickest comes first. */
static void show_process(int shot, pid_t pid) {
    static const char *const of_thread[] = {"schedstat", "stat", "status", "sched"};
    static const char *const of_process[] = {"stat", "status", "cmdline", "cgroup", "numa_maps"};
    char path[300];
    if (shot == 2) show_time(shot, pid);
    for (int i = 0; i < (shot == 1 ? 2 : 4); i++) {
        snprintf(path, sizeof path, "/proc/%d/task", pid);
        DIR *tasks = opendir(path);
        for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
            if (*entry->d_name == '.') continue;
            snprintf(path, sizeof path, "/proc/%d/task/%s/%s", pid, entry->d_name, of_thread[i]);
            show(shot, path);
        }
        if (tasks) closedir(tasks);
    }
    if (shot == 1) show_time(shot, pid);
    for (int i = 0; i < (shot == 1 ? 2 : 5); i++) {
        snprintf(path, sizeof path, "/proc/%d/%s", pid, of_process[i]);
        show(shot, path);
    }
}

static void shoot(int shot) {
    char path[300];
    printf("\1%d/numbers\n", shot);
    for (int i = 0; i < all->processes; i++) printf("P%d %d\n", i, all->pid[i]);
    for (int i = 0; i < all->threads; i++) printf("T%d %d\n", i, all->thread[i].tid);
    if (shot == 2) show(shot, "/proc/stat");
    show(shot, "/proc/vmstat");
    show(shot, "/proc/sys/kernel/numa_balancing");
    for (int i = 0; i < all->processes; i++) show_process(shot, all->pid[i]);
    for (int node = 0; shot == 2 && node < CPUS / 2; node++) {
        const char *const names[] = {"meminfo", "hugepages/hugepages-2048kB/nr_hugepages",
                                     "hugepages/hugepages-2048kB/free_hugepages"};
        for (int i = 0; i < 3; i++) {
            snprintf(path, sizeof path, "/sys/devices/system/node/node%d/%s", node, names[i]);
            show(shot, path);
        }
    }
    show(shot, GROUP "/cpuset.cpus.effective");
    if (shot == 1) show(shot, "/proc/stat"); /* what we did before is not to count */
}

static long free_kb(int node) {
    char path[80], line[200];
    long found = 0;
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/meminfo", node);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) sscanf(line, "Node %*d MemFree: %ld", &found);
    if (file) fclose(file);
    return found;
}

/* By huge pages, which is quicker; what does not come from that node any more ends it. */
static void fill(int node) {
    unsigned long nodes = 1UL << node;
    size_t bytes = (size_t)(free_kb(node) >> 11) * HUGE;
    char *memory = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory += -(uintptr_t)memory % HUGE;
    if (memory == MAP_FAILED || madvise(memory, bytes, MADV_HUGEPAGE) || madvise(memory, bytes, MADV_DONTFORK))
        fail("fill");
    if (syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, &nodes, 64UL, 0)) fail("fill");
    for (size_t at = 0; at < bytes; at += PAGE) {
        if (at % HUGE == 0 && free_kb(node) < ROOM_KB) break;
        memory[at] = 1;
    }
}

static void make_group(char *text) {
    char *mems = strchr(text, '/');
    *mems++ = 0;
    (void)write_text("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset");
    (void)mkdir(GROUP, 0755);
    if (!write_text(GROUP "/cpuset.cpus", text) || !write_text(GROUP "/cpuset.mems", mems)) fail("cgroup");
    group_set = 1;
}

static void set_pool(const char *text, bool empty) {
    char path[120];
    int node = atoi(text);
    snprintf(path, sizeof path, "/sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages", node);
    if (!write_text(path, empty ? "0" : strchr(text, ':') + 1)) fail("huge pages");
}

static void read_thread(const char *text) {
    struct thread *thread = &all->thread[all->threads++];
    unsigned mib;
    if (sscanf(text, "%31[^:]:%c%15[0-9,-]:%u", thread->cpus, &thread->how, thread->nodes, &mib) != 4) exit(2);
    thread->bytes = (size_t)mib << 20;
}

static void cure(const char *command) {
    char name[16], value[16];
    for (int i = 0; i < all->processes; i++) {
        snprintf(name, sizeof name, "P%d", i);
        snprintf(value, sizeof value, "%d", all->pid[i]);
        setenv(name, value, 1);
    }
    for (int i = 0; i < all->threads; i++) {
        snprintf(name, sizeof name, "T%d", i);
        snprintf(value, sizeof value, "%d", all->thread[i].tid);
        setenv(name, value, 1);
    }
    if (system(command)) exit(4);
}

static bool each(bool (*holds)(const struct thread *)) {
    for (int i = 0; i < all->threads; i++)
        if (!holds(&all->thread[i])) return false;
    return true;
}

static bool is_there(const struct thread *thread) { return __atomic_load_n(&thread->tid, __ATOMIC_ACQUIRE); }
static bool has_done(const struct thread *thread) { return thread->how == 's' || thread->done >= LEAST; }

int main(int argc, char **argv) {
    const char *pool = NULL;
    int at = 1;
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (; at < argc && argv[at][0] == '-' && argv[at][1] >= 'A'; at++) {
        char letter = argv[at][1];
        if (letter == 'g') make_group(strdup(argv[++at]));
        else if (letter == 'x') forbidden = 1;
        else if (letter == 'f') fill(atoi(argv[++at]));
        else if (letter == 'd') demoted = atoi(argv[++at]);
        else if (letter == 'H') set_pool(pool = argv[++at], false);
    }
    for (all->processes = 1; at < argc; at++) {
        if (!strcmp(argv[at], "--")) all->first[all->processes++] = all->threads;
        else read_thread(argv[at]);
    }
    all->first[all->processes] = all->threads;
    for (int i = 0; i < all->processes; i++) {
        pid_t pid = fork();
        if (!pid) be_process(i);
        all->pid[i] = pid;
    }
    while (!each(is_there)) {
        if (waitpid(-1, NULL, WNOHANG) > 0) return 5;
        pause_ms(5);
    }
    if (getenv("CURE")) cure(getenv("CURE"));
    mark(MARK_START);
    mark(MARK_EXCLUDE);
    __atomic_store_n(&all->go, 1, __ATOMIC_RELEASE);
    if (getenv("SHOTS")) {
        pause_ms(50);
        shoot(1);
        pause_ms(SHOTS_MS);
        shoot(2);
    }
    while (!each(has_done) || getenv("ENDLESS")) pause_ms(5);
    all->stop = 1;
    while (wait(NULL) > 0 || errno == EINTR) {}
    if (pool) set_pool(pool, true);
    if (group_set) rmdir(GROUP);
    return 0;
}
