/* Splicing maps: the three forms of a header. */
#include "daemon/broker/sessions/splice.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <msgpack.h>

static void check(unsigned n_pairs, size_t n_header_bytes)
{
    msgpack_sbuffer buffer;
    msgpack_packer packer;
    uint32_t n_found;
    const char *pairs;
    size_t n_bytes;

    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    msgpack_pack_map(&packer, n_pairs);
    for (unsigned i = 0; i < 2 * n_pairs; i++)
        msgpack_pack_nil(&packer);
    splice_map(buffer.data, buffer.size, &n_found, &pairs, &n_bytes);
    cr_assert(eq(u32, n_found, n_pairs));
    cr_assert(eq(ptr, (void *)pairs, buffer.data + n_header_bytes));
    cr_assert(eq(sz, n_bytes, 2 * n_pairs));
    msgpack_sbuffer_destroy(&buffer);
}

Test(splice, finds_the_pairs_behind_every_form_of_header)
{
    check(0, 1);
    check(15, 1);
    check(16, 3);
    check(65535, 3);
    check(65536, 5);
}
