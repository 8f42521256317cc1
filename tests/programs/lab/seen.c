/* seen OUT COMMAND [ARGS]…: runs a command and writes `TID CPU,CPU…` for each thread younger than itself that was looked
 * at twice: the first time it may still be before its first instruction, held by who binds it. Then a file of that
 * number is made in the folder LIVE_UNTIL, for which the thread may wait.
 */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TIDS = 1 << 22 };
static unsigned char looks[TIDS];
static cpu_set_t *found[TIDS];

static char state_of(const char *process, const char *task) {
    char path[600], text[512], *end;
    snprintf(path, sizeof path, "/proc/%s/task/%s/stat", process, task);
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    end = strrchr(text, ')');
    return end && end[1] ? end[2] : 0;
}

static void tell(int tid) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%d", getenv("LIVE_UNTIL"), tid);
    FILE *file = fopen(path, "w");
    if (file) fclose(file);
}

static void look_at(const char *process, const char *task) {
    int tid = atoi(task);
    cpu_set_t now;
    if (tid <= 0 || tid >= TIDS || sched_getaffinity(tid, sizeof now, &now)) return;
    char state = state_of(process, task);
    if (!state || state == 't' || looks[tid]++ == 0) return;
    looks[tid] = 2;
    if (!found[tid]) {
        found[tid] = malloc(sizeof now);
        tell(tid);
    }
    *found[tid] = now;
}

static void look(void) {
    DIR *all = opendir("/proc");
    for (struct dirent *process; all && (process = readdir(all));) {
        char path[300];
        if (atoi(process->d_name) <= getpid()) continue;
        snprintf(path, sizeof path, "/proc/%s/task", process->d_name);
        DIR *tasks = opendir(path);
        for (struct dirent *task; tasks && (task = readdir(tasks));) look_at(process->d_name, task->d_name);
        if (tasks) closedir(tasks);
    }
    if (all) closedir(all);
}

int main(int argc, char **argv) {
    int status = 0;
    if (argc < 3) return 2;
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        look();
        usleep(20000);
    }
    FILE *out = fopen(argv[1], "w");
    for (int tid = 0; out && tid < TIDS; tid++) {
        if (!found[tid]) continue;
        fprintf(out, "%d ", tid);
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, found[tid])) fprintf(out, "%d,", cpu);
        fprintf(out, "\n");
    }
    if (!out || fclose(out)) return 3;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
