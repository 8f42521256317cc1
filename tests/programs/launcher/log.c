/* The event log written by several threads at once, into the folder that is the argument; every tenth record has a
 * text. Then records of six slots by one more thread: a segment (16,384 slots) is no multiple of them, so that of any
 * two ends of segments one at least has no room for the next record. What the log needs of the rest of the library stands in here.
 */
#include "preload.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, RECORDS = 4000, LONG_RECORDS = 6000 };

const char *np_directory;
uint32_t np_process_entry(void) { return 0; }
uint32_t np_next_image(void) { return 1; }
uint32_t np_inherited_image(void) { return 0; }
uint64_t np_fork_time(void) { return 0; }
bool np_sandboxed(void) { return false; }
bool np_may_call(void) { return true; }
bool np_enter(void) { return true; }
void np_leave(void) {}

static void with_text(uint32_t thread, unsigned number) {
    char text[200] = "";
    for (int i = 0; i < 20; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "%u", number);
    struct np_record record = {.kind = NP_PROCESS, .thread = thread, .b = number};
    np_log_text(&record, text, strlen(text));
}

static void *write_records(void *argument) {
    uint32_t thread = (uint32_t)(uintptr_t)argument;
    for (unsigned i = 0; i < RECORDS; i++) {
        if (i % 10 == 0) with_text(thread, i);
        else np_log(NP_FREE, thread, 0, i, 0, 0, 0);
    }
    return NULL;
}

static void write_long(uint32_t thread) {
    static const char text[300];
    for (unsigned i = 0; i < LONG_RECORDS; i++) {
        struct np_record record = {.kind = NP_PROCESS, .thread = thread, .b = i};
        np_log_text(&record, text, sizeof text);
    }
}

int main(int argc, char **argv) {
    pthread_t threads[THREADS];
    np_directory = argv[argc - 1];
    np_wanted.log_bytes = 128 << 20;
    if (!np_log_open()) return 1;
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, write_records, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    write_long(THREADS);
    return 0;
}
