/* The header, and the bounded pass over a body. */
#include "proto/wire/frame.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

Test(frame, header_is_little_endian_and_leads_back)
{
    uint8_t header[8];
    unsigned n_fds;
    size_t body_bytes;
    frame_header_encode(3, 0x0a0b0c, header);
    cr_assert(eq(int, memcmp(header, "GA\x03\x00\x0c\x0b\x0a\x00", 8), 0));
    cr_assert(eq(int, frame_header_decode(header, &n_fds, &body_bytes), 0));
    cr_assert(eq(uint, n_fds, 3));
    cr_assert(eq(sz, body_bytes, 0x0a0b0c));
}

Test(frame, refuses_a_header_with_another_magic)
{
    unsigned n_fds;
    size_t body_bytes;
    cr_assert(
        eq(int, frame_header_decode((uint8_t *)"AG\0\0\1\0\0\0", &n_fds, &body_bytes), -EPROTO));
    cr_assert(eq(int, frame_header_decode((uint8_t *)"GET / HT", &n_fds, &body_bytes), -EPROTO));
}

Test(frame, refuses_a_body_over_the_limit)
{
    uint8_t header[8];
    unsigned n_fds;
    size_t body_bytes;
    frame_header_encode(0, FRAME_MAX_BODY_BYTES, header);
    cr_assert(eq(int, frame_header_decode(header, &n_fds, &body_bytes), 0));
    frame_header_encode(0, FRAME_MAX_BODY_BYTES + 1, header);
    cr_assert(eq(int, frame_header_decode(header, &n_fds, &body_bytes), -EMSGSIZE));
    frame_header_encode(FRAME_MAX_FDS + 1, 1, header);
    cr_assert(eq(int, frame_header_decode(header, &n_fds, &body_bytes), -EMSGSIZE));
    frame_header_encode(0, UINT32_MAX, header);
    cr_assert(eq(int, frame_header_decode(header, &n_fds, &body_bytes), -EMSGSIZE));
}

static unsigned n_given_back;

static void give_back(int fd)
{
    close(fd);
    n_given_back++;
}

Test(frame, deinit_closes_what_was_not_taken)
{
    struct frame frame = {.body = malloc(1), .size_bytes = 1, .n_fds = 3};
    for (unsigned i = 0; i < 3; i++)
        frame.fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int taken = frame.fds[1];
    frame.fds[1] = -1;
    frame_deinit(&frame, give_back);
    cr_assert(eq(uint, n_given_back, 2));
    cr_assert(ge(int, fcntl(taken, F_GETFD), 0));
    frame_deinit(&frame, give_back);
    cr_assert(eq(uint, n_given_back, 2));
    frame_deinit(NULL, NULL);
    close(taken);
}

#define CHECK(text) frame_body_check(text, sizeof(text) - 1)

Test(frame, takes_one_object_of_every_type)
{
    cr_assert(eq(int, CHECK("\xc0"), 0));
    cr_assert(eq(int, CHECK("\xc2"), 0));
    cr_assert(eq(int, CHECK("\x7f"), 0));
    cr_assert(eq(int, CHECK("\xe0"), 0));
    cr_assert(eq(int, CHECK("\xcc\xff"), 0));
    cr_assert(eq(int, CHECK("\xcf\1\2\3\4\5\6\7\x08"), 0));
    cr_assert(eq(int, CHECK("\xd3\1\2\3\4\5\6\7\x08"), 0));
    cr_assert(eq(int, CHECK("\xca\1\2\3\4"), 0));
    cr_assert(eq(int, CHECK("\xcb\1\2\3\4\5\6\7\x08"), 0));
    cr_assert(eq(int,
                 CHECK("\xa3"
                       "abc"),
                 0));
    cr_assert(eq(int,
                 CHECK("\xd9\x03"
                       "abc"),
                 0));
    cr_assert(eq(int,
                 CHECK("\xda\0\x03"
                       "abc"),
                 0));
    cr_assert(eq(int,
                 CHECK("\xdb\0\0\0\x03"
                       "abc"),
                 0));
    cr_assert(eq(int,
                 CHECK("\xc4\x03"
                       "abc"),
                 0));
    cr_assert(eq(int,
                 CHECK("\xc5\0\x03"
                       "abc"),
                 0));
    cr_assert(eq(int,
                 CHECK("\xc6\0\0\0\x03"
                       "abc"),
                 0));
    cr_assert(eq(int, CHECK("\x90"), 0));
    cr_assert(eq(int, CHECK("\x80"), 0));
    cr_assert(eq(int, CHECK("\x92\x81\1\2\x90"), 0));
    cr_assert(eq(int, CHECK("\xdc\0\2\1\2"), 0));
    cr_assert(eq(int, CHECK("\xdd\0\0\0\2\1\2"), 0));
    cr_assert(eq(int, CHECK("\xde\0\1\1\2"), 0));
    cr_assert(eq(int, CHECK("\xdf\0\0\0\1\1\2"), 0));
}

Test(frame, refuses_nothing_and_more_than_one_object)
{
    cr_assert(eq(int, CHECK(""), -EPROTO));
    cr_assert(eq(int, CHECK("\1\2"), -EPROTO));
    cr_assert(eq(int, CHECK("\x90\x90"), -EPROTO));
}

Test(frame, refuses_the_five_bytes_that_ask_for_100_gigabytes)
{
    cr_assert(eq(int, CHECK("\xdd\xff\x00\x00\x00"), -EPROTO));
    cr_assert(eq(int, CHECK("\xdf\xff\xff\xff\xff"), -EPROTO));
    cr_assert(eq(int, CHECK("\xdf\x80\x00\x00\x00"), -EPROTO));
    cr_assert(eq(int, CHECK("\xdb\xff\xff\xff\xff"), -EPROTO));
    cr_assert(eq(int, CHECK("\xc6\xff\xff\xff\xff"), -EPROTO));
}

Test(frame, refuses_counts_that_are_larger_than_the_bytes_left)
{
    cr_assert(eq(int, CHECK("\x93\1\2"), -EPROTO));
    cr_assert(eq(int, CHECK("\x82\1\2\3"), -EPROTO));
    cr_assert(eq(int, CHECK("\xdc\xff\xff\1\2\3\4"), -EPROTO));
    cr_assert(eq(int, CHECK("\x92\xdc\0\3\1\2"), -EPROTO));
}

Test(frame, refuses_extension_types_and_the_reserved_byte)
{
    cr_assert(eq(int, CHECK("\xc1"), -EPROTO));
    cr_assert(eq(int, CHECK("\xc7\1\1\1"), -EPROTO));
    cr_assert(eq(int, CHECK("\xd4\1\1"), -EPROTO));
    cr_assert(eq(int,
                 CHECK("\xd8\1"
                       "0123456789abcdef"),
                 -EPROTO));
    cr_assert(eq(int, CHECK("\x91\xd4\1\1"), -EPROTO));
}

Test(frame, refuses_every_cut_of_a_good_body)
{
    static const char body[] = "\x94\0\xcd\1\2\xa4ping\x91\x82\xa1"
                               "a\xcb\1\2\3\4\5\6\7\x08\xa1"
                               "b\x92\xc4\x02zz\xdc\0\1\xc3";
    size_t n_bytes = sizeof(body) - 1;
    cr_assert(eq(int, frame_body_check(body, n_bytes), 0));
    for (size_t n = 0; n < n_bytes; n++) {
        char *exact = malloc(n + 1);
        memcpy(exact, body, n);
        cr_assert(eq(int, frame_body_check(exact, n), -EPROTO), "%zu bytes", n);
        free(exact);
    }
}

static int check_nesting(unsigned depth, char opening)
{
    char *body = malloc(2 * depth + 1);
    unsigned step = opening == '\x81' ? 2 : 1;
    memset(body, 1, 2 * depth + 1);
    for (unsigned i = 0; i < depth; i++)
        body[i * step] = opening;
    int r = frame_body_check(body, depth * step + 1);
    free(body);
    return r;
}

Test(frame, bounds_nesting_without_recursion)
{
    cr_assert(eq(int, check_nesting(FRAME_MAX_DEPTH, '\x91'), 0));
    cr_assert(eq(int, check_nesting(FRAME_MAX_DEPTH, '\x81'), 0));
    cr_assert(eq(int, check_nesting(FRAME_MAX_DEPTH + 1, '\x91'), -EPROTO));
    cr_assert(eq(int, check_nesting(FRAME_MAX_DEPTH + 1, '\x81'), -EPROTO));
    cr_assert(eq(int, check_nesting(10000, '\x91'), -EPROTO));
}

Test(frame, what_passes_is_not_too_deep_for_msgpack)
{
    char body[FRAME_MAX_DEPTH + 1];
    memset(body, '\x91', FRAME_MAX_DEPTH);
    body[FRAME_MAX_DEPTH - 1] = '\x90'; /* an empty one in the innermost place */
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    cr_assert(eq(int, frame_body_check(body, FRAME_MAX_DEPTH), 0));
    cr_assert(eq(int, msgpack_unpack_next(&unpacked, body, FRAME_MAX_DEPTH, NULL),
                 MSGPACK_UNPACK_SUCCESS));
    msgpack_unpacked_destroy(&unpacked);
}

static int check_array_of_nils(uint32_t n)
{
    char *body = malloc(5 + n);
    memset(body, '\xc0', 5 + n);
    body[0] = '\xdd';
    for (int i = 0; i < 4; i++)
        body[1 + i] = (char)(n >> (24 - 8 * i));
    int r = frame_body_check(body, 5 + n);
    free(body);
    return r;
}

Test(frame, bounds_the_number_of_objects)
{
    cr_assert(eq(int, check_array_of_nils(FRAME_MAX_OBJECTS - 1), 0));
    cr_assert(eq(int, check_array_of_nils(FRAME_MAX_OBJECTS), -EPROTO));
}
