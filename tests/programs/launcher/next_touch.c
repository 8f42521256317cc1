/* Marked memory used in every way that a program uses memory; each test prints a line, and `wrong` for what is not right.
 *
 *     next_touch TEST [pages]
 */
#include <fcntl.h>
#include <numaplan.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, THREADS = 4 };
static size_t pages;
static uint64_t *memory;
static unsigned wrong;

#define CHECK(condition)                                                                          \
    do                                                                                            \
        if (!(condition)) wrong++, fprintf(stderr, "wrong: line %d: %s\n", __LINE__, #condition); \
    while (0)

static uint64_t *mapped(size_t count) {
    void *made = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) exit(9);
    return made;
}

static uint64_t value_of(size_t word) { return (word + 1) * 0x9E3779B97F4A7C15ull; }

static void fill(uint64_t *at, size_t count) {
    for (size_t page = 0; page < count; page++) at[page * WORDS + page % WORDS] = value_of(page);
}

static size_t count_bad(const uint64_t *at, size_t count) {
    size_t bad = 0;
    for (size_t page = 0; page < count; page++) bad += at[page * WORDS + page % WORDS] != value_of(page);
    return bad;
}

static int mark(void *address, size_t bytes, size_t granule) {
    return numaplan_next_touch_how(address, bytes, granule, NUMAPLAN_USER);
}

static int rights_at(const void *address) {
    uintptr_t start, end;
    char line[512], rights[5] = "";
    int found = -1;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && found < 0 && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &start, &end, rights) == 3 && start <= (uintptr_t)address &&
            (uintptr_t)address < end)
            found = (rights[0] == 'r') | (rights[1] == 'w') << 1;
    if (maps) fclose(maps);
    return found;
}

/* ---- threads on the same pages ---- */

static pthread_barrier_t barrier;
static _Atomic uint64_t sums[THREADS];

static void *toucher(void *number) {
    long self = (long)number;
    unsigned seed = (unsigned)self;
    for (int round = 0; round < 20; round++) {
        pthread_barrier_wait(&barrier);
        if (self == 0) CHECK(mark(memory, pages * PAGE, PAGE << round % 4) == 0);
        if (self == 0) CHECK(rights_at(memory) == 0);
        pthread_barrier_wait(&barrier);
        for (size_t i = 0; i < pages; i++) {
            size_t page = round % 2 ? i : (size_t)rand_r(&seed) % pages;
            __atomic_fetch_add(&memory[page * WORDS + (page + 1) % WORDS], 1, __ATOMIC_RELAXED);
            sums[self]++;
        }
    }
    return NULL;
}

static void threads(void) {
    pthread_t made[THREADS];
    fill(memory, pages);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++) pthread_create(&made[i], NULL, toucher, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(made[i], NULL);
    CHECK(count_bad(memory, pages) == 0);
    uint64_t added = 0, wanted = 0;
    for (size_t page = 0; page < pages; page++) added += memory[page * WORDS + (page + 1) % WORDS];
    for (int i = 0; i < THREADS; i++) wanted += sums[i];
    CHECK(added == wanted && wanted == 20 * THREADS * pages);
}

/* ---- many pages, in an order that would cut the memory into as many mappings ---- */

static void many(void) {
    fill(memory, pages);
    CHECK(mark(memory, pages * PAGE, 0) == 0);
    size_t bad = 0;
    for (size_t i = 0, page = 0; i < pages; i++, page = (page + 40503) % pages)
        bad += memory[page * WORDS + page % WORDS] != value_of(page);
    CHECK(bad == 0);
    CHECK(mark(memory, pages * PAGE, PAGE) == 0); /* page by page: more than the kernel has mappings for */
    for (size_t page = 0; page < pages; page += 2) bad += memory[page * WORDS + page % WORDS] != value_of(page);
    for (size_t page = 1; page < pages; page += 2) bad += memory[page * WORDS + page % WORDS] != value_of(page);
    CHECK(bad == 0 && count_bad(memory, pages) == 0);
    CHECK(rights_at(memory) == 3 && rights_at(memory + (pages - 1) * WORDS) == 3);
}

/* ---- the program's own handlers ---- */

static sigjmp_buf back;
static volatile int caught, caught_signal;
static void *volatile caught_at;

static void jumps(int number, siginfo_t *info, void *context) {
    (void)context;
    caught++;
    caught_signal = number;
    caught_at = info->si_addr;
    caught += memory[5 * WORDS + 5] != value_of(5); /* marked memory is touched in it */
    siglongjmp(back, 1);
}

static void counts(int number) { caught += number == SIGSEGV; }

static void wrong_access(void *address) {
    if (!sigsetjmp(back, 1)) *(volatile char *)address = 1;
}

static void chained(int flags) {
    static char stack[1 << 16];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, NULL);
    struct sigaction mine = {.sa_sigaction = jumps, .sa_flags = SA_SIGINFO | flags}, old;
    sigaddset(&mine.sa_mask, SIGUSR1);
    CHECK(sigaction(SIGSEGV, &mine, NULL) == 0);
    char *guard = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fill(memory, pages);
    for (int round = 1; round <= 50; round++) {
        CHECK(mark(memory, pages * PAGE, PAGE) == 0);
        wrong_access(guard);
        CHECK(caught == 2 * round - 1 && caught_at == guard && caught_signal == SIGSEGV);
        wrong_access(NULL);
        CHECK(caught == 2 * round && caught_at == NULL);
        CHECK(count_bad(memory, pages) == 0);
    }
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_sigaction == jumps && sigismember(&old.sa_mask, SIGUSR1));
    CHECK((old.sa_flags & flags) == flags);
    CHECK(mark(memory, pages * PAGE, PAGE) == 0);
    caught = 0;
    CHECK(signal(SIGSEGV, counts) != SIG_ERR && raise(SIGSEGV) == 0 && caught == 1);
    CHECK(signal(SIGSEGV, SIG_IGN) == counts && raise(SIGSEGV) == 0);
    CHECK(count_bad(memory, pages) == 0);
    sigset_t all, now;
    sigfillset(&all);
    CHECK(mark(memory, pages * PAGE, PAGE) == 0 && pthread_sigmask(SIG_BLOCK, &all, NULL) == 0);
    CHECK(count_bad(memory, pages) == 0); /* as with SIGSEGV blocked */
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0 && sigismember(&now, SIGTERM));
}

static void alarmed(int number) {
    (void)number;
    for (size_t page = 0; page < pages; page += 7) caught += memory[page * WORDS + page % WORDS] != value_of(page);
}

static void signals(void) {
    struct sigaction mine = {.sa_handler = alarmed, .sa_flags = SA_RESTART};
    sigfillset(&mine.sa_mask);
    sigaction(SIGALRM, &mine, NULL);
    fill(memory, pages);
    ualarm(500, 500);
    for (int round = 0; round < 100; round++) {
        CHECK(mark(memory, pages * PAGE, PAGE) == 0);
        CHECK(count_bad(memory, pages) == 0);
    }
    ualarm(0, 0);
    CHECK(caught == 0);
}

/* A fault without a handler ends the program as it always does. */
static void deaths(void) {
    for (int way = 0; way < 3; way++) {
        pid_t child = fork();
        if (child == 0) {
            char *guard = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mark(memory, pages * PAGE, PAGE);
            if (way == 1) signal(SIGSEGV, SIG_IGN);
            if (way == 2) kill(getpid(), SIGSEGV);
            *(volatile char *)guard = 1;
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    }
}

/* ---- fork in the middle ---- */

static _Atomic int forking = 1;

static void *touches_on(void *unused) {
    (void)unused;
    while (forking) {
        mark(memory, pages * PAGE, PAGE);
        CHECK(count_bad(memory, pages) == 0);
    }
    return NULL;
}

static void forks(void) {
    pthread_t other;
    fill(memory, pages);
    pthread_create(&other, NULL, touches_on, NULL);
    for (int round = 0; round < 40; round++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            size_t bad = count_bad(memory, pages);
            bad += (size_t)(mark(memory, pages * PAGE, PAGE) != 0);
            _exit(bad + count_bad(memory, pages) ? 1 : 0);
        }
        int status = -1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    forking = 0;
    pthread_join(other, NULL);
}

/* ---- memory that goes, moves or changes its rights while it is marked ---- */

static void mappings(void) {
    for (int round = 0; round < 20; round++) {
        uint64_t *at = mapped(pages);
        fill(at, pages);
        CHECK(mark(at, pages * PAGE, PAGE << round % 3) == 0);
        CHECK(munmap(at + 3 * WORDS, 5 * PAGE) == 0);
        CHECK(count_bad(at, 3) == 0);
        CHECK(mprotect(at, PAGE, PROT_READ) == 0 && rights_at(at) == 1 && count_bad(at, 1) == 0);
        CHECK(mark(at, PAGE, 0) == 0 && rights_at(at) == 0 && count_bad(at, 1) == 0 && rights_at(at) == 1);
        CHECK(mmap(at + 16 * WORDS, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
        CHECK(rights_at(at + 16 * WORDS) == 0);
        CHECK(munmap(at, pages * PAGE) == 0);
        at = mapped(pages);
        fill(at, pages);
        CHECK(mark(at, pages * PAGE, 0) == 0);
        uint64_t *moved = mremap(at, pages * PAGE, 2 * pages * PAGE, MREMAP_MAYMOVE);
        CHECK(moved != MAP_FAILED && count_bad(moved, pages) == 0 && moved[pages * WORDS] == 0);
        munmap(moved, 2 * pages * PAGE);
        uint64_t *block = malloc(pages * PAGE);
        fill(block, pages);
        CHECK(mark(block, pages * PAGE, PAGE) == 0);
        if (round % 2) block = realloc(block, 2 * pages * PAGE);
        CHECK(count_bad(block, round % 2 ? pages : 1) == 0);
        free(block);
        block = calloc(pages, PAGE);
        CHECK(block[pages * WORDS / 2] == 0 && (rights_at(block) & 3) == 3 &&
              rights_at(block + pages * WORDS / 2) == 3);
        free(block);
    }
    CHECK(mark(memory, pages * PAGE, 0) == 0 && numaplan_next_touch_clear(memory, pages * PAGE) == 0);
    CHECK(rights_at(memory) == 3 && rights_at(memory + (pages - 1) * WORDS) == 3);
    CHECK(mark((void *)(uintptr_t)(PAGE * 16), PAGE, 0) == -1 && errno == EINVAL);
    CHECK(mark(memory, SIZE_MAX - 5, 0) == -1 && errno == EINVAL && mark(memory, PAGE, 12345) == -1 && errno == EINVAL);
    int local = 7;
    CHECK(mark(&local, sizeof local, 0) == -1 && errno == EINVAL && local == 7);
    CHECK(mark(memory, 0, 0) == 0);
}

/* ---- memory handed to the kernel ---- */

static void calls(void) {
    char name[] = "/tmp/next_touch_XXXXXX";
    int file = mkstemp(name), ends[2];
    size_t bytes = pages * PAGE;
    unlink(name);
    fill(memory, pages);
    CHECK(mark(memory, bytes, 0) == 0 && write(file, memory, bytes) == (ssize_t)bytes);
    uint64_t *other = mapped(pages);
    CHECK(mark(other, bytes, 0) == 0 && pread(file, other, bytes, 0) == (ssize_t)bytes && count_bad(other, pages) == 0);
    FILE *stream = fdopen(file, "r+");
    rewind(stream);
    memset(other, 0, bytes);
    CHECK(mark(other, bytes, 0) == 0 && fread(other, PAGE, pages, stream) == pages && count_bad(other, pages) == 0);
    rewind(stream);
    CHECK(mark(other, bytes, 0) == 0 && fwrite(other, PAGE, pages, stream) == pages && fflush(stream) == 0);
    memset(other, 0, bytes);
    struct iovec parts[2] = {{other, PAGE}, {other + WORDS, bytes - PAGE}};
    CHECK(lseek(file, 0, SEEK_SET) == 0 && mark(other, bytes, 0) == 0 && readv(file, parts, 2) == (ssize_t)bytes);
    CHECK(count_bad(other, pages) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(mark(other, bytes, 0) == 0 && send(ends[0], other, 2 * PAGE, 0) == 2 * PAGE);
    CHECK(mark(memory, bytes, 0) == 0 && recv(ends[1], memory, 2 * PAGE, MSG_WAITALL) == 2 * PAGE);
    CHECK(count_bad(memory, pages) == 0);
    fclose(stream);
}

int main(int argc, char **argv) {
    const char *test = argc > 1 ? argv[1] : "";
    pages = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    memory = mapped(pages);
    if (!strcmp(test, "threads")) threads();
    else if (!strcmp(test, "many")) many();
    else if (!strcmp(test, "chain")) chained(0);
    else if (!strcmp(test, "chain-onstack")) chained(SA_ONSTACK);
    else if (!strcmp(test, "signals")) signals();
    else if (!strcmp(test, "deaths")) deaths();
    else if (!strcmp(test, "forks")) forks();
    else if (!strcmp(test, "mappings")) mappings();
    else if (!strcmp(test, "calls")) calls();
    else if (!strcmp(test, "absent")) CHECK(mark(memory, PAGE, 0) == -1 && errno == ENOSYS);
    else wrong = 1;
    printf("%s: %u wrong\n", test, wrong);
    return wrong != 0;
}
