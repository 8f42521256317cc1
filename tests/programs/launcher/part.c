/* Whose part a process has. `launch_part TABLE < QUESTIONS`: each is its name, its parent's, its program and its number,
 * and the name of who has its part already, up to a dot that stands alone. Answers with hashes.
 */
#include "plan_table.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 16, WORD = 32 };

static char taken[MOST][WORD];
static int count;

static bool is_taken(const struct pt_process *part, const struct pt_process *actual) {
    (void)actual;
    for (int i = 0; i < count; i++)
        if (part->process == pt_hash(taken[i])) return true;
    return false;
}

int main(int argc, char **argv) {
    struct pt_table table;
    char name[WORD], parent[WORD], program[WORD];
    unsigned number;
    if (argc != 2 || !pt_load(argv[1], &table)) return 1;
    while (scanf("%31s %31s %31s %u", name, parent, program, &number) == 4) {
        for (count = 0; count < MOST && scanf("%31s", taken[count]) == 1 && strcmp(taken[count], "."); count++)
            continue;
        struct pt_process actual = {
            .process = pt_hash(name), .parent = pt_hash(parent), .program = pt_hash(program), .number = number};
        printf("%llu\n", (unsigned long long)pt_plays(&table, &actual, is_taken));
    }
    return 0;
}
