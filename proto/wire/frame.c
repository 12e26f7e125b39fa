/* Frames: the header, and the bounded pass over a body that precedes msgpack-c.
 *
 * msgpack-c allocates from a declared count before the elements arrive (the five bytes
 * dd ff 00 00 00 ask for 100 GB) and stops with an error at a nesting of 32. So every body is
 * walked here first, by conn, before anybody decodes it:
 *
 *   - an array or map may declare no more elements than bytes are left (each takes at least one);
 *   - all declared elements together are at most FRAME_MAX_OBJECTS, which bounds what msgpack-c
 *     can take to FRAME_MAX_OBJECTS objects of 24 bytes and the slack of its zone;
 *   - nesting is at most FRAME_MAX_DEPTH, kept in an array: no recursion;
 *   - exactly one object, nothing after it; no extension types, no reserved byte.
 *
 * The pass reads each header byte once and skips strings and binaries: its cost is that of the
 * number of objects, not of the bytes.
 */
#include "proto/wire/frame.h"

#include "proto/util.h"

#include <string.h>

void frame_deinit(struct frame *frame, void (*close_fd_)(int fd))
{
    if (frame == NULL)
        return;
    free(steal_ptr(frame->body));
    frame->size_bytes = 0;
    for (unsigned i = 0; i < frame->n_fds; i++) {
        int fd = steal_fd(&frame->fds[i]);
        if (fd < 0)
            continue;
        if (close_fd_ != NULL)
            close_fd_(fd);
        else
            close(fd);
    }
    frame->n_fds = 0;
}

void frame_header_encode(unsigned n_fds, size_t body_bytes, uint8_t ret_header[8])
{
    ret_header[0] = 'G';
    ret_header[1] = 'A';
    ret_header[2] = (uint8_t)n_fds;
    ret_header[3] = (uint8_t)(n_fds >> 8);
    for (int i = 0; i < 4; i++)
        ret_header[4 + i] = (uint8_t)(body_bytes >> (8 * i));
}

int frame_header_decode(const uint8_t header[8], unsigned *ret_n_fds, size_t *ret_body_bytes)
{
    if (header[0] != 'G' || header[1] != 'A')
        return -EPROTO;
    unsigned n_fds = header[2] | (unsigned)header[3] << 8;
    uint32_t body_bytes = header[4] | (uint32_t)header[5] << 8 | (uint32_t)header[6] << 16 |
                          (uint32_t)header[7] << 24;
    if (n_fds > FRAME_MAX_FDS || body_bytes > FRAME_MAX_BODY_BYTES)
        return -EMSGSIZE;
    *ret_n_fds = n_fds;
    *ret_body_bytes = body_bytes;
    return 0;
}

/* What one object's first bytes say: how many bytes follow that are skipped, how many objects. */
struct object_head {
    uint64_t n_skipped, n_children;
};

static uint64_t read_big_endian(const uint8_t *bytes, unsigned n)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < n; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Types 0xc0 to 0xdf: how many bytes of a length or count follow the first one, what it counts. */
enum counted { COUNTS_NOTHING, COUNTS_BYTES, COUNTS_ELEMENTS, COUNTS_PAIRS, COUNTS_REFUSED };

static const struct {
    uint8_t counted;
    uint8_t n_bytes; /* of the count; of the value when nothing is counted */
} variable_types[32] = {
    [0xc0 - 0xc0] = {COUNTS_NOTHING, 0},  [0xc1 - 0xc0] = {COUNTS_REFUSED, 0},
    [0xc2 - 0xc0] = {COUNTS_NOTHING, 0},  [0xc3 - 0xc0] = {COUNTS_NOTHING, 0},
    [0xc4 - 0xc0] = {COUNTS_BYTES, 1},    [0xc5 - 0xc0] = {COUNTS_BYTES, 2},
    [0xc6 - 0xc0] = {COUNTS_BYTES, 4},    [0xc7 - 0xc0] = {COUNTS_REFUSED, 0},
    [0xc8 - 0xc0] = {COUNTS_REFUSED, 0},  [0xc9 - 0xc0] = {COUNTS_REFUSED, 0},
    [0xca - 0xc0] = {COUNTS_NOTHING, 4},  [0xcb - 0xc0] = {COUNTS_NOTHING, 8},
    [0xcc - 0xc0] = {COUNTS_NOTHING, 1},  [0xcd - 0xc0] = {COUNTS_NOTHING, 2},
    [0xce - 0xc0] = {COUNTS_NOTHING, 4},  [0xcf - 0xc0] = {COUNTS_NOTHING, 8},
    [0xd0 - 0xc0] = {COUNTS_NOTHING, 1},  [0xd1 - 0xc0] = {COUNTS_NOTHING, 2},
    [0xd2 - 0xc0] = {COUNTS_NOTHING, 4},  [0xd3 - 0xc0] = {COUNTS_NOTHING, 8},
    [0xd4 - 0xc0] = {COUNTS_REFUSED, 0},  [0xd5 - 0xc0] = {COUNTS_REFUSED, 0},
    [0xd6 - 0xc0] = {COUNTS_REFUSED, 0},  [0xd7 - 0xc0] = {COUNTS_REFUSED, 0},
    [0xd8 - 0xc0] = {COUNTS_REFUSED, 0},  [0xd9 - 0xc0] = {COUNTS_BYTES, 1},
    [0xda - 0xc0] = {COUNTS_BYTES, 2},    [0xdb - 0xc0] = {COUNTS_BYTES, 4},
    [0xdc - 0xc0] = {COUNTS_ELEMENTS, 2}, [0xdd - 0xc0] = {COUNTS_ELEMENTS, 4},
    [0xde - 0xc0] = {COUNTS_PAIRS, 2},    [0xdf - 0xc0] = {COUNTS_PAIRS, 4},
};

static bool read_variable_head(const uint8_t *at, size_t n_left, struct object_head *ret_head)
{
    unsigned n_bytes = variable_types[*at - 0xc0].n_bytes;
    if (n_bytes > n_left - 1)
        return false;
    uint64_t count = read_big_endian(at + 1, n_bytes);
    *ret_head = (struct object_head){.n_skipped = 1 + n_bytes};
    switch (variable_types[*at - 0xc0].counted) {
    case COUNTS_NOTHING: return true;
    case COUNTS_BYTES: ret_head->n_skipped += count; return true;
    case COUNTS_ELEMENTS: ret_head->n_children = count; return true;
    case COUNTS_PAIRS: ret_head->n_children = 2 * count; return true;
    default: return false;
    }
}

/* At least one byte is left. */
static bool read_head(const uint8_t *at, size_t n_left, struct object_head *ret_head)
{
    uint8_t first = *at;
    *ret_head = (struct object_head){.n_skipped = 1};
    if (first >= 0xc0 && first < 0xe0)
        return read_variable_head(at, n_left, ret_head);
    if (first >= 0xa0 && first < 0xc0)
        ret_head->n_skipped += first & 0x1f;
    else if (first >= 0x90 && first < 0xa0)
        ret_head->n_children = first & 0x0f;
    else if (first >= 0x80 && first < 0x90)
        ret_head->n_children = 2 * (uint64_t)(first & 0x0f);
    return true;
}

static bool is_container(uint8_t first)
{
    return (first >= 0x80 && first < 0xa0) || (first >= 0xdc && first < 0xe0);
}

int frame_body_check(const void *body, size_t size_bytes)
{
    const uint8_t *at = body, *end = at + size_bytes;
    uint64_t missing[FRAME_MAX_DEPTH + 1] = {1}; /* objects still to come, per open container */
    uint64_t n_objects = 1;
    unsigned depth = 0;
    for (;;) {
        while (missing[depth] == 0) {
            if (depth == 0)
                return at == end ? 0 : -EPROTO;
            depth--;
        }
        struct object_head head;
        if (at == end || !read_head(at, (size_t)(end - at), &head))
            return -EPROTO;
        missing[depth]--;
        bool opens = is_container(*at);
        if (head.n_skipped > (uint64_t)(end - at))
            return -EPROTO;
        at += head.n_skipped;
        n_objects += head.n_children;
        if (head.n_children > (uint64_t)(end - at) || n_objects > FRAME_MAX_OBJECTS)
            return -EPROTO;
        if (opens) {
            if (depth == FRAME_MAX_DEPTH)
                return -EPROTO;
            missing[++depth] = head.n_children;
        }
    }
}
