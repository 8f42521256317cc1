/* What runs in the guests of a cluster beside the user's programs; which part of it, its name says. */
#ifndef NUMAPLAN_LAB_CLUSTER_H
#define NUMAPLAN_LAB_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>

#define SHELL_PORT "2222"
#define SHELL_PORT_NUMBER 2222

/* A piece of a conversation: what it is, its length, its bytes. */
enum shell_kind { SHELL_COMMAND, SHELL_FOLDER, SHELL_OUT, SHELL_ERR, SHELL_END };
struct shell_piece {
    unsigned char kind, unused[3];
    unsigned bytes;
};

/* pieces.c */
bool shell_write(int fd, const void *data, size_t bytes);
bool shell_send(int fd, enum shell_kind kind, const void *data, size_t bytes);
/* The next piece, its bytes ended by a zero and to be freed; NULL: there is none. */
char *shell_receive(int fd, struct shell_piece *piece);

/* serve.c: commands of other hosts, until it is killed */
int shell_serve(void);

/* shell.c: as ssh is called: [options] host command… */
int shell_call(int count, char **words);

/* rank.c: a program and its arguments, which it becomes, placed as the file of its rank says */
int rank_start(char **words);

#endif
