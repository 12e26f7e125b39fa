#include "daemon/worker/cuda/card_sizes.h"
#include "kernels/cuda/product/multiply.h"
#include "kernels/cuda/tile.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#define MIB UINT64_C(1048576)
#define GIB (1024 * MIB)

static struct gad_error error;

static struct card_room room_of(uint64_t device_total, uint64_t device_free, uint64_t host_total,
                                uint64_t host_available)
{
    return (struct card_room){device_total, device_free, host_total, host_available, ""};
}

static struct card_sizes chosen(struct card_config config, struct card_room room)
{
    struct card_sizes sizes;
    cr_assert(eq(int, card_sizes_choose(&config, &room, &sizes, &error), 0), "%s", error.message);
    return sizes;
}

static int refused(struct card_config config, struct card_room room)
{
    struct card_sizes sizes;
    error = (struct gad_error){0};
    return card_sizes_choose(&config, &room, &sizes, &error);
}

static const struct card_config nothing_set = {.depth = 0};

Test(sizes, a_large_machine_gives_what_is_polite)
{
    struct card_sizes s = chosen(nothing_set, room_of(80 * GIB, 70 * GIB, 256 * GIB, 200 * GIB));
    cr_assert(eq(u64, s.device_bytes, 1600 * MIB));
    cr_assert(eq(u64, s.workspace_bytes, CUDA_BLAS_WORKSPACE_BYTES));
    cr_assert(eq(u64, s.pinned_bytes, 512 * MIB));
}

Test(sizes, a_small_card_gives_a_quarter_and_half_of_what_is_free)
{
    struct card_sizes s = chosen(nothing_set, room_of(2 * GIB, 2 * GIB, 64 * GIB, 60 * GIB));
    cr_assert(eq(u64, s.device_bytes, 512 * MIB));
    s = chosen(nothing_set, room_of(24 * GIB, 300 * MIB, 64 * GIB, 60 * GIB));
    cr_assert(eq(u64, s.device_bytes, 150 * MIB));
    cr_assert(eq(u64, s.workspace_bytes, 150 * MIB / 8));
    cr_assert(eq(u64, s.pinned_bytes, 86 * MIB)); /* more would not be used */
}

Test(sizes, a_small_host_gives_an_eighth_and_a_quarter_of_what_is_available)
{
    struct card_sizes s = chosen(nothing_set, room_of(24 * GIB, 20 * GIB, 2 * GIB, 2 * GIB));
    cr_assert(eq(u64, s.pinned_bytes, 256 * MIB));
    s = chosen(nothing_set, room_of(24 * GIB, 20 * GIB, 16 * GIB, 400 * MIB));
    cr_assert(eq(u64, s.pinned_bytes, 100 * MIB));
    s = chosen(nothing_set, room_of(24 * GIB, 20 * GIB, 0, 0)); /* not known */
    cr_assert(eq(u64, s.pinned_bytes, 512 * MIB));
}

Test(sizes, what_is_set_is_taken_as_it_is)
{
    struct card_config config = {.device_bytes = 5 * GIB + 12345, .pinned_bytes = 3 * GIB};
    struct card_sizes s = chosen(config, room_of(24 * GIB, 6 * GIB, 8 * GIB, 4 * GIB));
    cr_assert(eq(u64, s.device_bytes, 5 * GIB)); /* whole slots of the smallest kind */
    cr_assert(eq(u64, s.pinned_bytes, 3 * GIB));
}

Test(sizes, a_pool_over_the_free_memory_is_refused_with_both_numbers_and_who_holds_it)
{
    struct card_config config = {.device_bytes = 7 * GIB};
    struct card_room room = room_of(24 * GIB, 6 * GIB, 8 * GIB, 4 * GIB);
    room.holders = "pid 77 (python3) 19327352832 bytes";
    cr_assert(eq(int, refused(config, room), GAD_NO_MEMORY));
    cr_assert(eq(str, error.argument, (char *)"device-bytes"));
    cr_assert(eq(str, error.expected, (char *)"7516192768 bytes free"));
    cr_assert(eq(str, error.found, (char *)"6442450944 bytes free of 25769803776"));
    cr_assert(ne(ptr, strstr(error.message, "pid 77 (python3) 19327352832 bytes"), NULL));
}

Test(sizes, a_full_card_is_refused_even_by_choice)
{
    cr_assert(
        eq(int, refused(nothing_set, room_of(24 * GIB, 9 * MIB, 8 * GIB, 4 * GIB)), GAD_NO_MEMORY));
    cr_assert(eq(str, error.found, (char *)"9437184 bytes free of 25769803776"));
}

Test(sizes, a_pinned_pool_over_the_available_memory_is_refused)
{
    struct card_config config = {.pinned_bytes = 5 * GIB};
    cr_assert(
        eq(int, refused(config, room_of(24 * GIB, 20 * GIB, 8 * GIB, 4 * GIB)), GAD_NO_MEMORY));
    cr_assert(eq(str, error.argument, (char *)"pinned-bytes"));
    cr_assert(eq(str, error.expected, (char *)"5368709120 bytes available"));
    cr_assert(eq(str, error.found, (char *)"4294967296 bytes available of 8589934592"));
}

Test(sizes, settings_out_of_range_are_refused)
{
    struct card_room room = room_of(24 * GIB, 20 * GIB, 8 * GIB, 4 * GIB);
    const struct {
        struct card_config config;
        const char *argument;
    } cases[] = {
        {{.device_bytes = 12 * MIB - 1}, "device-bytes"},
        {{.pinned_bytes = 10 * MIB - 1}, "pinned-bytes"},
        {{.pinned_bytes = 1}, "pinned-bytes"},
        {{.chunk_bytes = MIB}, "chunk-bytes"},
        {{.chunk_bytes = 32 * MIB}, "chunk-bytes"},
        {{.chunk_bytes = 3 * MIB}, "chunk-bytes"},
        {{.depth = 2}, "depth"},
        {{.depth = 17}, "depth"},
    };
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert(eq(int, refused(cases[i].config, room), GAD_LIMIT_EXCEEDED), "case %u", i);
        cr_assert(eq(str, error.argument, (char *)cases[i].argument));
        cr_assert(ne(str, error.found, (char *)""));
    }
}

static void cut(struct card_sizes *s, uint64_t chunk_bytes, double overhead_seconds,
                double turn_seconds, double rate)
{
    const struct card_pace pace = {overhead_seconds, turn_seconds, rate};
    card_sizes_cut(s, chunk_bytes, &pace);
}

Test(sizes, the_slot_is_the_least_that_reaches_the_rate)
{
    struct card_sizes s = {.device_bytes = GIB, .pinned_bytes = 512 * MIB};
    /* 19 times overhead times rate: 19 * 10 us * 25 GB/s = 4.75 MB */
    cut(&s, 0, 10e-6, 0, 25e9);
    cr_assert(eq(u64, s.slot_bytes, 8 * MIB));
    cut(&s, 0, 0, 0, 25e9);
    cr_assert(eq(u64, s.slot_bytes, CUDA_SLOT_MIN_BYTES));
    cut(&s, 0, 1e-3, 0, 25e9);
    cr_assert(eq(u64, s.slot_bytes, CARD_MAX_SLOT_BYTES));
    cut(&s, 4 * MIB, 1e-3, 0, 25e9);
    cr_assert(eq(u64, s.slot_bytes, 4 * MIB));
}

/* 40 turns of 20 us: 9.6 MB at 12 GB/s; and there are slots for everyone. */
Test(sizes, the_slot_is_worth_the_hosts_turn)
{
    struct card_sizes s = {.device_bytes = GIB, .pinned_bytes = 512 * MIB};
    cut(&s, 0, 1e-6, 20e-6, 12e9);
    cr_assert(eq(u64, s.slot_bytes, 16 * MIB));
    cr_assert(eq(u64, s.pool_bytes, 31 * 16 * MIB));
    cut(&s, 0, 1e-6, 20e-6, 6e9);
    cr_assert(eq(u64, s.slot_bytes, 8 * MIB));
    cut(&s, 2 * MIB, 1e-6, 20e-6, 12e9);
    cr_assert(eq(u64, s.slot_bytes, 2 * MIB));
    s = (struct card_sizes){.device_bytes = GIB, .pinned_bytes = 128 * MIB};
    cut(&s, 0, 1e-6, 20e-6, 12e9);
    cr_assert(eq(u64, s.slot_bytes, 4 * MIB));
    cut(&s, 0, 30e-6, 20e-6, 12e9); /* overheads count all the same */
    cr_assert(eq(u64, s.slot_bytes, 8 * MIB));
}

Test(sizes, the_pool_is_whole_slots_without_the_main_threads)
{
    struct card_sizes s = {.device_bytes = GIB, .pinned_bytes = 101 * MIB};
    cut(&s, 8 * MIB, 0, 0, 1e9);
    cr_assert(eq(u64, s.pool_bytes, 88 * MIB)); /* of 12 whole ones */
    s = (struct card_sizes){.device_bytes = 35 * MIB, .pinned_bytes = GIB};
    s.workspace_bytes = 5 * MIB;
    cut(&s, 16 * MIB, 0, 0, 1e9);
    cr_assert(eq(u64, s.slot_bytes, 4 * MIB)); /* so that there are at least four */
    cr_assert(eq(u64, s.pool_bytes, 16 * MIB));
    cr_assert(eq(u64, s.carry_bytes, 10 * MIB));
}

/* Nothing of the device is left over, and carries of products have a third of it at least. */
Test(sizes, what_slots_do_not_have_of_the_device_is_for_products)
{
    const struct card_room room = room_of(80 * GIB, 70 * GIB, 256 * GIB, 200 * GIB);
    const struct {
        struct card_config config;
        uint64_t least_bytes;
    } rows[] = {
        {{.depth = 0}, 479 * MIB},
        {{.device_bytes = 8 * GIB}, 7 * GIB},
        {{.device_bytes = 8 * GIB, .pinned_bytes = 4 * GIB}, 3 * GIB},
        {{.device_bytes = 8 * GIB, .pinned_bytes = 16 * GIB}, 2 * GIB},
        {{.device_bytes = 64 * MIB, .pinned_bytes = 64 * MIB}, 18 * MIB},
        {{.device_bytes = 24 * MIB, .pinned_bytes = 10 * MIB, .chunk_bytes = 8 * MIB}, 7 * MIB},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct card_sizes s = chosen(rows[i].config, room);
        cut(&s, rows[i].config.chunk_bytes, 10e-6, 0, 25e9);
        uint64_t usable = s.device_bytes - s.workspace_bytes;
        cr_assert(eq(u64, s.pool_bytes + s.slot_bytes + s.carry_bytes, usable), "row %u", i);
        cr_assert(le(u64, s.pool_bytes + s.slot_bytes, s.pinned_bytes), "row %u", i);
        cr_assert(ge(u64, s.carry_bytes, rows[i].least_bytes), "row %u: %llu", i,
                  (unsigned long long)s.carry_bytes);
        cr_assert(ge(u64, s.carry_bytes, usable / 3), "row %u", i);
    }
}

Test(sizes, the_smallest_slabs_have_four_slots)
{
    struct card_config config = {.device_bytes = 12 * MIB, .pinned_bytes = 10 * MIB};
    struct card_sizes s = chosen(config, room_of(24 * GIB, 20 * GIB, 8 * GIB, 4 * GIB));
    cut(&s, 0, 1e-3, 0, 25e9);
    cr_assert(eq(u64, s.slot_bytes, CUDA_SLOT_MIN_BYTES));
    cr_assert(eq(u64, s.pool_bytes, 4 * (uint64_t)CUDA_SLOT_MIN_BYTES));
    cr_assert(eq(u64, s.carry_bytes, MIB / 2)); /* and products little */
    cr_assert(eq(u32, card_sizes_depth(&s, 0, 1, 25e9), 3));
}

Test(sizes, the_depth_covers_the_hosts_turn_and_leaves_a_slot)
{
    struct card_sizes s = {.slot_bytes = 8 * MIB, .pool_bytes = 504 * MIB};
    cr_assert(eq(u32, card_sizes_depth(&s, 0, 30e-6, 25e9), 4));
    cr_assert(
        eq(u32, card_sizes_depth(&s, 0, 1e-3, 25e9), 6)); /* 2.98 slots are copied meanwhile */
    cr_assert(eq(u32, card_sizes_depth(&s, 0, 10, 25e9), CARD_MAX_DEPTH));
    cr_assert(eq(u32, card_sizes_depth(&s, 5, 10, 25e9), 5));
    s.pool_bytes = 32 * MIB;
    cr_assert(eq(u32, card_sizes_depth(&s, 16, 10, 25e9), 3));
}

Test(sizes, the_hosts_memory_is_known_here)
{
    uint64_t total, available;
    card_host_memory(&total, &available);
    cr_assert(lt(u64, 0, total));
    cr_assert(lt(u64, 0, available));
    cr_assert(ge(u64, total, available));
}
