/* The byte queue: order, room, and giving memory back. */
#include "proto/wire/buffer.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

static void put(struct buffer *buffer, const char *text)
{
    cr_assert(eq(int, buffer_reserve(buffer, strlen(text)), 0));
    memcpy(buffer->bytes + buffer->end, text, strlen(text));
    buffer_produced(buffer, strlen(text));
}

Test(buffer, keeps_the_order_while_it_moves_and_grows)
{
    struct buffer buffer = {0};
    uint8_t next_in = 0, next_out = 0;
    for (int round = 0; round < 2000; round++) {
        size_t n = (size_t)(round * 37 % 900);
        cr_assert(eq(int, buffer_reserve(&buffer, n), 0));
        for (size_t i = 0; i < n; i++)
            buffer.bytes[buffer.end + i] = next_in++;
        buffer_produced(&buffer, n);
        size_t n_out = (size_t)(round * 53 % 950);
        n_out = n_out < buffer_n_bytes(&buffer) ? n_out : buffer_n_bytes(&buffer);
        for (size_t i = 0; i < n_out; i++)
            cr_assert(eq(u8, buffer.bytes[buffer.start + i], next_out++));
        buffer_consumed(&buffer, n_out);
    }
    buffer_deinit(&buffer);
}

Test(buffer, a_large_piece_takes_no_more_than_it_needs)
{
    struct buffer buffer = {0};
    put(&buffer, "0123456789");
    cr_assert(eq(int, buffer_reserve(&buffer, 1 << 20), 0));
    cr_assert(eq(sz, buffer.capacity_bytes, (1 << 20) + 10));
    cr_assert(eq(int, memcmp(buffer.bytes, "0123456789", 10), 0));
    buffer_deinit(&buffer);
}

Test(buffer, gives_memory_back_after_quiet_rounds)
{
    struct buffer buffer = {0};
    cr_assert(eq(int, buffer_reserve(&buffer, 1 << 20), 0));
    buffer_produced(&buffer, 1 << 20);
    buffer_consumed(&buffer, 1 << 20);
    cr_assert(lt(sz, 0, buffer.capacity_bytes));
    for (int i = 0; i < 100; i++) {
        put(&buffer, "x");
        buffer_consumed(&buffer, 1);
    }
    cr_assert(lt(sz, buffer.capacity_bytes, 100000));
    buffer_deinit(&buffer);
}

Test(buffer, trim_frees_only_what_is_empty)
{
    struct buffer buffer = {0};
    put(&buffer, "x");
    buffer_trim(&buffer);
    cr_assert(eq(sz, buffer_n_bytes(&buffer), 1));
    buffer_consumed(&buffer, 1);
    buffer_trim(&buffer);
    cr_assert(eq(sz, buffer.capacity_bytes, 0));
}

Test(buffer, what_is_to_be_kept_is_not_given_back)
{
    struct buffer buffer = {0};
    cr_assert(eq(int, buffer_reserve(&buffer, 10000), 0));
    buffer.kept_bytes = 5000;
    buffer_trim(&buffer);
    cr_assert(eq(sz, buffer.capacity_bytes, 5000));
    for (unsigned i = 0; i < 100; i++) {
        put(&buffer, "x");
        buffer_consumed(&buffer, 1);
    }
    cr_assert(eq(sz, buffer.capacity_bytes, 5000));
    buffer_deinit(&buffer);
}

Test(buffer, a_size_that_overflows_is_no_memory)
{
    struct buffer buffer = {0};
    put(&buffer, "x");
    cr_assert(eq(int, buffer_reserve(&buffer, SIZE_MAX), -ENOMEM));
    buffer_deinit(&buffer);
}
