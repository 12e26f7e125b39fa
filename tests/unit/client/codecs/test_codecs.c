/* Codecs and pipelines: there and back, and what damaged or lying bytes get. */
#include "client/codecs/codec.h"

#include <blosc.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint32_t any(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

/* Noise, or what packs well. */
static void fill_bytes(uint8_t *bytes, size_t n, bool is_noise)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = is_noise ? (uint8_t)any() : (uint8_t)(i / 37 + (i % 37 == 0 && any() % 2));
}

static struct codec_step step_of(const char *name, unsigned item_bytes)
{
    struct codec_step step = {.codec = codec_of_name(name)};
    cr_assert(step.codec != NULL, "%s", name);
    if (strcmp(name, "shuffle") == 0) {
        step.n_values = 1;
        step.values[0] = item_bytes;
    } else if (strncmp(name, "bitshuffle", 10) == 0) {
        const uint32_t values[] = {0, 3, item_bytes, 0, any() % 2 ? 2 : 3, 3};
        step.n_values = 6;
        memcpy(step.values, values, sizeof(values));
    } else if (strcmp(name, "szip") == 0) {
        uint32_t bits = item_bytes == 2 || item_bytes == 4 ? 8 * item_bytes : 8;
        const uint32_t values[] = {141, 32, bits, 256};
        step.n_values = 4;
        memcpy(step.values, values, sizeof(values));
    } else if (strcmp(name, "blosc") == 0) {
        const uint32_t values[] = {2, 2, item_bytes, 0, 5, any() % 3, any() % 2 ? 1 : 5};
        step.n_values = 7;
        memcpy(step.values, values, sizeof(values));
    } else if (strcmp(name, "delta") == 0 || strcmp(name, "fixedscaleoffset") == 0) {
        step.dtype = item_bytes == 2   ? DTYPE_INT16
                     : item_bytes == 4 ? DTYPE_UINT32
                     : item_bytes == 8 ? (name[0] == 'd' ? DTYPE_INT64 : DTYPE_INT32)
                                       : DTYPE_UINT8;
        step.stored = step.dtype;
        step.scale = 1;
    }
    return step;
}

static void check_round_trip(const struct codec_pipeline *pipeline, size_t n, bool is_noise)
{
    struct codec_scratch *scratch = codec_scratch_new();
    uint8_t *elements = malloc(n + 1), *again = malloc(n + 1);
    const void *stored;
    size_t n_stored;
    uint32_t skipped;
    unsigned step;
    fill_bytes(elements, n, is_noise);
    cr_assert(
        eq(int, codec_encode(pipeline, scratch, elements, n, &stored, &n_stored, &skipped), 0),
        "%s, %zu bytes", pipeline->steps[0].codec->name, n);
    void *copy = malloc(n_stored + 1);
    memcpy(copy, stored, n_stored);
    memset(again, 0xee, n + 1);
    cr_assert(eq(int, codec_decode(pipeline, skipped, scratch, copy, n_stored, again, n, &step), 0),
              "%s, %zu bytes", pipeline->steps[0].codec->name, n);
    cr_assert(memcmp(elements, again, n) == 0, "%s, %zu bytes", pipeline->steps[0].codec->name, n);
    cr_assert(eq(u8, again[n], 0xee)); /* and not a byte more */
    free(copy);
    free(elements);
    free(again);
    codec_scratch_free(scratch);
}

Test(codecs, give_back_what_they_took)
{
    static const size_t sizes[] = {8, 16, 24, 1000, 4096, 65536 + 40, 300000};
    for (size_t c = 0; codec_at(c); c++) {
        if (!codec_at(c)->encode)
            continue;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
            unsigned step = sizes[i] > 5000 ? 3 : 1;
            for (unsigned item_bytes = 1; item_bytes <= 8; item_bytes += step) {
                struct codec_pipeline pipeline = {.n_steps = 1};
                pipeline.steps[0] = step_of(codec_at(c)->name, item_bytes);
                pipeline.steps[0].is_optional = true;
                check_round_trip(&pipeline, sizes[i] / item_bytes * item_bytes, any() % 2);
            }
        }
    }
}

Test(codecs, go_behind_each_other)
{
    static const char *const packers[] = {"deflate", "zstd", "lz4", "lzf", "blosc"};
    for (size_t i = 0; i < sizeof(packers) / sizeof(*packers); i++) {
        struct codec_pipeline pipeline = {.n_steps = 3};
        pipeline.steps[0] = step_of("shuffle", 4);
        pipeline.steps[1] = step_of(packers[i], 4);
        pipeline.steps[1].is_optional = true;
        pipeline.steps[2] = step_of("fletcher32", 4);
        for (int round = 0; round < 20; round++)
            check_round_trip(&pipeline, 4 + any() % 20000, round % 2);
    }
}

/* As floats are: the low bytes of items are noise, the high ones hardly change. */
static void fill_items(uint8_t *bytes, size_t n, unsigned item_bytes, unsigned n_noise)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = i % item_bytes < n_noise ? (uint8_t)any() : (uint8_t)(i / item_bytes / 50);
}

/* Of a damaged frame what the library gives, or a fault. */
static void check_frame(const struct codec_pipeline *pipeline, struct codec_scratch *scratch,
                        const uint8_t *frame, size_t n_frame, size_t n, bool is_sound)
{
    uint8_t *got = malloc(n + 1), *want = malloc(n + 1), *exact = malloc(n_frame);
    size_t n_claimed;
    unsigned step;
    memcpy(exact, frame, n_frame);
    got[n] = 0xee;
    int r = codec_decode(pipeline, 0, scratch, exact, n_frame, got, n, &step);
    cr_assert(r == 0 || !is_sound);
    cr_assert(eq(u8, got[n], 0xee));
    if (r == 0) {
        cr_assert(blosc_cbuffer_validate(exact, n_frame, &n_claimed) == 0 && n_claimed == n);
        cr_assert(eq(int, blosc_decompress_ctx(exact, want, n, 1), (int)n));
        cr_assert(memcmp(got, want, n) == 0);
    }
    free(exact);
    free(want);
    free(got);
}

Test(codecs, unpack_frames_of_blosc_as_its_library_does)
{
    static const unsigned items[] = {1, 2, 3, 4, 5, 8, 12, 16, 17, 40};
    static const char *const names[] = {"lz4", "lz4hc", "blosclz", "zlib", "zstd"};
    struct codec_pipeline pipeline = {.n_steps = 1, .steps = {step_of("blosc", 4)}};
    struct codec_scratch *scratch = codec_scratch_new();
    for (int round = 0; round < 400; round++) {
        unsigned item_bytes = items[any() % 10];
        size_t n = 1 + any() % (round % 8 ? 20000 : 300000), room = n + BLOSC_MAX_OVERHEAD;
        size_t block = round % 3 ? 0 : any() % 2 ? item_bytes * (1 + any() % 400) : any() % 5000;
        uint8_t *elements = malloc(n), *frame = malloc(room);
        fill_items(elements, n, item_bytes, any() % (item_bytes + 1));
        int n_frame = blosc_compress_ctx((int)(any() % 10), (int)(any() % 3), item_bytes, n,
                                         elements, frame, room, names[any() % 7 % 5], block, 1);
        cr_assert(n_frame > 0);
        check_frame(&pipeline, scratch, frame, (size_t)n_frame, n, true);
        for (int i = 0; i < 6; i++) {
            uint32_t at = i < 3 ? any() % (uint32_t)n_frame : any() % 60 % (uint32_t)n_frame;
            uint8_t was = frame[at];
            frame[at] = (uint8_t)(i % 2 ? any() : was ^ 1u << any() % 8);
            check_frame(&pipeline, scratch, frame, (size_t)n_frame, n, frame[at] == was);
            frame[at] = was;
        }
        uint32_t n_cut = 1 + any() % (uint32_t)n_frame; /* and it says so itself */
        for (int i = 0; i < 4 && n_cut >= BLOSC_MIN_HEADER_LENGTH; i++)
            frame[12 + i] = (uint8_t)(n_cut >> 8 * i);
        check_frame(&pipeline, scratch, frame, n_cut, n, n_cut == (uint32_t)n_frame);
        free(frame);
        free(elements);
    }
    codec_scratch_free(scratch);
}

Test(codecs, skip_steps_that_do_not_help)
{
    struct codec_pipeline pipeline = {.n_steps = 2};
    struct codec_scratch *scratch = codec_scratch_new();
    uint8_t noise[5000], again[5000];
    const void *stored;
    size_t n_stored;
    uint32_t skipped;
    unsigned step;
    fill_bytes(noise, sizeof(noise), true);
    pipeline.steps[0] = step_of("lzf", 1);
    pipeline.steps[0].is_optional = true;
    pipeline.steps[1] = step_of("fletcher32", 1);
    cr_assert(eq(
        int, codec_encode(&pipeline, scratch, noise, sizeof(noise), &stored, &n_stored, &skipped),
        0));
    cr_assert(eq(u32, skipped, 1));
    cr_assert(eq(sz, n_stored, sizeof(noise) + 4));
    cr_assert(
        eq(int,
           codec_decode(&pipeline, skipped, scratch, stored, n_stored, again, sizeof(again), &step),
           0));
    cr_assert(memcmp(noise, again, sizeof(noise)) == 0);
    codec_scratch_free(scratch);
}

/* A chunk of more elements than there is room for. */
Test(codecs, refuse_chunks_that_are_too_long_or_too_short)
{
    enum { N = 40000 };
    static uint8_t elements[N], again[N];
    struct codec_scratch *scratch = codec_scratch_new();
    fill_bytes(elements, N, false);
    for (size_t c = 0; codec_at(c); c++) {
        if (!codec_at(c)->encode)
            continue;
        struct codec_pipeline pipeline = {.n_steps = 1};
        const void *stored;
        size_t n_stored;
        uint32_t skipped;
        unsigned step;
        pipeline.steps[0] = step_of(codec_at(c)->name, 4);
        cr_assert(eq(
            int, codec_encode(&pipeline, scratch, elements, N, &stored, &n_stored, &skipped), 0));
        void *copy = malloc(n_stored);
        memcpy(copy, stored, n_stored);
        cr_assert(
            ne(int, codec_decode(&pipeline, 0, scratch, copy, n_stored, again, N - 4, &step), 0),
            "%s", codec_at(c)->name);
        cr_assert(eq(int, codec_decode(&pipeline, 0, scratch, copy, n_stored, again, N, &step), 0));
        uint8_t *more = malloc(N + 4);
        cr_assert(
            ne(int, codec_decode(&pipeline, 0, scratch, copy, n_stored, more, N + 4, &step), 0),
            "%s", codec_at(c)->name);
        free(more);
        free(copy);
    }
    codec_scratch_free(scratch);
}

/* Cut anywhere, bits turned anywhere, parameters of all kinds: an error or other elements, never a
 * byte beyond the chunk (which the sanitizers see). */
Test(codecs, survive_damage)
{
    enum { N = 6000 };
    static uint8_t elements[N];
    struct codec_scratch *scratch = codec_scratch_new();
    for (size_t c = 0; codec_at(c); c++) {
        if (!codec_at(c)->encode)
            continue;
        for (int round = 0; round < 120; round++) {
            struct codec_pipeline pipeline = {.n_steps = 1};
            const void *stored;
            size_t n_stored;
            uint32_t skipped;
            unsigned step;
            fill_bytes(elements, N, round % 3 == 0);
            pipeline.steps[0] = step_of(codec_at(c)->name, 1u << round % 4);
            pipeline.steps[0].is_optional = true;
            cr_assert(
                eq(int, codec_encode(&pipeline, scratch, elements, N, &stored, &n_stored, &skipped),
                   0));
            size_t n_cut = round % 2 ? n_stored : any() % (n_stored + 1);
            uint8_t *copy = malloc(n_cut + !n_cut), *again = malloc(N);
            memcpy(copy, stored, n_cut);
            for (int k = 0; n_cut > 0 && k < 1 + round % 5; k++)
                copy[round % 7 ? any() % n_cut : any() % (n_cut < 24 ? n_cut : 24)] ^=
                    (uint8_t)(1u << any() % 8);
            if (round % 11 == 0)
                for (unsigned i = 0; i < pipeline.steps[0].n_values; i++)
                    pipeline.steps[0].values[i] = any() >> any() % 32;
            (void)!codec_decode(&pipeline, skipped, scratch, copy, n_cut, again, N, &step);
            free(copy);
            free(again);
        }
    }
    codec_scratch_free(scratch);
}

Test(codecs, find_a_wrong_checksum)
{
    struct codec_pipeline pipeline = {.n_steps = 1};
    struct codec_scratch *scratch = codec_scratch_new();
    uint8_t elements[777], again[777];
    const void *stored;
    size_t n_stored;
    uint32_t skipped;
    unsigned step;
    fill_bytes(elements, sizeof(elements), true);
    pipeline.steps[0] = step_of("fletcher32", 1);
    cr_assert(eq(
        int,
        codec_encode(&pipeline, scratch, elements, sizeof(elements), &stored, &n_stored, &skipped),
        0));
    uint8_t copy[sizeof(elements) + 4];
    cr_assert(eq(sz, n_stored, sizeof(copy)));
    for (size_t i = 0; i < sizeof(copy); i++) {
        memcpy(copy, stored, sizeof(copy));
        copy[i] ^= 0x10;
        cr_assert(
            eq(int,
               codec_decode(&pipeline, 0, scratch, copy, sizeof(copy), again, sizeof(again), &step),
               CODEC_FAULT_CHECKSUM));
    }
    codec_scratch_free(scratch);
}

Test(codecs, are_found_by_number_and_name)
{
    cr_assert(codec_of_hdf5(32015) == codec_of_name("zstd"));
    cr_assert(codec_of_zarr("zlib") == codec_of_name("deflate"));
    cr_assert(codec_of_hdf5(0) == NULL && codec_of_zarr("none") == NULL);
    cr_assert(eq(str, (char *)codec_elsewhere(32013)->name, "zfp"));
    cr_assert(codec_elsewhere(4711) == NULL);
    for (size_t i = 0; codec_elsewhere_at(i); i++) /* what is here is not elsewhere */
        cr_assert(codec_of_hdf5(codec_elsewhere_at(i)->hdf5_id) == NULL);
}
