/* The plan applied to what the preload library sees: each thread and each block is looked up when it is created. These are the
 * hooks that it calls (profiler/native/preload/hooks.h).
 */
#include "enforce.h"

#include "next_touch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct placed { /* where a planned region is in this process, by its number in the plan */
    _Atomic uintptr_t address;
    size_t bytes;
};

enum { LOG_BYTES = 32 << 20, PROGRAM_BYTES = 16, MOMENT_NS = 100000, MOMENTS = 5000 };

static struct pt_table table;
static bool loaded, next_touch_here;
static _Atomic bool followed; /* by a tracer, since this process restricts its system calls */
static _Atomic int others; /* threads beside the main one that live or are being made */
static _Atomic int unborn; /* those of them that are being made */
static struct placed *placed;
static uint32_t single; /* regions of the plan that are one block each; rules come after them */
static int32_t home; /* node of the first thread, -1: it has none */
static NP_THREAD bool shifted; /* this thread's blocks do not come in the plan's order */

/* Of what a process that we are in, or that we are about to become, runs. */
static uint64_t played(uint64_t name, const char *program) {
    const struct np_entry *own = np_process(), *parent = np_process_parent(own);
    if (!parent) return name;
    uint64_t above = atomic_load(&parent->plays);
    struct pt_process actual = {
        .process = name, .parent = above ? above : parent->hash, .program = pt_hash(program), .number = own->number};
    return pt_plays(&table, &actual);
}

/* Of this process in the plan. No process there hashes to 0; one for which the control file had no room is in no plan.
 * It takes its part when it is first asked, after exec and in a forked child: that runs what its parent runs. Programs
 * go by the name that the kernel has of them, which is cut.
 */
static uint64_t process_hash(void) {
    static char program[PROGRAM_BYTES];
    static const struct np_entry *known;
    struct np_entry *own = np_process();
    if (!own) return 0;
    if (!*program) prctl(PR_GET_NAME, program, 0, 0, 0);
    if (own != known) {
        atomic_store(&own->plays, own->rank ? 0 : played(own->hash, program));
        known = own;
    }
    uint64_t plays = atomic_load_explicit(&own->plays, memory_order_relaxed);
    return plays ? plays : own->hash;
}

static const struct pt_thread *first_thread(uint64_t process) {
    return pt_find_thread(&table, process, np_hash_of("0"));
}

const uint32_t *nf_cpus_after_exec(const struct np_exec *call, uint32_t *count) {
    char program[PROGRAM_BYTES] = "";
    bool ranked = false;
    *count = 0;
    if (!loaded || access(call->path, X_OK)) return NULL; /* it may point to nowhere */
    uint64_t process = np_process_after_exec(call->envp, &ranked);
    const char *last = strrchr(call->path, '/');
    strncat(program, last ? last + 1 : call->path, sizeof program - 1);
    if (process && !ranked) process = played(process, program);
    /* It tells its program the cpus of those that the plan does not name: where it has none, it cannot. */
    const struct pt_thread *plan = process && pt_find_thread(&table, 0, 0) ? first_thread(process) : NULL;
    *count = plan ? plan->cpus : 0;
    return plan ? &table.cpus[plan->first_cpu] : NULL;
}

/* What the plan says of this process; one that it does not name needs no log, and its pages are the kernel's to move. */
static void find_process(void) {
    const struct pt_thread *first = first_thread(process_hash());
    bool threads_here = false, memory_here = false;
    next_touch_here = false;
    home = first ? first->node : -1;
    for (uint32_t i = 0; i < table.header->threads && !threads_here; i++)
        threads_here = table.threads[i].path && table.threads[i].process == process_hash();
    for (uint32_t i = 0; i < table.header->regions; i++) {
        if (table.regions[i].process != process_hash()) continue;
        memory_here = true;
        next_touch_here = next_touch_here || table.regions[i].policy == PT_NEXT_TOUCH;
    }
    np_wanted = (struct np_wanted){.log_bytes = threads_here || memory_here ? LOG_BYTES : 0, .regions = memory_here};
    nf_may_balance(table.header->autonuma || (!threads_here && !memory_here));
}

/* What a plan is for may be started by a script or by mpirun: only here it is known what runs. */
static void log_program(void) {
    char path[NP_PATH];
    ssize_t length = np_wanted.log_bytes ? readlink("/proc/self/exe", path, sizeof path) : 0;
    if (length > 0) np_log_text(&(struct np_record){.kind = NF_PROGRAM}, path, (size_t)length);
}

static void start(void) {
    const char *path = getenv("NUMAPLAN_PLAN");
    if (!path) return;
    if (!pt_load(path, &table)) {
        np_wanted.log_bytes = LOG_BYTES;
        np_log(NF_BAD_PLAN_TABLE, 0, 0, 0, 0, 0, 0);
        return;
    }
    single = pt_first_rule(&table);
    placed = calloc((size_t)single + 1, sizeof *placed);
    loaded = placed && nf_blocks_open(table.header->rules) && nf_planned_open(table.header->threads);
    if (!loaded) return;
    find_process();
    log_program();
    nf_affinity_start(&table, pt_find_thread(&table, 0, 0), first_thread(process_hash()));
}

/* ---- threads ---- */

static uint32_t number_of(const struct pt_thread *thread) { return (uint32_t)(thread - table.threads); }

static void place_stack(uint32_t number, const struct pt_thread *plan, uintptr_t stack, size_t bytes) {
    if (!plan || plan->node < 0 || !stack || !np_may_call()) return;
    if (number != 0) nf_place_stack(stack, bytes, plan->node);
    else if (table.header->nodes > 1) nf_move_stack(stack + bytes, plan->node);
}

/* What a thread has that the plan does not name: a pool may grow by itself, in another way in each run. (A thread made by
 * clone() may have anything in its thread-local storage.) */
static const struct pt_thread *cpus_of(const struct pt_thread *plan) {
    const struct pt_thread *gives = np_self.gives;
    if (plan) return plan;
    if (gives >= table.threads && gives < table.threads + table.header->threads) return gives;
    return pt_find_unplanned(&table, process_hash());
}

/* A thread inherits its creator's cpus, and would wait there for its first turn only to leave. */
static bool thread_made(uint32_t number, uint64_t path, pthread_t thread) {
    const struct pt_thread *plan = loaded ? pt_find_thread(&table, process_hash(), path) : NULL;
    const struct pt_thread *bind = loaded ? cpus_of(plan) : NULL;
    bool made = false;
    int saved = errno;
    if (!bind || !bind->cpus || !np_enter()) return false;
    pid_t tid = np_may_call() ? np_tid_of(thread) : 0;
    if (tid && plan) nf_planned_started(number_of(plan), number, tid);
    if (tid) made = nf_bind_made(tid, &table.cpus[bind->first_cpu], bind->cpus);
    np_leave();
    errno = saved;
    return made;
}

static void thread_born(uint32_t number, uint64_t path, uintptr_t stack, size_t stack_bytes, bool bound) {
    if (!loaded) return;
    int saved = errno;
    const struct pt_thread *plan = pt_find_thread(&table, process_hash(), path);
    const struct pt_thread *bind = cpus_of(plan);
    /* Before it is bound: from here on another thread's wish does not move it. */
    if (plan) nf_planned_started(number_of(plan), number, np_tid());
    if (plan && np_thread_number() == number) np_self.gives = plan->pool ? &table.threads[plan->pool - 1] : NULL;
    if (number != 0) atomic_fetch_sub(&unborn, 1);
    bool enters = np_enter();
    bound = bind && (bound || (!enters && followed));
    if (bound) nf_bound_from_outside(&table.cpus[bind->first_cpu], bind->cpus, plan != NULL);
    if (!enters) return;
    bool binds = bind && !bound && np_may_call();
    int error = binds ? nf_bind(&table.cpus[bind->first_cpu], bind->cpus, plan != NULL) : 0;
    place_stack(number, plan, stack, stack_bytes);
    if (np_may_call()) nf_log_affinity(number, path, error, plan != NULL, false, 0);
    np_leave();
    errno = saved;
}

static void thread_ends(uint32_t number, uint64_t path) {
    if (loaded && number != 0) atomic_fetch_sub(&others, 1);
    const struct pt_thread *plan = loaded ? pt_find_thread(&table, process_hash(), path) : NULL;
    if (!plan) return;
    if (np_enter()) {
        if (np_may_call()) nf_log_affinity(number, plan->path, 0, true, true, 0);
        np_leave();
    }
    nf_planned_ended(number_of(plan));
}

/* ---- memory ---- */

static void place(const struct pt_region *region, uintptr_t address, size_t bytes) {
    uint64_t number = (uint64_t)(region - table.regions);
    int error = EPERM;
    if (np_enter()) {
        if (np_may_call()) error = nf_place(&table, region, address, bytes);
        np_leave();
    }
    np_log(NF_APPLIED_REGION, np_thread_number(), (uint32_t)error, number, address, bytes, 0);
    placed[number].bytes = bytes;
    atomic_store(&placed[number].address, address);
}

/* A program that was alone makes its first thread: what it did alone is over, and others come to use its memory. */
static void thread_coming(int change) {
    if (loaded) atomic_fetch_add(&unborn, change);
    if (!loaded || atomic_fetch_add(&others, change) != 0 || change < 0 || !next_touch_here || !np_may_call()) return;
    int saved = errno;
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t address = table.regions[i].policy == PT_NEXT_TOUCH ? atomic_load(&placed[i].address) : 0;
        if (address) nt_mark_memory(address, placed[i].bytes, 0, 0);
    }
    errno = saved;
}

/* A block that came earlier or later than in the plan: the next of its size from the same place, else of any size where
 * the plan scales.
 */
static const struct pt_region *find_shifted(const struct pt_region *block) {
    uint32_t low = 0, high = single;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct pt_region *at = &table.regions[middle];
        bool before = at->process < block->process || (at->process == block->process && at->thread < block->thread);
        if (before) low = middle + 1;
        else high = middle;
    }
    const struct pt_region *scaled = NULL;
    for (; low < single; low++) {
        const struct pt_region *at = &table.regions[low];
        if (at->process != block->process || at->thread != block->thread) break;
        bool same = at->kind == block->kind && at->module == block->module && at->offset == block->offset;
        if (!same || atomic_load(&placed[low].address)) continue;
        if (at->bytes == block->bytes) return at;
        if (at->scales && !scaled) scaled = at;
    }
    return scaled;
}

/* True: placed, and to be reported when it goes. */
static bool place_by_rule(const struct pt_region *block, uintptr_t address) {
    const struct pt_region *rule = pt_find_rule(&table, block);
    uint32_t number = rule ? (uint32_t)(rule - table.regions) : 0;
    if (!rule || !nf_block_add(address, block->bytes, number)) return false;
    int error = EPERM;
    if (np_enter()) {
        if (np_may_call()) error = nf_place_block(&table, rule, address, block->bytes);
        np_leave();
    }
    nf_block_placed(number - single, number, block->bytes, error);
    return true;
}

static bool region_made(enum np_region kind, uintptr_t address, size_t bytes, uintptr_t site, uint32_t sequence) {
    uint64_t module;
    uintptr_t bias;
    if (!np_self.known || kind == NP_ARENA) return false;
    if (!np_module_of(site, &module, &bias)) return false;
    struct pt_region block = {.process = process_hash(), .thread = np_self.hash, .module = module, .bytes = bytes};
    block.offset = site - bias;
    block.kind = (uint16_t)kind;
    const struct pt_region *region = pt_find_region(&table, block.process, block.thread, sequence);
    bool same = region && region->kind == block.kind && region->module == module && region->offset == block.offset;
    if (region && !same) shifted = true;
    bool ruled = !same && table.header->rules && place_by_rule(&block, address);
    /* Blocks of rules do not count: where there are some, nothing is said of when the others come. */
    if (!same) region = !ruled && (shifted || table.header->rules) ? find_shifted(&block) : NULL;
    if (region) place(region, address, bytes);
    if (region || ruled || (kind != NP_FILE && !np_self.reserves)) nf_count_memory(bytes, region || ruled);
    return region || ruled;
}

static void look_at(uint32_t number, uintptr_t address, size_t bytes) {
    if (!np_enter()) return;
    nt_leaving(address, bytes); /* the kernel does not tell where pages are that cannot be accessed */
    if (np_may_call()) nf_verify(&table, &table.regions[number], address, bytes);
    np_leave();
}

static void unplace(uint32_t number, uintptr_t address, size_t bytes) {
    if (table.regions[number].kind != PT_HEAP || !np_enter()) return;
    if (np_may_call()) nf_unplace(address, bytes);
    np_leave();
}

/* One that a rule has placed; false: it is none of these. */
static bool block_gone(uintptr_t address) {
    size_t bytes;
    uint32_t number;
    if (!nf_block_take(address, &bytes, &number)) return false;
    int saved = errno;
    if (nf_block_is_looked_at(number - single)) look_at(number, address, bytes);
    unplace(number, address, bytes);
    errno = saved;
    return true;
}

static void region_gone(enum np_region kind, uintptr_t address, size_t unmapped) {
    (void)unmapped; /* the whole of it, or a part from its start */
    if (kind != NP_HEAP && !np_live_remove(address)) return; /* not planned */
    if (!loaded || block_gone(address)) return;
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t expected = address;
        if (atomic_load_explicit(&placed[i].address, memory_order_relaxed) != address) continue;
        if (!atomic_compare_exchange_strong(&placed[i].address, &expected, 0)) continue;
        int saved = errno;
        look_at(i, address, placed[i].bytes);
        unplace(i, address, placed[i].bytes);
        errno = saved;
        return;
    }
}

static bool same_build(const struct pt_region *region, const struct np_module *module) {
    uint64_t first = 0;
    size_t bytes = module->build_id_bytes;
    if (module->build_id) memcpy(&first, module->build_id, bytes < sizeof first ? bytes : sizeof first);
    return !region->build_id || region->build_id == first;
}

/* A plan names data; what lies elsewhere is not its to place, whatever it says of offset and size. */
static bool holds(const struct np_module *module, const struct pt_region *region) {
    uintptr_t start = module->bias + region->offset;
    return start >= module->start && start < module->end && region->bytes <= module->end - start;
}

static void module_loaded(const struct np_module *module) {
    size_t planned = 0;
    for (uint32_t i = 0; i < single; i++) {
        const struct pt_region *region = &table.regions[i];
        if (region->kind != PT_STATIC || region->process != process_hash() || region->module != module->name_hash)
            continue;
        if (!same_build(region, module) || !holds(module, region)) continue;
        place(region, module->bias + region->offset, region->bytes);
        planned += region->bytes;
    }
    /* Of libraries only what is planned: hardly anything else is the program's work. */
    size_t all = module->executable ? module->end - module->start : planned;
    if (planned) nf_count_memory(planned, true);
    if (all > planned) nf_count_memory(all - planned, false);
}

/* ---- fork and end ---- */

/* A child is another process: what was placed and who lived there was its parent's. */
static void forked(void) {
    if (!loaded) return;
    atomic_store(&others, 0);
    atomic_store(&unborn, 0);
    memset(placed, 0, ((size_t)single + 1) * sizeof *placed);
    nf_blocks_forked(table.header->rules);
    shifted = false;
    nf_planned_forked();
    nf_looks_forked();
    find_process();
}

/* What there is to say is said now; a tracer goes on with the threads, and later memory is the process's. */
static void sandbox_coming(void) {
    const uint32_t *nodes;
    const struct timespec moment = {0, MOMENT_NS};
    if (!loaded) return;
    /* The tracer names later threads by those that are in the log. */
    for (int turn = 0; atomic_load(&unborn) > 0 && turn < MOMENTS; turn++)
        syscall(SYS_nanosleep, &moment, NULL); /* libc's may end a thread that is to be cancelled */
    nt_retire();
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t address = atomic_load(&placed[i].address);
        if (address) look_at(i, address, placed[i].bytes);
    }
    uint32_t count = pt_memory_nodes(&table, process_hash(), &nodes);
    if (count) pt_set_memory(nodes, count);
    atomic_store(&followed, nf_follow_from_outside());
    if (!atomic_load(&followed)) nf_free_all_threads();
    np_log(NF_RETIRED, np_thread_number(), atomic_load(&followed), 0, 0, 0, 0);
}

static void end(void) {
    if (!loaded) return;
    for (uint32_t i = 0; i < table.header->threads && np_may_call(); i++) {
        uint32_t thread;
        pid_t tid = nf_planned_take(i, &thread);
        if (tid) nf_log_affinity(thread, table.threads[i].path, 0, true, true, tid);
    }
    for (uint32_t i = 0; i < single; i++) {
        uintptr_t address = atomic_exchange(&placed[i].address, 0);
        if (address) look_at(i, address, placed[i].bytes);
    }
    uintptr_t address;
    size_t bytes;
    uint32_t number;
    while (nf_block_take_any(&address, &bytes, &number))
        if (nf_block_is_looked_at(number - single)) look_at(number, address, bytes);
    nf_blocks_end(table.header->rules, single);
    uint64_t marked = atomic_load(&nt_counts.marked);
    if (marked)
        np_log(NF_NEXT_TOUCHED, np_thread_number(), 0, marked, atomic_load(&nt_counts.touches),
               atomic_load(&nt_counts.moved), atomic_load(&nt_counts.stayed));
}

const struct np_hooks np_hooks = {
    .library = "enforce.so",
    .start = start,
    .forked = forked,
    .end = end,
    .sandbox_coming = sandbox_coming,
    .thread_coming = thread_coming,
    .thread_made = thread_made,
    .thread_born = thread_born,
    .thread_ends = thread_ends,
    .region_made = region_made,
    .region_gone = region_gone,
    .freeing = nt_freeing,
    .leaving = nt_leaving,
    .module_loaded = module_loaded,
    .exec_room = nf_exec_room,
    .exec_change = nf_exec_change,
    .exec_leaves = nf_exec_leaves,
    .exec_over = nf_exec_over,
    .call = nf_affinity_call,
    .called = nf_affinity_called,
};
