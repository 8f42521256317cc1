/* Threads that use memory as the simulator's programs do: their own, their neighbours', and what all share.
 *
 *     pattern ACCESSES SHARED HALO SERIAL TURN CPU...
 *
 * SHARED, HALO and SERIAL are in thousandths: of each thread's accesses those to common memory and to its two
 * neighbours', and of each memory the part that the first thread touches first. There is a thread for each CPU, bound
 * to it; after half of its accesses it binds itself to the CPU that stands TURN places further.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

enum { MOST = 64, PAGES = 1000, PAGE = 4096, WORDS = PAGE / 8 };

static long accesses;
static int count, shared, halo, serial, turn, cpus[MOST];
static volatile uint64_t *memory; /* PAGES of each thread in turn, then as many that all share */
static pthread_barrier_t touched;

static void bind(int place) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpus[place % count], &set);
    if (sched_setaffinity(0, sizeof set, &set)) {
        perror("pattern");
        exit(1);
    }
}

static uint64_t draw(uint64_t *state) /* xorshift: registers only */
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* Else the compiler reads a global variable again wherever it is short of registers. */
#define IN_REGISTER(value) __asm__ volatile("" : "+r"(value))

/* Half of a thread's accesses, and no others. */
static __attribute__((noinline)) void use(int self, uint64_t *draws) {
    volatile uint64_t *own = memory + (long)self * PAGES * WORDS, *all = memory + (long)count * PAGES * WORDS;
    volatile uint64_t *after = memory + (long)((self + 1) % count) * PAGES * WORDS;
    volatile uint64_t *before = memory + (long)((self + count - 1) % count) * PAGES * WORDS;
    uint64_t state = *draws, common = (uint64_t)shared, near = common + (uint64_t)halo / 2,
             far = common + (uint64_t)halo;
    IN_REGISTER(own);
    IN_REGISTER(all);
    IN_REGISTER(after);
    IN_REGISTER(before);
    IN_REGISTER(common);
    IN_REGISTER(near);
    IN_REGISTER(far);
    for (long left = accesses / 2; left > 0; left--) {
        uint64_t drawn = draw(&state), kind = (drawn & 0xffffffff) * 1000 >> 32, page = (drawn >> 32) * PAGES >> 21;
        volatile uint64_t *where = kind < common ? all : kind < near ? after : kind < far ? before : own;
        where[page * WORDS] = (uint64_t)left;
    }
    *draws = state;
}

static void *work(void *number) {
    long self = (long)number;
    volatile char below[4 * PAGE]; /* the top of a stack was first touched by whoever made the thread */
    below[0] = 0;
    (void)below[0];
    uint64_t state = 88172645463325252u + (uint64_t)self * 7919u;
    bind((int)self);
    for (int page = 0; page < PAGES; page++) {
        if (page % 1000 >= serial) memory[(self * PAGES + page) * WORDS] = 1;
        if (page % 1000 >= serial && page % count == self) memory[((long)count * PAGES + page) * WORDS] = 1;
    }
    pthread_barrier_wait(&touched);
    use((int)self, &state);
    if (turn) bind((int)self + turn);
    use((int)self, &state);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 7 || argc > 6 + MOST) return 2;
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)) return 1; /* a whole stack would be one page, where main is */
    accesses = atol(argv[1]);
    shared = atoi(argv[2]), halo = atoi(argv[3]), serial = atoi(argv[4]), turn = atoi(argv[5]);
    count = argc - 6;
    for (int place = 0; place < count; place++) cpus[place] = atoi(argv[6 + place]);
    bind(0);
    size_t bytes = (size_t)(count + 1) * PAGES * PAGE;
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    for (long page = 0; page < (count + 1L) * PAGES; page++)
        if (page % PAGES < serial) memory[page * WORDS] = 1;
    pthread_barrier_init(&touched, NULL, (unsigned)count);
    pthread_t threads[MOST];
    for (long self = 0; self < count; self++) pthread_create(&threads[self], NULL, work, (void *)self);
    for (int self = 0; self < count; self++) pthread_join(threads[self], NULL);
    return 0;
}
