#include "guest.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_LIMIT (64u << 20)

/* Ports do not block on end: a port whose host side is closed reads 0. */
static bool read_all(int fd, void *target, size_t bytes) {
    for (char *at = target; bytes > 0;) {
        ssize_t got = read(fd, at, bytes);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
            continue;
        }
        if (got <= 0) return false;
        at += got;
        bytes -= (size_t)got;
    }
    return true;
}

static void write_all(int fd, const void *source, size_t bytes) {
    for (const char *at = source; bytes > 0;) {
        ssize_t put = write(fd, at, bytes);
        if (put < 0 && (errno == EINTR || errno == EAGAIN)) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (put <= 0) guest_die("the host closed the control port");
        at += put;
        bytes -= (size_t)put;
    }
}

bool guest_frame_read(int fd, struct guest_frame *frame) {
    uint32_t length;
    guest_frame_clear(frame);
    if (!read_all(fd, &length, sizeof length)) return false;
    length = le32toh(length);
    if (length > FRAME_LIMIT || !(frame->data = malloc(length + 1)))
        guest_die("a frame of %u bytes does not fit in memory", length);
    frame->length = frame->room = length;
    frame->data[length] = '\0';
    return read_all(fd, frame->data, length);
}

const char *guest_frame_next(const struct guest_frame *frame, size_t *position) {
    if (*position >= frame->length) return NULL;
    const char *text = frame->data + *position;
    *position += strlen(text) + 1;
    return text;
}

void guest_frame_clear(struct guest_frame *frame) {
    free(frame->data);
    *frame = (struct guest_frame){0};
}

static void append(struct guest_frame *frame, const char *text) {
    size_t bytes = strlen(text) + 1;
    if (frame->length + bytes > frame->room) {
        size_t room = 2 * (frame->length + bytes);
        char *data = realloc(frame->data, room);
        if (!data) guest_die("out of memory");
        frame->data = data;
        frame->room = room;
    }
    memcpy(frame->data + frame->length, text, bytes);
    frame->length += bytes;
}

void guest_frame_add(struct guest_frame *frame, const char *key, const char *value) {
    append(frame, key);
    append(frame, value);
}

void guest_frame_add_number(struct guest_frame *frame, const char *key, long long value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    guest_frame_add(frame, key, text);
}

void guest_frame_send(int fd, const struct guest_frame *frame) {
    uint32_t length = htole32((uint32_t)frame->length);
    write_all(fd, &length, sizeof length);
    write_all(fd, frame->data, frame->length);
}
