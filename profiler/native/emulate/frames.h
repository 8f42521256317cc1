/* Who called whom: of each thread the calls that are under way (frames.c). */
#ifndef NUMAPLAN_FRAMES_H
#define NUMAPLAN_FRAMES_H

#include <stdint.h>

struct em_frames;

struct em_frames *em_frames_new(void);
void em_frames_clear(struct em_frames *f);
void em_frames_forked(struct em_frames *f);
uint32_t em_frames_innermost(struct em_frames *f);
void em_frames_called(struct em_frames *f, uint64_t stack, uint64_t ip);
void em_frames_returned(struct em_frames *f, uint64_t stack);

#endif
