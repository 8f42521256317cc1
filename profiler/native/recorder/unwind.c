#include "unwind.h"

#include "preload.h"

#include <string.h>

#if defined __x86_64__
enum { REGISTER_FP = 6, REGISTER_SP = 7, REGISTER_RETURN = 16 };
#elif defined __aarch64__
enum { REGISTER_FP = 29, REGISTER_SP = 31, REGISTER_RETURN = 30 };
#else
enum { REGISTER_FP = -1, REGISTER_SP = -2, REGISTER_RETURN = -3 };
#endif
#define ADDRESS_BITS 48 /* above them pointers may be signed */

enum { NOTHING, SAVED, SAME, UNKNOWN }; /* where the caller's value of a register is */
enum { STATES = 4, RELATIVE_4 = 0x1b, COUNT_4 = 0x03, TABLE_4 = 0x3b, INDIRECT = 0x80 };
enum { BASE_REGISTER = 0x70, DEREFERENCE = 0x06 };

struct rule {
    int kind;
    intptr_t offset; /* SAVED: from the frame's address */
};

struct state { /* how to find the caller's registers */
    uint64_t base; /* the register that the frame's address is relative to */
    intptr_t offset;
    bool behind; /* the address is in memory there */
    bool plain;
    struct rule fp, back;
};

struct reader { /* never beyond its bounds: then it fails, and gives zeros */
    const unsigned char *at, *end;
    bool failed;
};

static uint64_t take(struct reader *reader, size_t bytes) {
    uint64_t value = 0;
    if ((size_t)(reader->end - reader->at) < bytes) reader->failed = true;
    if (reader->failed) return 0;
    memcpy(&value, reader->at, bytes); /* little-endian */
    reader->at += bytes;
    return value;
}

static uint64_t take_uleb(struct reader *reader) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take(reader, 1);
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    reader->failed = true;
    return 0;
}

static int64_t take_sleb(struct reader *reader) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint64_t byte = take(reader, 1);
        value |= (byte & 0x7f) << shift;
        if (byte >= 0x80) continue;
        if (byte & 0x40 && shift < 57) value |= ~UINT64_C(0) << (shift + 7);
        return (int64_t)value;
    }
    reader->failed = true;
    return 0;
}

static void skip(struct reader *reader, uint64_t bytes) {
    if ((uint64_t)(reader->end - reader->at) < bytes) reader->failed = true;
    else reader->at += bytes;
}

static bool inside(uintptr_t address, size_t bytes, struct np_bounds bounds) {
    return address >= bounds.low && address <= bounds.high && bounds.high - address >= bytes;
}

static struct reader reader_at(uintptr_t address, struct np_bounds bounds) {
    bool good = inside(address, 0, bounds);
    uintptr_t from = good ? address : bounds.high;
    return (struct reader){(const unsigned char *)from, (const unsigned char *)bounds.high, !good};
}

/* ---- the table: which entry is for an address ---- */

static int32_t table_word(uintptr_t address) {
    int32_t value;
    memcpy(&value, (const void *)address, sizeof value);
    return value;
}

/* The address of the entry; 0: none. */
static uintptr_t entry_for(uintptr_t pc, const struct np_tables *tables) {
    const struct np_bounds bounds = {tables->low, tables->high};
    struct reader head = reader_at(tables->header, bounds);
    uint64_t version = take(&head, 1), frame = take(&head, 1), counted = take(&head, 1), table = take(&head, 1);
    if (head.failed || version != 1 || frame != RELATIVE_4 || counted != COUNT_4 || table != TABLE_4) return 0;
    skip(&head, 4);
    uint64_t count = take(&head, 4);
    uintptr_t rows = (uintptr_t)head.at;
    if (head.failed || !count || !inside(rows, count * 8, bounds)) return 0;
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (tables->header + (uintptr_t)(intptr_t)table_word(rows + middle * 8) <= pc) low = middle;
        else high = middle;
    }
    if (tables->header + (uintptr_t)(intptr_t)table_word(rows + low * 8) > pc) return 0;
    return tables->header + (uintptr_t)(intptr_t)table_word(rows + low * 8 + 4);
}

/* ---- an entry: how to find the caller's registers at an address ---- */

struct common { /* what several entries share */
    uint64_t code_unit;
    int64_t data_unit;
    bool has_data;
    struct reader first; /* operations that hold for all of them */
};

static struct reader record_at(uintptr_t address, struct np_bounds bounds) {
    struct reader reader = reader_at(address, bounds);
    uint64_t bytes = take(&reader, 4);
    if (bytes < 4 || bytes >= 0xfffffff0 || (uint64_t)(reader.end - reader.at) < bytes) reader.failed = true;
    else reader.end = reader.at + bytes;
    return reader;
}

static bool read_common(uintptr_t address, struct np_bounds bounds, struct common *common) {
    struct reader reader = record_at(address, bounds);
    uint64_t id = take(&reader, 4), version = take(&reader, 1);
    const char *letters = (const char *)reader.at;
    while (take(&reader, 1) && !reader.failed) continue;
    if (reader.failed || id || (version != 1 && version != 3)) return false;
    common->code_unit = take_uleb(&reader);
    common->data_unit = take_sleb(&reader);
    uint64_t back = version == 1 ? take(&reader, 1) : take_uleb(&reader);
    common->has_data = letters[0] == 'z';
    if (back != REGISTER_RETURN || !common->has_data) return false;
    uint64_t bytes = take_uleb(&reader);
    const unsigned char *data = reader.at;
    skip(&reader, bytes);
    if (reader.failed) return false;
    struct reader facts = {data, reader.at, false};
    for (const char *letter = letters + 1; *letter; letter++) {
        if (*letter == 'R') {
            if (take(&facts, 1) != RELATIVE_4) return false;
        } else if (*letter == 'P') {
            uint64_t form = take(&facts, 1) & 0xf;
            skip(&facts, form == 0 || form == 4 || form == 0xc ? 8 : 4);
        } else if (*letter == 'L') {
            skip(&facts, 1);
        } else if (*letter != 'B') {
            return false; /* 'S': a signal's frame, for one */
        }
    }
    common->first = reader;
    return !facts.failed;
}

static void set(struct state *state, uint64_t number, struct rule rule) {
    if (number == (uint64_t)REGISTER_FP) state->fp = rule;
    if (number == (uint64_t)REGISTER_RETURN) state->back = rule;
}

static void restore(struct state *state, const struct state *start, uint64_t number) {
    if (number == (uint64_t)REGISTER_FP) state->fp = start->fp;
    if (number == (uint64_t)REGISTER_RETURN) state->back = start->back;
}

/* The frame's address by an expression: plain only where it is a word in memory at a register. */
static void by_expression(struct state *state, struct reader *reader) {
    uint64_t bytes = take_uleb(reader);
    struct reader inner = *reader;
    skip(reader, bytes);
    if (reader->failed) return;
    inner.end = reader->at;
    uint64_t operation = take(&inner, 1);
    state->base = operation - BASE_REGISTER;
    state->offset = take_sleb(&inner);
    state->behind = true;
    state->plain = take(&inner, 1) == DEREFERENCE && inner.at == inner.end && !inner.failed;
}

/* Operations until the one that holds from beyond an address on; at: of the function's start, then where they came to. */
static bool run(struct reader *reader, const struct common *common, uintptr_t at, uintptr_t pc, struct state *state,
                const struct state *start) {
    struct state kept[STATES];
    int depth = 0;
    while (reader->at < reader->end && !reader->failed) {
        uint64_t operation = take(reader, 1), low = operation & 0x3f, number;
        switch (operation >> 6) {
        case 1:
            at += low * common->code_unit;
            if (at > pc) return true;
            continue;
        case 2:
            set(state, low, (struct rule){SAVED, (intptr_t)(take_uleb(reader) * (uint64_t)common->data_unit)});
            continue;
        case 3: restore(state, start, low); continue;
        }
        switch (low) {
        case 0x00: break;
        case 0x02:
        case 0x03:
        case 0x04:
            at += take(reader, (size_t)1 << (low - 2)) * common->code_unit;
            if (at > pc) return true;
            break;
        case 0x05:
            number = take_uleb(reader);
            set(state, number, (struct rule){SAVED, (intptr_t)(take_uleb(reader) * (uint64_t)common->data_unit)});
            break;
        case 0x06: restore(state, start, take_uleb(reader)); break;
        case 0x07: set(state, take_uleb(reader), (struct rule){UNKNOWN, 0}); break;
        case 0x08: set(state, take_uleb(reader), (struct rule){SAME, 0}); break;
        case 0x09:
            set(state, take_uleb(reader), (struct rule){UNKNOWN, 0});
            take_uleb(reader);
            break;
        case 0x0a:
            if (depth == STATES) return false;
            kept[depth++] = *state;
            break;
        case 0x0b:
            if (!depth) return false;
            *state = kept[--depth];
            break;
        case 0x0c:
        case 0x12:
            state->base = take_uleb(reader);
            state->offset = low == 0x0c ? (intptr_t)take_uleb(reader) : take_sleb(reader) * common->data_unit;
            state->plain = true;
            state->behind = false;
            break;
        case 0x0d: state->base = take_uleb(reader); break;
        case 0x0e: state->offset = (intptr_t)take_uleb(reader); break;
        case 0x13: state->offset = take_sleb(reader) * common->data_unit; break;
        case 0x0f: by_expression(state, reader); break;
        case 0x10:
        case 0x16:
            set(state, take_uleb(reader), (struct rule){UNKNOWN, 0});
            skip(reader, take_uleb(reader));
            break;
        case 0x11:
            number = take_uleb(reader);
            set(state, number, (struct rule){SAVED, (intptr_t)(take_sleb(reader) * common->data_unit)});
            break;
        case 0x14:
        case 0x15:
            set(state, take_uleb(reader), (struct rule){UNKNOWN, 0});
            take_uleb(reader);
            break;
        case 0x2d: break; /* the return address is signed, or no longer */
        case 0x2e: take_uleb(reader); break;
        default: return false;
        }
    }
    return !reader->failed;
}

static bool state_at(uintptr_t pc, struct state *state) {
    struct np_tables tables;
    struct common common;
    if (!np_module_tables(pc, &tables)) return false;
    const struct np_bounds bounds = {tables.low, tables.high};
    uintptr_t entry = entry_for(pc, &tables);
    if (!entry) return false;
    struct reader reader = record_at(entry, bounds);
    uintptr_t at = (uintptr_t)reader.at;
    uint64_t back = take(&reader, 4);
    if (reader.failed || !back || !read_common(at - back, bounds, &common)) return false;
    uintptr_t start = (uintptr_t)reader.at;
    start += (uintptr_t)(intptr_t)(int32_t)take(&reader, 4);
    uint64_t length = take(&reader, 4);
    skip(&reader, take_uleb(&reader));
    if (reader.failed || pc < start || pc - start >= length) return false;
    *state = (struct state){.fp = {SAME, 0}, .back = {NOTHING, 0}};
    struct state first = *state;
    if (!run(&common.first, &common, start, UINTPTR_MAX, state, &first)) return false;
    first = *state;
    return run(&reader, &common, start, pc, state, &first);
}

/* ---- a step ---- */

static bool read_word(uintptr_t address, struct np_bounds stack, uintptr_t *value) {
    if (address % sizeof *value || !inside(address, sizeof *value, stack)) return false;
    memcpy(value, (const void *)address, sizeof *value);
    return true;
}

bool np_unwind(struct np_frame *frame, struct np_bounds stack) {
    struct state state;
    struct np_frame caller = *frame;
    if (!state_at(frame->pc, &state) || !state.plain || state.back.kind != SAVED) return false;
    if (state.base != (uint64_t)REGISTER_FP && state.base != (uint64_t)REGISTER_SP) return false;
    uintptr_t address = (state.base == (uint64_t)REGISTER_FP ? frame->fp : frame->sp) + (uintptr_t)state.offset;
    if (state.behind && !read_word(address, stack, &address)) return false;
    if (address <= frame->sp || !inside(address, 0, stack)) return false;
    caller.sp = address;
    if (!read_word(address + (uintptr_t)state.back.offset, stack, &caller.pc)) return false;
    if (state.fp.kind == SAVED && !read_word(address + (uintptr_t)state.fp.offset, stack, &caller.fp)) return false;
    if (state.fp.kind == UNKNOWN) caller.fp = 0;
    caller.pc = (caller.pc & ((UINT64_C(1) << ADDRESS_BITS) - 1)) - 1; /* within the call, not behind it */
    *frame = caller;
    return true;
}
