/* Copies its input to its output, then ends as told: `code N`, `signal N`, `hang` (after saying "ready"). */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int byte;
    while (argc > 2 && (byte = getchar()) != EOF) putchar(byte);
    fflush(stdout);
    fputs("to stderr\n", stderr);
    if (argc > 2 && !strcmp(argv[1], "code")) return atoi(argv[2]);
    if (argc > 2 && !strcmp(argv[1], "signal")) raise(atoi(argv[2]));
    puts("ready");
    fflush(stdout);
    for (;;) pause();
}
