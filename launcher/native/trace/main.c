/* trace.elf trace TABLE FOLDER NAME hold|yield: reads the pid of a waiting process from stdin, attaches, answers with
 * a byte. In a session of its own: neither Ctrl-C nor Ctrl-Z at the program's terminal may stop who lets its tasks go
 * on. trace.elf exec …: see exec.c; trace.elf keep …: see folder.c.
 */
#include "processes.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* trace.elf follow TABLE FOLDER hold|yield PID ENTRY LOG: started by the library in a process that restricts its system calls. */
static int follow(int argc, char **argv) {
    static char name[TR_PATH];
    if (argc != 8) return 2;
    const struct np_entry *entry = np_process_at(argv[3], (uint32_t)strtoul(argv[6], NULL, 10));
    if (!entry) return 2;
    tr_name_of(entry, name);
    if (!*name || tr_quiet_fork()) return 0; /* not a child of the program's */
    tr_leave_program();
    struct tr_target target = {atoi(argv[5]), name, argv[7], atomic_load(&entry->children)};
    return tr_trace(&target, argv[2], argv[3], argv[4]);
}

int main(int argc, char **argv, char **envp) {
    pid_t pid = 0;
    if (argc > 1 && !strcmp(argv[1], "exec")) return tr_exec(argc, argv, envp);
    if (argc > 1 && !strcmp(argv[1], "keep")) {
        setsid();
        tr_ignore_signals();
        return tr_hold_folder(argc - 2, argv + 2);
    }
    if (argc > 1 && !strcmp(argv[1], "follow")) return follow(argc, argv);
    if (argc != 6) return 2;
    setsid();
    if (read(STDIN_FILENO, &pid, sizeof pid) != sizeof pid || pid <= 0) return 2;
    close(STDIN_FILENO);
    return tr_trace(&(struct tr_target){pid, argv[4], NULL, 0}, argv[2], argv[3], argv[5]);
}
