/* trace.elf trace TABLE FOLDER NAME hold|yield: reads the pid of a waiting process from stdin, attaches, answers with
 * a byte. In a session of its own: neither Ctrl-C nor Ctrl-Z at the program's terminal may stop who lets its tasks go
 * on. trace.elf exec …: see exec.c; trace.elf keep …: see folder.c.
 */
#include "trace.h"

#include <string.h>
#include <unistd.h>

int main(int argc, char **argv, char **envp) {
    pid_t pid = 0;
    if (argc > 1 && !strcmp(argv[1], "exec")) return tr_exec(argc, argv, envp);
    if (argc > 1 && !strcmp(argv[1], "keep")) {
        setsid();
        tr_ignore_signals();
        return tr_hold_folder(argc - 2, argv + 2);
    }
    if (argc != 6) return 2;
    setsid();
    if (read(STDIN_FILENO, &pid, sizeof pid) != sizeof pid || pid <= 0) return 2;
    close(STDIN_FILENO);
    return tr_trace(pid, argv[4], argv[2], argv[3], argv[5]);
}
