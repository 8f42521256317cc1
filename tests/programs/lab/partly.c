/* Memory of the first node is marked page by page; threads on two nodes touch some of it, in any order.
 *
 * Prints, of 1000 touched pages: how many follow while others are not yet touched; then how many have followed once the
 * counts were asked for, once the marks were cleared, and once all was touched; and how many have lost their contents.
 */
#include <numaplan.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 4096, TOUCHED = 1000 };
static unsigned char *memory;
static int place[PAGES]; /* node of who touched it, -1 nobody */

static int on_cpu(int cpu) {
    unsigned at, node;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    syscall(SYS_getcpu, &at, &node, NULL);
    return (int)node;
}

static void mark(void) {
    on_cpu(0);
    memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int page = 0; page < PAGES; page++) memory[page * PAGE] = (unsigned char)(page * 7), place[page] = -1;
    if (numaplan_next_touch_how(memory, PAGES * PAGE, PAGE, NUMAPLAN_USER)) exit(8);
}

/* By a stride that meets every page once: by two nodes in turn, so that what waits is not all of one node. */
static void touch(int from, int to) {
    int last = (int)sysconf(_SC_NPROCESSORS_CONF) - 1;
    for (int i = from; i < to; i++) {
        int page = (int)(i * 1237L % PAGES);
        if (i % 10 == 0) on_cpu(i % 20 ? last : last / 2);
        unsigned cpu, node;
        syscall(SYS_getcpu, &cpu, &node, NULL);
        place[page] = (int)node;
        memory[page * PAGE + 1]++;
    }
}

static int followed(void) {
    int right = 0;
    for (int page = 0; page < PAGES; page++) {
        void *at = memory + page * PAGE;
        int status = -1;
        if (place[page] < 0) continue;
        syscall(SYS_move_pages, 0, 1, &at, NULL, &status, 0);
        right += status == place[page];
    }
    return right;
}

int main(void) {
    uint64_t counts[4];
    void (*ask)(uint64_t *);
    *(void **)&ask = dlsym(NULL, "numaplan_next_touch_counts");
    if (!ask) return 9;
    mark();
    touch(0, TOUCHED);
    printf("touched %d", followed());
    ask(counts);
    printf(" asked %d of %d", followed(), (int)counts[2]); /* moved, the others were there */
    touch(TOUCHED, PAGES);
    int lost = 0;
    for (int page = 0; page < PAGES; page++) lost += memory[page * PAGE] != (unsigned char)(page * 7);
    printf(" all %d", followed());
    mark();
    touch(0, TOUCHED);
    numaplan_next_touch_clear(memory, PAGES * PAGE);
    printf(" cleared %d lost %d\n", followed(), lost);
    return 0;
}
