/*
 * How the guest's agent talks to the counting plugin: by 8-byte stores to one page mapped at a fixed address.
 * The plugin sees the address of a store, never its value, so the offset in the page is the message. Slots
 * 0..255 each shift one byte into a number; the slots above are commands, which consume the numbers sent.
 */
#ifndef NUMAPLAN_LAB_MARKS_H
#define NUMAPLAN_LAB_MARKS_H

#define MARK_PAGE UINT64_C(0x6e6c61620000) /* "nlab"; far from where Linux places anything of its own */
#define MARK_PAGE_BYTES 4096u
#define MARK_SLOT_BYTES 8u

/* Behind it, a byte for each of these of each process of a recording, by its number: what the program's own processes say
 * to what records their marks (profiler/native/recorder/recorder.c; lab/recording/backend.py has the address, too). */
#define MARK_TOLD_BYTES (4u * 16384)
enum lab_told {
    TOLD_STARTS, /* with the task that says so; nothing is marked */
    TOLD_BORN,   /* a task of it, which says so */
    TOLD_BEGINS, /* what is marked */
    TOLD_ENDS,
};

enum lab_mark {
    MARK_DIGIT = 0,         /* 0..255: number = number << 8 | slot */
    MARK_NUMBER_DONE = 256, /* the number is complete; the next digit starts another */
    MARK_CPU,               /* [cpu]: the vcpu that executes this is the guest kernel's cpu */
    MARK_SPAN,              /* [node, guest-physical start, bytes]: memory of a node */
    MARK_PROBE,             /* [virtual address, guest-physical address]: the next store there is a probe */
    MARK_CALIBRATED,        /* every span and probe was sent: check them, and write the calibration file */
    MARK_START,             /* forget all counts and exclusions; count from here */
    MARK_EXCLUDE,           /* the task that executes this is not the program: its accesses are told apart */
    MARK_STOP,              /* stop counting and write the counts file */
    MARK_STAGE_CODE,        /* [virtual address]: kernel code of a task that ends or becomes another program */
    MARK_SAMPLER,           /* write the time and this task into the sampler's memory (samples.h) */
    MARK_LAST,
};

#define MARK_NUMBERS 3                           /* the most a command consumes */
#define MARK_BOOT_CODE_END UINT64_C(0x100000000) /* firmware and kernel set-up code run below, agents above */

#endif
