/* Memory of every kind, touched in full; then a line for each: name, and NODE*PAGES for each stretch of pages on one node.
 *
 *     placed [bytes of `sized`] [only]    only: nothing but that one
 */
#include <alloca.h>
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    MIB = 1 << 20,
    HUGE_BYTES = 168 * MIB,
    THREAD_STACK = 128 * 1024,
    FORKS = 16,
    SHARING = 320 * 1024
};
static char table[MIB];

static int node_of(char *page) {
    void *at = page;
    int status = -1;
    return syscall(SYS_move_pages, 0, 1, &at, NULL, &status, 0) ? -1 : status;
}

static void tell(const char *name, void *start, void *end) {
    char *page = (char *)((uintptr_t)start & ~(uintptr_t)(PAGE - 1));
    printf("%s", name);
    while (page < (char *)end) {
        int node = node_of(page);
        size_t count = 0;
        for (; page < (char *)end && node_of(page) == node; page += PAGE) count++;
        printf(" %d*%zu", node, count);
    }
    printf("\n");
}

/* In small pages: huge ones are interleaved whole. */
static char *mapped(const char *name, size_t bytes) {
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(9);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    memset(memory, 1, bytes);
    tell(name, memory, memory + bytes);
    return memory;
}

static size_t huge_kilobytes(void *memory) {
    char line[256], wanted[32];
    size_t found = 0;
    int inside = 0;
    FILE *maps = fopen("/proc/self/smaps", "r");
    uintptr_t start, end;
    snprintf(wanted, sizeof wanted, "AnonHugePages: %%zu");
    while (maps && fgets(line, sizeof line, maps)) {
        size_t value;
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
            inside = start < (uintptr_t)memory + HUGE_BYTES && end > (uintptr_t)memory;
        else if (inside && sscanf(line, wanted, &value) == 1) found += value;
    }
    if (maps) fclose(maps);
    return found;
}

/* Begins at no border of huge pages. */
static void huge(void) {
    char *room = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) exit(9);
    madvise(room, HUGE_BYTES, MADV_HUGEPAGE);
    memset(room, 1, HUGE_BYTES);
    printf("start %zu\n", (size_t)((uintptr_t)room % (2 * MIB)));
    tell("huge", room, room + HUGE_BYTES);
    printf("huge_kilobytes %zu\n", huge_kilobytes(room));
    munmap(room, HUGE_BYTES);
}

static void library(void) {
    void *loaded = dlopen("libplaced.so", RTLD_NOW);
    if (!loaded) {
        printf("library: %s\n", dlerror());
        return;
    }
    char *data = dlsym(loaded, "library_table");
    char *block = malloc(3 * 65536); /* where it is noticed */
    memset(block, 1, 3 * 65536);
    memset(data, 1, 2 * MIB);
    tell("library", data, data + 2 * MIB);
    free(block);
}

static void *in_thread(void *unused) {
    char frame[THREAD_STACK];
    memset(frame, 1, sizeof frame);
    tell("thread_stack", frame, frame + sizeof frame);
    return unused;
}

static void *on_huge_pages(void *stack) {
    tell("huge_stack", (char *)stack + 2 * MIB, (char *)stack + 4 * MIB);
    return NULL;
}

/* Its creator puts the thread's descriptor into a stack of two huge pages. */
static void huge_stack(void) {
    char *room = mmap(NULL, 6 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) exit(9);
    char *stack = (char *)(((uintptr_t)room + 2 * MIB - 1) & ~(uintptr_t)(2 * MIB - 1));
    madvise(stack, 4 * MIB, MADV_HUGEPAGE);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, 4 * MIB);
    pthread_t thread;
    pthread_create(&thread, &attributes, on_huge_pages, stack);
    pthread_join(thread, NULL);
    munmap(room, 6 * MIB);
}

static __thread volatile int own;

/* Below what its parent has used, and where whoever was asked at the fork has been. */
static void in_child(unsigned number) {
    char frame[THREAD_STACK], name[32];
    memset(frame, 1, sizeof frame);
    snprintf(name, sizeof name, "forked_stack_%u", number);
    tell(name, frame, frame + sizeof frame);
    snprintf(name, sizeof name, "forked_storage_%u", number);
    own = 1;
    tell(name, (void *)&own, (char *)pthread_self() + 1);
    fflush(stdout);
}

/* From all over a page. */
static void forks(void) {
    for (unsigned number = 0; number < FORKS; number++) {
        volatile char *depth = alloca(PAGE / FORKS);
        *depth = 1;
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) in_child(number), _exit(0);
        waitpid(child, NULL, 0);
    }
}

/* Two blocks in one huge page, which is there before they are. */
static void share_huge_page(void) {
    enum { ROOM = 6 * MIB, NEIGHBOUR = 5 * MIB / 2, SHARING = 320 * 1024 };
    mallopt(M_MMAP_THRESHOLD, 2 * ROOM);
    mallopt(M_TRIM_THRESHOLD, 4 * ROOM);
    char *room = malloc(ROOM);
    madvise((char *)((uintptr_t)room & ~(uintptr_t)(PAGE - 1)), ROOM, MADV_HUGEPAGE);
    memset(room, 1, ROOM);
    free(room);
    char *neighbour = malloc(NEIGHBOUR), *sharing = malloc(SHARING);
    if (neighbour != room || sharing < room || sharing > room + ROOM / 2) printf("lost\n");
    tell("neighbour", neighbour, neighbour + NEIGHBOUR);
    tell("sharing", sharing, sharing + SHARING);
    free(sharing);
    free(neighbour);
}

int main(int count, char **words) {
    extern char **environ;
    size_t bytes = count > 1 ? strtoul(words[1], NULL, 10) : 3 * MIB;
    char *sized = mapped("sized", bytes);
    if (count > 2) return munmap(sized, bytes);
    tell("main_stack", __builtin_frame_address(0), environ[0]);
    tell("main_storage", (void *)&own, (char *)pthread_self() + 1);
    mapped("weighted", 4 * MIB);
    mapped("equal", 4 * MIB + 65536);
    char *split = malloc(8 * MIB);
    memset(split, 1, 8 * MIB);
    tell("split", split, split + 8 * MIB);
    memset(table, 1, sizeof table);
    tell("static", table, table + sizeof table);
    library();
    huge();
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    huge_stack();
    free(split);
    forks();
    share_huge_page();
    return 0;
}
