/* Who this process is in its job: fork path or rank, kept in a control file that all processes map.
 *
 * A process finds itself by pid (it was forked by a process of ours and has exec'd since) or adds itself as the
 * next child of its parent (vfork, posix_spawn, clone: nobody of ours ran in it before).
 */
#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 2, SOON_MS = 10000, MOST_DIGITS = 20 /* of a rank */ };

struct control { /* 64 bytes, then the entries */
    char magic[8];
    uint32_t version, entry_bytes, capacity;
    _Atomic uint32_t used;   /* may pass capacity: processes for which there was no room */
    _Atomic uint32_t images; /* logs opened so far */
    uint32_t filters; /* of system calls, of who started the job, and one more; 0: not known */
    _Atomic uint32_t choices; /* of parts of a plan */
    uint32_t spare[7];
};
_Static_assert(sizeof(struct control) == 64, "the writer relies on it");

const char *np_directory;
static char directory[NP_PATH];
static struct control *control;
static uint32_t capacity; /* as it was when it was checked: others can write there */
static struct np_entry *entries, *self;
static uint64_t fork_ns;
static bool filtered;
static _Atomic uint64_t told; /* the last number that a child was told, and when, in ms, in the upper half */
static uint32_t inherited; /* log whose regions this image began with (fork), 0 after exec */
static __thread uint32_t next_child __attribute__((tls_model("initial-exec")));

struct np_entry *np_process(void) { return self; }
bool np_filtered_at_start(void) { return filtered; }
uint32_t np_process_entry(void) { return (uint32_t)(self - entries); }
uint32_t np_next_image(void) { return atomic_fetch_add(&control->images, 1) + 1; }
uint64_t np_fork_time(void) { return fork_ns; }
uint32_t np_inherited_image(void) { return inherited; }

static bool map_control(void) {
    char path[NP_PATH + 16];
    strcpy(path, directory);
    strcat(path, "/control");
    int file = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) return false;
    struct stat facts;
    void *memory = MAP_FAILED;
    if (fstat(file, &facts) == 0 && (size_t)facts.st_size > sizeof *control)
        memory = mmap(NULL, (size_t)facts.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return false;
    control = memory;
    size_t room = ((size_t)facts.st_size - sizeof *control) / sizeof *entries;
    capacity = control->capacity;
    bool good = !memcmp(control->magic, "NUMAPLCT", 8) && control->version == VERSION &&
                control->entry_bytes == sizeof *entries && capacity <= room;
    if (!good) munmap(memory, (size_t)facts.st_size), control = NULL;
    else entries = (struct np_entry *)(control + 1);
    return good;
}

/* The newest entry of a pid, NULL when no process of ours has it. */
static struct np_entry *find(uint32_t pid) {
    uint32_t used = atomic_load(&control->used);
    for (uint32_t i = used < capacity ? used : capacity; i-- > 0;)
        if (atomic_load_explicit(&entries[i].pid, memory_order_acquire) == pid) return &entries[i];
    return NULL;
}

/* As getenv, whose accesses would be recorded as the program's: see maps.c. */
static const char *value_in(char *const *list, const char *name) {
    for (; list && *list; list++) {
        size_t same = 0;
        while (name[same] && (*list)[same] == name[same]) same++;
        if (!name[same] && (*list)[same] == '=') return *list + same + 1;
    }
    return NULL;
}

const char *np_env(const char *name) {
    extern char **environ;
    return value_in(environ, name);
}

/* Under emulation there are none but the emulator's own, and how much is read would show in what is recorded. */
static bool is_sandboxed(void) {
    filtered = true;
    if (np_env("NUMAPLAN_EMULATE_PREFIX")) return false;
    uint32_t filters = np_call_filters();
    filtered = filters || !control->filters;
    return control->filters && filters >= control->filters;
}

static uint32_t rank_in(char *const *environment) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = value_in(environment, names[i]);
        if (!value) continue;
        /* Slurm's batch script has a SLURM_PROCID too; only srun's tasks are ranks. */
        if (i == 3 && !value_in(environment, "SLURM_STEP_NUM_TASKS")) continue;
        size_t digits = strspn(value, "0123456789"); /* strtoul takes spaces and signs, too */
        if (!digits || value[digits] || digits > MOST_DIGITS) continue;
        unsigned long rank = strtoul(value, NULL, 10);
        if (rank < UINT32_MAX - 1) return (uint32_t)rank + 1;
    }
    return 0;
}

/* A parent was there before its child: so no chain of them leaves the file, or has no end, whoever wrote into it. */
struct np_entry *np_process_parent(const struct np_entry *entry) {
    uint32_t number = entry->parent;
    return number && number <= (uint32_t)(entry - entries) ? &entries[number - 1] : NULL;
}

/* Of a rank's first process. rank: + 1, 0: the first of a job without ranks. */
static uint64_t hash_of_first(uint32_t rank) {
    char root[16] = "p0";
    if (rank) {
        char *at = root + 1;
        uint32_t digits = 1, value = rank - 1;
        root[0] = 'r';
        while (value / digits >= 10) digits *= 10;
        for (; digits; digits /= 10) *at++ = (char)('0' + value / digits % 10);
        *at = 0;
    }
    return np_hash(NP_HASH_START, root, strlen(root));
}

static void name_entry(struct np_entry *entry, struct np_entry *parent, uint32_t number, bool exec) {
    extern char **environ;
    uint32_t rank = exec && !(parent && parent->in_job) ? rank_in(environ) : 0;
    entry->parent = parent ? (uint32_t)(parent - entries) + 1 : 0;
    entry->number = number;
    entry->rank = rank;
    entry->in_job = rank || (parent && parent->in_job);
    entry->hash = rank || !parent ? hash_of_first(rank) : np_hash_child(parent->hash, number);
}

struct np_process_name np_process_name_of(const struct np_entry *entry) {
    return (struct np_process_name){np_process_parent(entry), entry->hash, entry->number, entry->rank};
}

/* Of the next child, which has its number when it adds itself: those that were told one are about to. */
static uint32_t next_number(void) {
    uint64_t last = atomic_load(&told), next;
    uint32_t now_ms = (uint32_t)(np_now() / 1000000), added = atomic_load(&self->children);
    do {
        bool coming = (uint32_t)last > added && now_ms - (uint32_t)(last >> 32) < SOON_MS;
        next = (uint64_t)now_ms << 32 | ((coming ? (uint32_t)last : added) + 1);
    } while (!atomic_compare_exchange_weak(&told, &last, next));
    return (uint32_t)next;
}

bool np_process_after_exec(char *const *environment, bool spawns, struct np_process_name *name) {
    uint32_t pid = self ? atomic_load(&self->pid) : 0;
    bool is_self = pid == (uint32_t)getpid() && !spawns;
    if (!pid || (!is_self && pid != (uint32_t)(spawns ? getpid() : getppid()))) return false;
    if (!is_self && atomic_load(&control->used) >= capacity) return false;
    uint32_t rank = self->in_job ? 0 : rank_in(environment), number = is_self ? 0 : next_number();
    *name = is_self ? np_process_name_of(self)
                    : (struct np_process_name){self, np_hash_child(self->hash, number), number, false};
    if (rank) {
        name->hash = hash_of_first(rank);
        name->ranked = true;
    }
    return true;
}

static struct np_entry *add(struct np_entry *parent, uint32_t number, bool exec) {
    uint32_t at = atomic_fetch_add(&control->used, 1);
    if (at >= capacity) return NULL;
    struct np_entry *entry = &entries[at];
    if (parent && !number) number = atomic_fetch_add(&parent->children, 1) + 1;
    name_entry(entry, parent, number, exec);
    entry->start_ns = np_now();
    atomic_store_explicit(&entry->pid, (uint32_t)getpid(), memory_order_release);
    return entry;
}

struct np_entry *np_process_at(const char *folder, uint32_t number) {
    if (strlen(folder) >= sizeof directory) return NULL;
    strcpy(directory, folder);
    return map_control() && number < atomic_load(&control->used) && number < capacity ? &entries[number] : NULL;
}

/* The first process that we are in may not be the one that was started: that has no dynamic loader, and made this one
 * (or its parents). It is the job's first all the same.
 */
static void add_unseen_root(void) {
    const char *starter = np_env("NUMAPLAN_STARTER");
    uint32_t root = starter ? np_started_by((uint32_t)strtoul(starter, NULL, 10)) : 0, none = 0;
    if (!root || root == (uint32_t)getpid()) return;
    if (!atomic_compare_exchange_strong(&control->used, &none, 1)) {
        /* A process beside us was sooner, and is about to name it. */
        for (int looks = 0; looks < 10000 && !atomic_load(&entries[0].pid); looks++) sched_yield();
        return;
    }
    name_entry(&entries[0], NULL, 0, false);
    entries[0].start_ns = np_now();
    atomic_store_explicit(&entries[0].pid, root, memory_order_release);
}

bool np_processes_open(void) {
    const char *from = np_env("NUMAPLAN_LOG");
    if (!from || from[0] != '/' || strlen(from) >= sizeof directory) return false;
    strcpy(directory, from);
    if (!map_control() || is_sandboxed()) return false;
    np_directory = directory;
    struct np_entry *parent = find((uint32_t)getppid());
    self = find((uint32_t)getpid());
    /* An entry of our pid under another living parent belongs to a process that is gone. */
    if (self && parent && self->parent != (uint32_t)(parent - entries) + 1) self = NULL;
    if (!self && !parent && !atomic_load(&control->used)) add_unseen_root();
    if (!parent && atomic_load(&control->used)) parent = &entries[0]; /* what lies between is not ours to see */
    if (!self) self = add(parent, 0, true);
    /* A launcher forks, tells the child its rank, and has it exec. */
    else if (!self->in_job) name_entry(self, np_process_parent(self), self->number, true);
    return self != NULL;
}

/* The child's number is taken before fork, by the thread that forks, as thread numbers are. */
void np_fork_prepare(void) {
    if (self) next_child = atomic_fetch_add(&self->children, 1) + 1;
}

void np_fork_child(uint32_t image) {
    if (!self) return;
    struct np_entry *parent = self;
    if (image) inherited = image;
    atomic_store(&told, 0);
    fork_ns = np_now();
    self = add(parent, next_child, false);
    if (self) self->parent_image = inherited;
    else np_directory = NULL;
}

/* One that was killed could not say so: it lives until its parent has waited for it, or as long as another process has
 * its number. */
static bool is_alive(const struct np_entry *entry) {
    uint32_t pid = atomic_load_explicit(&entry->pid, memory_order_acquire);
    return pid && !atomic_load(&entry->end_ns) && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

bool np_is_played(uint64_t part, uint64_t program_hash, bool sure, const struct np_entry *but) {
    uint32_t used = atomic_load(&control->used), wanted = np_played(program_hash, false);
    for (uint32_t i = 0; i < used && i < capacity; i++) {
        const struct np_entry *entry = &entries[i];
        uint32_t program = atomic_load(&entry->program);
        if ((sure ? program : program & ~1u) != wanted || entry == but) continue;
        uint64_t plays = atomic_load(&entry->plays);
        if ((plays ? plays : entry->hash) == part && is_alive(entry)) return true;
    }
    return false;
}

uint32_t np_choices(void) { return atomic_load(&control->choices); }

static void show(uint64_t part, uint32_t played) {
    atomic_store(&self->program, played);
    atomic_store(&self->plays, part);
}

/* It is seen by whoever looks after the count has gone up. Who looked before, and does not see it, cannot count up. */
bool np_choose(uint64_t part, uint32_t played, uint32_t choices) {
    show(part, played);
    return atomic_compare_exchange_strong(&control->choices, &choices, choices + 1);
}

void np_choose_unseen(uint64_t part, uint32_t played) {
    show(part, played);
    atomic_fetch_add(&control->choices, 1);
}

void np_process_end(void) {
    if (self) atomic_store(&self->end_ns, np_now());
}
