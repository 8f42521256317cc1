#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guest.h"

#define FRAME_LIMIT (64u << 20)

/* Ports do not block on end: a port whose host side is closed reads 0. */
static bool read_all(int fd, void *target, size_t bytes) {
    for (char *at = target; bytes > 0;) {
        ssize_t got = read(fd, at, bytes);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
            continue;
        }
        if (got <= 0)
            return false;
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
        if (put <= 0)
            die("the host closed the control port");
        at += put;
        bytes -= (size_t)put;
    }
}

bool frame_read(int fd, struct frame *frame) {
    uint32_t length;
    frame_clear(frame);
    if (!read_all(fd, &length, sizeof length))
        return false;
    length = le32toh(length);
    if (length > FRAME_LIMIT || !(frame->data = malloc(length + 1)))
        die("a frame of %u bytes does not fit in memory", length);
    frame->length = frame->room = length;
    frame->data[length] = '\0';
    return read_all(fd, frame->data, length);
}

const char *frame_next(const struct frame *frame, size_t *position) {
    if (*position >= frame->length)
        return NULL;
    const char *text = frame->data + *position;
    *position += strlen(text) + 1;
    return text;
}

void frame_clear(struct frame *frame) {
    free(frame->data);
    *frame = (struct frame){0};
}

static void append(struct frame *frame, const char *text) {
    size_t bytes = strlen(text) + 1;
    if (frame->length + bytes > frame->room) {
        size_t room = 2 * (frame->length + bytes);
        char *data = realloc(frame->data, room);
        if (!data)
            die("out of memory");
        frame->data = data;
        frame->room = room;
    }
    memcpy(frame->data + frame->length, text, bytes);
    frame->length += bytes;
}

void frame_add(struct frame *frame, const char *key, const char *value) {
    append(frame, key);
    append(frame, value);
}

void frame_add_number(struct frame *frame, const char *key, long long value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", value);
    frame_add(frame, key, text);
}

void frame_send(int fd, const struct frame *frame) {
    uint32_t length = htole32((uint32_t)frame->length);
    write_all(fd, &length, sizeof length);
    write_all(fd, frame->data, frame->length);
}
