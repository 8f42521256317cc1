#include "who.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 1024

static struct lab_who *all;  /* by number, less one */
static uint16_t *processes; /* the same */
static uint32_t count, all_room;

/* By task, open addressing. */
static struct living {
    uint64_t task;   /* 0: empty */
    uint32_t number; /* 0: it has ended */
} *living;
static uint32_t living_room, living_used;

uint32_t lab_who_count(void) { return count; }

void lab_who_restart(void) {
    count = living_used = 0;
    if (living) memset(living, 0, living_room * sizeof *living);
}

static struct living *place_of(uint64_t task) {
    uint32_t slot = (uint32_t)((task >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (living_room - 1);
    while (living[slot].task && living[slot].task != task) slot = (slot + 1) & (living_room - 1);
    return &living[slot];
}

static bool grow_living(void) {
    uint32_t before = living_room, room = before ? before * 2 : FIRST_ROOM;
    struct living *old = living, *larger = calloc(room, sizeof *larger);
    if (!larger) return false;
    living = larger;
    living_room = room;
    living_used = 0;
    for (uint32_t i = 0; i < before; i++)
        if (old[i].number) {
            *place_of(old[i].task) = old[i];
            living_used++;
        }
    free(old);
    return true;
}

static uint32_t admit(uint64_t task, uint64_t now) {
    if (count == all_room) {
        uint32_t room = all_room ? all_room * 2 : FIRST_ROOM;
        struct lab_who *grown = realloc(all, room * sizeof *grown);
        if (grown) all = grown;
        uint16_t *longer = realloc(processes, room * sizeof *longer);
        if (longer) processes = longer;
        if (!grown || !longer) return 0;
        all_room = room;
    }
    processes[count] = 0;
    all[count++] = (struct lab_who){task, now};
    return count;
}

void lab_who_join(uint32_t number, unsigned process) { processes[number - 1] = (uint16_t)process; }

unsigned lab_who_process(uint32_t number) { return processes[number - 1]; }

uint32_t lab_who_find(uint64_t task, uint64_t now) {
    if (living_used >= living_room / 4 * 3 && !grow_living()) return 0;
    struct living *place = place_of(task);
    living_used += place->task == 0;
    place->task = task;
    if (place->number == 0) place->number = admit(task, now);
    return place->number;
}

uint32_t lab_who_known(uint64_t task) { return living_room ? place_of(task)->number : 0; }

void lab_who_end(uint64_t task) {
    if (living_room) place_of(task)->number = 0;
}

bool lab_who_write(FILE *file) { return fwrite(all, sizeof *all, count, file) == count; }
