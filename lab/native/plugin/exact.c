#include "exact.h"

#include "sampling.h"
#include "transfers.h"
#include "who.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MANY 64 /* tasks that come: each begins a stretch of time */

struct lab_exact_wanted lab_exact;
struct lab_exact_seat lab_exact_seats[VCPUS_MAX];

static struct lab_exact_wanted asked;
static unsigned seats;
static int problem;       /* errno of the first write that failed */
static FILE *moved;       /* lines; under the caches' lock, as all of transfers.h */
static void *table;       /* what is not yet in it */
static size_t table_bytes;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of who.h, and of the following */
static struct page_use **rooms;
static uint32_t room_count, rooms_listed;
static struct page_use nowhere; /* where what finds no room is counted */

bool lab_exact_option(const char *name, const char *value) {
    bool on = !strcmp(value, "on");
    if (!strcmp(name, "llc_own")) return (asked.llc_own = (unsigned)strtoul(value, NULL, 10)) > 0;
    if (!strcmp(name, "transfers")) asked.transfers = on;
    else if (!strcmp(name, "page_use")) asked.uses = on;
    else return false;
    return on || !strcmp(value, "off");
}

static struct page_use *take(void) {
    if (room_count == rooms_listed) {
        uint32_t listed = rooms_listed ? rooms_listed * 2 : 64;
        struct page_use **grown = realloc(rooms, listed * sizeof *grown);
        if (!grown) return NULL;
        rooms = grown;
        rooms_listed = listed;
    }
    struct page_use *room = calloc(PAGE_USES_AT_ONCE, sizeof *room);
    if (room) rooms[room_count++] = room;
    return room;
}

/* It is kept: a vcpu may still be counting there. */
static void give(struct page_use *room) { (void)room; }

static struct page_uses uses = {.take = take, .give = give};

static void write_out(FILE *file, const void *data, size_t bytes) {
    if (file && bytes && fwrite(data, 1, bytes, file) != bytes && !problem) problem = errno;
}

int64_t transfers_now(void) { return (int64_t)lab_now_ns(); }

void transfers_write(uint64_t first, uint64_t second) {
    write_out(moved, (uint64_t[]){first, second}, 2 * sizeof first);
}

void *transfers_room(size_t bytes) {
    table_bytes = bytes;
    return table = calloc(1, bytes);
}

static FILE *open_file(const char *directory, const char *name) {
    char path[4096 + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "we");
    if (!file && !problem) problem = errno;
    return file;
}

static void close_file(FILE *file) {
    if (file && fclose(file) && !problem) problem = errno;
}

bool lab_exact_start(const char *directory, unsigned vcpus) {
    static bool ready;
    lab_exact = asked;
    lab_exact.transfers &= lab_lines_cores[0].l1 != NULL;
    lab_exact.llc_own *= reach_asked();
    problem = 0;
    lab_part_start();
    seats = vcpus;
    for (unsigned v = 0; v < vcpus; v++)
        lab_exact_seats[v] = (struct lab_exact_seat){.task = lab_rows_current[v]->task};
    if (!lab_exact.transfers) return true;
    if (!ready && !(ready = transfers_init())) return false;
    moved = open_file(directory, "exact-transfers");
    return moved;
}

/* Forget all, for the next recording. */
static void restart(void) {
    for (uint32_t i = 0; i < room_count; i++) free(rooms[i]);
    room_count = 0;
    free(uses.index);
    free(uses.rooms);
    uses = (struct page_uses){.take = take, .give = give};
    lab_who_restart();
    transfers_restart();
    free(table);
    table = NULL;
    table_bytes = 0;
    moved = NULL;
    lab_exact = (struct lab_exact_wanted){0};
}

int lab_exact_finish(const char *directory) {
    FILE *file = open_file(directory, "exact-who");
    if (file && !lab_who_write(file) && !problem) problem = errno;
    close_file(file);
    file = lab_exact.uses ? open_file(directory, "exact-uses") : NULL;
    for (uint32_t i = 0; i < room_count; i++) write_out(file, rooms[i], PAGE_USES_AT_ONCE * sizeof *rooms[i]);
    close_file(file);
    write_out(moved, table, table_bytes);
    close_file(moved);
    restart();
    return problem;
}

static void end_stretch(int64_t now) {
    for (unsigned v = 0; v < seats; v++)
        for (unsigned i = 0; i < EXACT_RECENT; i++)
            __atomic_store_n(&lab_exact_seats[v].recent[i].number, 0, __ATOMIC_RELAXED);
    page_uses_stretch(&uses, now);
}

static uint32_t who_is(uint64_t task) {
    if (lab_rows_excluded(task)) return EXACT_NOBODY;
    int64_t now = (int64_t)lab_now_ns();
    uint32_t before = lab_who_count(), who = lab_who_find(task, (uint64_t)now);
    if (who > before && who <= FIRST_MANY && uses.end) end_stretch(now);
    return who && who < TRANSFERS_WHO ? who : EXACT_NOBODY;
}

void lab_exact_forget_own(unsigned vcpu) {
    if (lab_exact.transfers) caches_leave(&lab_lines_cores[vcpu]);
}

void lab_exact_ask(unsigned vcpu) {
    struct lab_exact_seat *seat = &lab_exact_seats[vcpu];
    pthread_mutex_lock(&lock);
    seat->who = who_is(seat->task);
    seat->process = seat->who == EXACT_NOBODY ? 0 : lab_who_process(seat->who);
    pthread_mutex_unlock(&lock);
    if (seat->who == seat->last) return;
    seat->last = seat->who;
    for (unsigned i = 0; i < EXACT_RECENT; i++) seat->recent[i].number = 0;
    lab_exact_forget_own(vcpu);
}

unsigned lab_exact_known(const uint64_t *tasks, unsigned count, uint32_t *who) {
    unsigned found = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        uint32_t known = lab_rows_excluded(tasks[i]) ? 0 : lab_who_known(tasks[i]);
        if (known && known < TRANSFERS_WHO) who[found++] = known;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

unsigned lab_exact_running(uint32_t *who) {
    uint64_t tasks[VCPUS_MAX];
    for (unsigned v = 0; v < seats; v++) tasks[v] = __atomic_load_n(&lab_exact_seats[v].task, __ATOMIC_RELAXED);
    return lab_exact_known(tasks, seats, who);
}

void lab_exact_switch(unsigned vcpu, uint64_t task) {
    __atomic_store_n(&lab_exact_seats[vcpu].task, task, __ATOMIC_RELAXED);
    lab_exact_seats[vcpu].who = 0;
}

void lab_exact_told(unsigned vcpu, unsigned byte) {
    struct lab_exact_seat *seat = &lab_exact_seats[vcpu];
    unsigned process = lab_part_told(byte);
    if (!process) return;
    if (seat->who == 0) lab_exact_ask(vcpu);
    if (seat->who == EXACT_NOBODY) return;
    pthread_mutex_lock(&lock);
    lab_who_join(seat->who, process);
    pthread_mutex_unlock(&lock);
    seat->process = process;
}

void lab_exact_end_stage(unsigned vcpu) {
    pthread_mutex_lock(&lock);
    lab_who_end(lab_exact_seats[vcpu].task);
    pthread_mutex_unlock(&lock);
    lab_exact_seats[vcpu].who = 0;
}

void lab_exact_find(struct lab_exact_seat *seat, struct lab_exact_recent *recent, uint64_t number) {
    pthread_mutex_lock(&lock);
    struct page_use *found = page_uses_find(&uses, number, seat->who - 1, (int64_t)lab_now_ns());
    recent->use = found ? found : &nowhere;
    __atomic_store_n(&recent->number, number + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

void lab_exact_check(void) {
    if (!lab_exact.uses) return;
    int64_t now = (int64_t)lab_now_ns();
    pthread_mutex_lock(&lock);
    if (uses.end && page_uses_due(&uses, now)) end_stretch(now);
    pthread_mutex_unlock(&lock);
}

void lab_exact_transfer(unsigned vcpu, uint64_t address, uint64_t key, bool store, const struct lab_answer *answer) {
    uint32_t line = (uint32_t)(key >> LINE_SHIFT) % PAGE_LINES, who = lab_exact_seats[vcpu].who - 1;
    caches_lock();
    struct shared_page *page = transfers_page((uint32_t)lab_nodes_page(key));
    bool asks = page && transfers_access(page, address >> PAGE_SHIFT, line, who, store);
    caches_unlock();
    lab_rows_current[vcpu]->lines->shared_hits += asks && answer->kept;
}

void lab_exact_overwritten(uint64_t key) {
    if (!lab_exact.transfers) return;
    caches_lock();
    transfers_forget((uint32_t)lab_nodes_page(key));
    caches_unlock();
}

bool lab_exact_copies(unsigned vcpu) {
    struct lab_exact_seat *seat = &lab_exact_seats[vcpu];
    if (!(lab_exact.transfers || lab_exact.uses)) return false;
    if (seat->who == 0) lab_exact_ask(vcpu);
    return seat->who != EXACT_NOBODY && (!lab_part_asked || lab_part_access(vcpu, seat->process, 0));
}

void lab_exact_buffer(unsigned vcpu, uint64_t address, uint64_t key, unsigned node, bool store,
                      const struct lab_answer *answer) {
    if (lab_exact.uses && store) lab_exact_use(vcpu, address, node);
    if (!lab_exact.transfers) return;
    if (!store) {
        lab_exact_transfer(vcpu, address, key, false, answer);
        return;
    }
    caches_lock();
    struct shared_page *page = transfers_page((uint32_t)lab_nodes_page(key));
    if (page) transfers_written(page, (uint32_t)(key >> LINE_SHIFT) % PAGE_LINES, lab_exact_seats[vcpu].who - 1);
    caches_unlock();
}
