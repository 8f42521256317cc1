#include "guest.h"

#include <stdlib.h>
#include <string.h>

static bool add_string(char ***list, size_t *count, const char *text) {
    char **grown = realloc(*list, (*count + 2) * sizeof *grown);
    if (!grown) return false;
    *list = grown;
    grown[(*count)++] = (char *)text; /* lives in the frame */
    grown[*count] = NULL;
    return true;
}

static void set_field(struct guest_job *job, const char *key, const char *value) {
    long long number = atoll(value);
    if (!strcmp(key, "program")) job->program = value;
    else if (!strcmp(key, "cwd")) job->directory = value;
    else if (!strcmp(key, "trace")) job->trace = value;
    else if (!strcmp(key, "uid")) job->uid = (uid_t)number;
    else if (!strcmp(key, "gid")) job->gid = (gid_t)number;
    else if (!strcmp(key, "group") && job->group_count < sizeof job->groups / sizeof *job->groups)
        job->groups[job->group_count++] = (gid_t)number;
    else if (!strcmp(key, "cpu") && job->cpu_count < sizeof job->cpus / sizeof *job->cpus)
        job->cpus[job->cpu_count++] = (int)number;
    else if (!strcmp(key, "first") && job->first_count < sizeof job->first / sizeof *job->first)
        job->first[job->first_count++] = (int)number;
    else if (!strcmp(key, "timeout_ms")) job->timeout_ms = number;
    else if (!strcmp(key, "umask")) job->umask = (mode_t)number;
    else if (!strcmp(key, "interleave")) job->interleave = number;
    else if (!strcmp(key, "exclude")) job->exclude = number;
    else if (!strcmp(key, "stdin")) job->use_stdin = number;
    else if (!strcmp(key, "balancing")) job->balancing = number;
}

bool guest_job_parse(const struct guest_frame *frame, struct guest_job *job) {
    size_t position = 0, arguments = 0, variables = 0;
    const char *key, *value;
    *job = (struct guest_job){.directory = "/", .umask = 022, .balancing = true};
    bool ok = (job->environment = calloc(1, sizeof *job->environment)) != NULL;
    while (ok && (key = guest_frame_next(frame, &position)) && (value = guest_frame_next(frame, &position))) {
        if (!strcmp(key, "arg")) ok = add_string(&job->argv, &arguments, value);
        else if (!strcmp(key, "env")) ok = add_string(&job->environment, &variables, value);
        else set_field(job, key, value);
    }
    return ok && arguments > 0 && job->program;
}

void guest_job_free(struct guest_job *job) {
    free(job->argv);
    free(job->environment);
}
