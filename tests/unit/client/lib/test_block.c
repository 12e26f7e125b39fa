/* Packing and unpacking against the plainest possible loop, over shapes and strides. */
#include "client/lib/memory/block.h"
#include "proto/box.h"
#include "proto/array.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_BYTES (1 << 20)

static void copy_plainly(char *packed, char *first, int ndim, const int64_t *count,
                         const int64_t *strides, size_t item, bool is_gather)
{
    if (ndim == 0) {
        memcpy(is_gather ? packed : first, is_gather ? first : packed, item);
        return;
    }
    size_t inner = item;
    for (int i = 1; i < ndim; i++)
        inner *= (size_t)count[i];
    for (int64_t i = 0; i < count[0]; i++)
        copy_plainly(packed + (size_t)i * inner, first + i * strides[0], ndim - 1, count + 1,
                     strides + 1, item, is_gather);
}

static void fill_random(char *bytes, size_t n, unsigned *seed)
{
    uint64_t state = UINT64_C(88172645463325252) + *seed;
    for (size_t i = 0; i < n; i += sizeof(state)) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(bytes + i, &state, n - i < sizeof(state) ? n - i : sizeof(state));
    }
    *seed = (unsigned)state;
}

/* Both directions, every byte of both memories compared, also those that must stay. */
static void check(int ndim, const int64_t *count, const int64_t *strides, size_t item,
                  int64_t offset, bool also_scatter)
{
    static char memory[MEMORY_BYTES], memory_plain[MEMORY_BYTES];
    static char packed[MEMORY_BYTES], packed_plain[MEMORY_BYTES];
    unsigned seed = 7;
    fill_random(memory, sizeof(memory), &seed);
    memset(packed, 0, sizeof(packed));
    memset(packed_plain, 0, sizeof(packed_plain));
    block_gather(packed, memory + offset, ndim, count, strides, item);
    copy_plainly(packed_plain, memory + offset, ndim, count, strides, item, true);
    cr_assert(zero(int, memcmp(packed, packed_plain, sizeof(packed))));
    if (!also_scatter)
        return;
    for (int is_streamed = 0; is_streamed < 2; is_streamed++) {
        memcpy(memory_plain, memory, sizeof(memory));
        fill_random(packed, sizeof(packed), &seed);
        block_scatter(memory + offset, packed, ndim, count, strides, item, is_streamed);
        copy_plainly(packed, memory_plain + offset, ndim, count, strides, item, false);
        cr_assert(zero(int, memcmp(memory, memory_plain, sizeof(memory))));
    }
}

Test(block, copies_a_scalar_and_nothing)
{
    int64_t none[] = {0}, strides[] = {8};
    check(0, NULL, NULL, 8, 16, true);
    check(1, none, strides, 8, 0, true);
    int64_t empty[] = {3, 0, 5}, any[] = {800, 80, 8};
    check(3, empty, any, 8, 0, true);
}

Test(block, copies_c_order_fortran_order_and_their_mixtures)
{
    static const size_t items[] = {1, 2, 4, 8};
    for (size_t i = 0; i < 4; i++) {
        int64_t s = (int64_t)items[i];
        int64_t count[] = {7, 33, 65};
        int64_t c[] = {33 * 65 * s, 65 * s, s}, f[] = {s, 7 * s, 7 * 33 * s};
        int64_t mixed[] = {65 * s, 7 * 65 * s, s}, inner[] = {65 * 33 * s, s, 33 * s};
        check(3, count, c, items[i], 0, true);
        check(3, count, f, items[i], 0, true);
        check(3, count, mixed, items[i], 0, true);
        check(3, count, inner, items[i], 0, true);
    }
}

Test(block, copies_gaps_reversals_and_parts)
{
    int64_t count[] = {20, 30}, every_second[] = {4096, 16};
    int64_t reversed[] = {-4096, -8}, part[] = {4096, 8}, one[] = {100}, wide[] = {4096};
    check(2, count, every_second, 8, 0, true);
    check(2, count, reversed, 8, 19 * 4096 + 29 * 8, true);
    check(2, count, part, 8, 0, true);
    check(1, one, wide, 4, 0, true);
}

Test(block, gathers_broadcast_axes)
{
    int64_t count[] = {5, 6, 7}, strides[] = {0, 8, 0}, all[] = {0, 0, 0};
    check(3, count, strides, 8, 64, false);
    check(3, count, all, 8, 64, false);
}

Test(block, copies_many_axes_of_random_order)
{
    unsigned seed = 3;
    for (int round = 0; round < 200; round++) {
        int64_t count[8], strides[8];
        int order[8], ndim = 1 + rand_r(&seed) % 8;
        size_t item = (size_t)1 << rand_r(&seed) % 4;
        for (int i = 0; i < ndim; i++) {
            order[i] = i;
            count[i] = 1 + rand_r(&seed) % 4;
        }
        for (int i = ndim - 1; i > 0; i--) {
            int j = rand_r(&seed) % (i + 1), kept = order[i];
            order[i] = order[j];
            order[j] = kept;
        }
        int64_t stride = (int64_t)item * (1 + rand_r(&seed) % 2), offset = 0;
        for (int i = 0; i < ndim; i++) {
            int axis = order[i];
            strides[axis] = stride;
            stride *= count[axis];
            if (rand_r(&seed) % 3 == 0) {
                offset += strides[axis] * (count[axis] - 1);
                strides[axis] = -strides[axis];
            }
        }
        check(ndim, count, strides, item, offset, true);
    }
}

Test(block, copies_thirty_two_axes)
{
    int64_t count[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
    for (int i = 0; i < ARRAY_MAX_NDIM; i++) {
        count[i] = i % 3 == 0 ? 2 : 1;
        strides[i] = INT64_C(8) << (i / 3);
    }
    check(ARRAY_MAX_NDIM, count, strides, 8, 0, true);
}

Test(block, streams_any_length_at_any_alignment_with_any_hint)
{
    static char from[1024], to[1024], plain[1024];
    unsigned seed = 3;
    fill_random(from, sizeof(from), &seed);
    for (size_t offset = 0; offset < 67; offset++)
        for (size_t n = 0; n < 400; n += n < 140 ? 1 : 37) {
            memset(to, 0, sizeof(to));
            memset(plain, 0, sizeof(plain));
            memcpy(plain + offset, from + 5, n);
            box_copy_past_cache(to + offset, from + 5, n, from, n * (offset % 3));
            cr_assert(zero(int, memcmp(to, plain, sizeof(to))), "%zu bytes at %zu", n, offset);
        }
}

Test(block, knows_what_is_one_run_of_memory)
{
    const int64_t count[] = {3, 1, 4};
    cr_assert(block_is_run(3, count, (const int64_t[]){32, 999, 8}, 8));
    cr_assert(block_is_run(0, NULL, NULL, 8));
    cr_assert(not(block_is_run(3, count, (const int64_t[]){40, 999, 8}, 8)));
    cr_assert(not(block_is_run(3, count, (const int64_t[]){8, 999, 24}, 8)));
    cr_assert(not(block_is_run(3, count, (const int64_t[]){-32, 999, 8}, 8)));
}
