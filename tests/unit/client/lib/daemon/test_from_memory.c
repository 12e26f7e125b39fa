/* Views of shared memory, arrays that are not cleared, byte orders and overlap, with a real daemon.
 */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <byteswap.h>
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

TestSuite(from_memory, .init = set_up, .fini = tear_down, .timeout = 60);

#define N 300000 /* float64 that do not travel in a message */

static struct gad_array *shared(int64_t n)
{
    struct gad_array *array;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 1, &n, &array, &error)), "%s",
              error.message);
    for (int64_t i = 0; i < n; i++)
        ((double *)gad_array_data(array))[i] = (double)i;
    return array;
}

static struct gad_array *view(const struct gad_layout *layout, void *data, bool is_writable)
{
    struct gad_array *array;
    struct gad_error error = {0};
    cr_assert(
        zero(int, (int)gad_array_from_memory(client, layout, data, is_writable, &array, &error)),
        "%s", error.message);
    return array;
}

static const char *access_of(const struct gad_array *array)
{
    return gad_array_info(array)->access;
}

static double swapped(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    bits = bswap_64(bits);
    memcpy(&value, &bits, sizeof(bits));
    return value;
}

Test(from_memory, uses_views_of_shared_memory_where_they_are)
{
    struct gad_array *whole = shared(N);
    double *data = gad_array_data(whole);
    int64_t third[] = {N / 3}, by_three[] = {-24}, one[] = {1000}, none[] = {0};
    struct gad_array *reversed = wrap(data + N - 1, 1, third, by_three);
    struct gad_array *same = wrap(data + 7, 1, one, none);
    struct gad_array *to = shared(N / 3);
    const struct gad_array_info *info = gad_array_info(reversed);
    cr_assert(eq(str, (char *)info->access, (char *)"region"));
    cr_assert(eq(str, (char *)info->format, (char *)"region"));
    cr_assert(eq(i64, info->strides[0], -24));
    cr_assert(eq(ptr, gad_array_data(reversed), data + N - 1));
    run_well("a * 2", reversed, to, NULL);
    for (int i = 0; i < N / 3; i++)
        cr_assert(eq(dbl, ((double *)gad_array_data(to))[i], 2 * data[N - 1 - 3 * i]));
    cr_assert(eq(dbl, ask("sum(a)", same), 7000));
    gad_array_release(whole); /* while views are there nobody may; the bytes stay until reuse */
    gad_array_release(reversed);
    gad_array_release(same);
    gad_array_release(to);
}

Test(from_memory, runs_small_jobs_in_one_message_each_way)
{
    struct gad_array *small = shared(1000), *large = shared(N);
    for (int i = 0; i < 2; i++) {
        struct gad_array *a = i ? large : small;
        struct gad_argument args[] = {{.name = "a", .array = a}};
        struct gad_output outputs[] = {{.expr = "a + 1", .to = a}};
        struct gad_job_options options = {
            .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
        struct gad_job *job;
        cr_assert(zero(int, (int)gad_submit(client, &options, &job, NULL)));
        while (gad_job_id(job) == 0)
            (void)!gad_dispatch(client, -1, NULL);
        cr_assert(i == 1 || gad_job_is_done(job), "its number came with its end");
        cr_assert(zero(int, (int)gad_job_wait(job, -1, NULL)));
        cr_assert(eq(dbl, ((double *)gad_array_data(a))[999], 1000));
        gad_job_free(job);
    }
    gad_array_release(small);
    gad_array_release(large);
}

Test(from_memory, wants_no_alignment)
{
    struct gad_array *whole = shared(N);
    char *data = gad_array_data(whole);
    int64_t n = N / 2, step = 9;
    struct gad_layout odd = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n, .strides = &step};
    struct gad_array *a = view(&odd, data + 3, true), *to = view(&odd, data + 3, true);
    double value = 1.5;
    for (int64_t i = 0; i < n; i++)
        memcpy(data + 3 + 9 * i, &value, sizeof(value));
    cr_assert(eq(str, (char *)access_of(a), (char *)"region"));
    run_well("a * 3", a, to, NULL);
    for (int64_t i = 0; i < n; i++) {
        memcpy(&value, data + 3 + 9 * i, sizeof(value));
        cr_assert(eq(dbl, value, 4.5));
    }
    gad_array_release(a);
    gad_array_release(to);
    gad_array_release(whole);
}

Test(from_memory, takes_only_what_lies_whole_in_a_region_as_shared)
{
    struct gad_array *whole = shared(N), *array;
    double *data = gad_array_data(whole), outside[4] = {1, 2, 3, 4};
    int64_t four = 4, much = INT64_C(1) << 20, wide = INT64_C(1) << 40, none = 0;
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &four};
    struct gad_client *other;
    cr_assert(zero(int, (int)gad_connect(NULL, &other, NULL)));
    cr_assert(zero(int, (int)gad_array_from_memory(other, &layout, data, true, &array, NULL)));
    cr_assert(eq(str, (char *)access_of(array), (char *)"memory"), "of another client");
    gad_array_release(array);
    gad_close(other);
    array = view(&layout, outside, true);
    cr_assert(eq(str, (char *)access_of(array), (char *)"memory"));
    gad_array_release(array);
    layout.shape = &much; /* ends beyond the region: nothing may read it, but it can be described */
    array = view(&layout, data, false);
    cr_assert(eq(str, (char *)access_of(array), (char *)"memory"));
    gad_array_release(array);
    layout.shape = &none;
    array = view(&layout, NULL, true);
    cr_assert(zero(ptr, gad_array_data(array)), "without elements");
    gad_array_release(array);
    layout.shape = &four;
    layout.strides = &wide;
    struct gad_error error;
    cr_assert(zero(int, (int)gad_array_from_memory(client, &layout, data, true, &array, &error)));
    gad_array_release(array);
    int64_t down = -(INT64_C(1) << 60);
    layout.strides = &down;
    cr_assert(eq(int, (int)gad_array_from_memory(client, &layout, data, true, &array, &error),
                 GAD_BAD_EXTENT));
    cr_assert(eq(str, error.argument, "strides"));
    cr_assert(eq(int, (int)gad_array_from_memory(client, NULL, data, true, &array, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, (int)gad_array_from_memory(client, &layout, data, true, NULL, &error),
                 GAD_BAD_ARGUMENT));
    gad_array_release(whole);
}

Test(from_memory, decides_overlap_alike_for_shared_and_ordinary_memory)
{
    double *heap = calloc(N, sizeof(double));
    struct gad_array *whole = shared(N);
    double *memories[] = {gad_array_data(whole), heap};
    int64_t half[] = {N / 2}, wide[] = {16}, back[] = {-8};
    struct gad_error error = {0};
    for (int m = 0; m < 2; m++) {
        double *data = memories[m];
        for (int i = 0; i < N; i++)
            data[i] = i;
        struct gad_array *low = wrap(data, 1, half, NULL), *again = wrap(data, 1, half, NULL);
        struct gad_array *even = wrap(data, 1, half, wide), *odd = wrap(data + 1, 1, half, wide);
        struct gad_array *next = wrap(data + 1, 1, half, NULL);
        struct gad_array *turned = wrap(data + N / 2 - 1, 1, half, back);
        run_well("a + 1", low, again, NULL);
        cr_assert(eq(dbl, data[N / 2 - 1], N / 2), "in place");
        run_well("a - mean(a)", low, again, NULL);
        cr_assert(eq(dbl, data[0], 1 - (N / 2 + 1) / 2.0));
        run_well("a * 2", even, odd, NULL);
        cr_assert(eq(dbl, data[1], 2 * data[0]), "interleaved");
        cr_assert(eq(int, (int)run("a + 1", low, next, NULL, &error), GAD_OVERLAPPING_OUTPUT));
        cr_assert(eq(str, error.argument, "outputs[0]"));
        cr_assert(eq(int, (int)run("a + 1", low, turned, NULL, &error), GAD_OVERLAPPING_OUTPUT));
        cr_assert(eq(int, (int)run("a + 1", low, even, NULL, &error), GAD_OVERLAPPING_OUTPUT));
        struct gad_array *all[] = {low, again, even, odd, next, turned};
        for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
            gad_array_release(all[i]);
    }
    gad_array_release(whole);
    free(heap);
}

Test(from_memory, sees_overlap_of_shared_memory_with_itself_through_a_ring)
{
    struct gad_array *whole = shared(N), *foreign, *shifted;
    double *data = gad_array_data(whole);
    int64_t n = N, less = N - 1;
    struct gad_client *other;
    struct gad_error error = {0};
    struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n};
    struct gad_layout rest = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &less};
    cr_assert(zero(int, (int)gad_connect(NULL, &other, NULL)));
    cr_assert(zero(int, (int)gad_array_from_memory(other, &layout, data, true, &foreign, NULL)));
    run_well("a - mean(a)", foreign, whole, NULL); /* read through a ring, written in place */
    cr_assert(eq(dbl, data[N - 1], (N - 1) / 2.0));
    run_well("a + mean(a) + 1", whole, foreign, NULL);
    cr_assert(eq(dbl, data[N - 1], (N - 1) / 2.0 + 1));
    cr_assert(zero(int, (int)gad_array_from_memory(other, &rest, data + 1, true, &shifted, NULL)));
    struct gad_array *low = wrap(data, 1, &less, NULL);
    cr_assert(eq(int, (int)run("a", shifted, low, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    cr_assert(eq(int, (int)run("a", low, shifted, NULL, &error), GAD_OVERLAPPING_OUTPUT));
    gad_array_release(low);
    gad_array_release(shifted);
    gad_array_release(foreign);
    gad_array_release(whole);
    gad_close(other);
}

Test(from_memory, keeps_outputs_out_of_what_cannot_be_written)
{
    struct gad_array *whole = shared(N);
    double *data = gad_array_data(whole);
    int64_t n = 1000, step = 0, windows[] = {100, 10}, crossing[] = {8, 8}, one = 1;
    struct gad_layout plain = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = &n};
    struct gad_layout repeated = plain, window = plain, single = plain;
    repeated.strides = single.strides = &step;
    single.shape = &one;
    window.ndim = 2;
    window.shape = windows;
    window.strides = crossing;
    struct gad_array *a = view(&plain, data, false), *r = view(&repeated, data, true);
    struct gad_array *w = view(&window, data, true), *s = view(&single, data + 5000, true);
    struct gad_error error = {0};
    cr_assert(eq(int, (int)run("a", a, a, NULL, &error), GAD_READ_ONLY));
    cr_assert(eq(int, (int)run("3", a, r, NULL, &error), GAD_BAD_EXTENT));
    cr_assert(eq(int, (int)run("3", a, w, NULL, &error), GAD_BAD_EXTENT));
    cr_assert(eq(str, error.argument, "outputs[0]"));
    cr_assert(eq(dbl, ask("sum(a)", w), 100 * 45 + 10 * 4950), "but they can be read");
    run_well("a + 1", s, s, NULL);
    cr_assert(eq(dbl, data[5000], 5001), "a stride that is never used is no matter");
    struct gad_array *all[] = {whole, a, r, w, s};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        gad_array_release(all[i]);
}

/* Source and output in the other byte order: inline, through rings, in regions, in files. */
Test(from_memory, honours_the_other_byte_order_everywhere)
{
    struct gad_array *region = shared(2 * N);
    double *heap = malloc(2 * N * sizeof(double)), *shared_data = gad_array_data(region);
    int64_t sizes[] = {5, 1000, N};
    for (size_t k = 0; k < 2 * ARRAY_LENGTH(sizes); k++) {
        int64_t n = sizes[k / 2], back = -8;
        double *data = k % 2 ? heap : shared_data;
        struct gad_layout from = {
            .dtype = GAD_FLOAT64, .is_swapped = true, .ndim = 1, .shape = &n, .strides = &back};
        struct gad_layout into = {.dtype = GAD_FLOAT64, .is_swapped = true, .ndim = 1, .shape = &n};
        struct gad_array *a = view(&from, data + n - 1, false), *r = view(&into, data + n, true);
        cr_assert(gad_array_info(a)->is_swapped);
        for (int64_t i = 0; i < n; i++)
            data[i] = swapped((double)i);
        run_well("a + 0.5", a, r, NULL);
        for (int64_t i = 0; i < n; i++)
            cr_assert(eq(dbl, swapped(data[n + i]), (double)(n - 1 - i) + 0.5));
        cr_assert(eq(dbl, ask("max(a)", r), (double)n - 0.5));
        gad_array_release(a);
        gad_array_release(r);
    }
    uint8_t byte = 200, twice = 0;
    struct gad_layout scalar = {.dtype = GAD_UINT8, .is_swapped = true};
    struct gad_array *b = view(&scalar, &byte, false), *to = view(&scalar, &twice, true);
    cr_assert(not(gad_array_info(b)->is_swapped), "a byte has no order");
    run_well("a + 1", b, to, NULL);
    cr_assert(eq(u8, twice, 201));
    gad_array_release(b);
    gad_array_release(to);
    gad_array_release(region);
    free(heap);
}

Test(from_memory, casts_into_the_other_byte_order_with_every_item_size)
{
    static const struct {
        enum gad_dtype dtype;
        unsigned n_bytes;
    } kinds[] = {{GAD_INT16, 2}, {GAD_UINT32, 4}, {GAD_INT64, 8}};
    enum { M = 70000 };
    unsigned char *out = malloc(M * 8);
    int64_t n = M;
    struct gad_array *a = shared(M);
    for (size_t k = 0; k < ARRAY_LENGTH(kinds); k++) {
        struct gad_layout layout = {
            .dtype = kinds[k].dtype, .is_swapped = true, .ndim = 1, .shape = &n};
        struct gad_array *r = view(&layout, out, true);
        const char *names[] = {"astype(a % 30000, int16)", "astype(a, uint32)", "astype(a, int64)"};
        run_well(names[k], a, r, NULL);
        for (int i = 0; i < M; i++) {
            uint64_t value = 0;
            for (unsigned j = 0; j < kinds[k].n_bytes; j++)
                value = value << 8 | out[(unsigned)i * kinds[k].n_bytes + j];
            cr_assert(eq(u64, value, (uint64_t)(k == 0 ? i % 30000 : i)));
        }
        gad_array_release(r);
    }
    gad_array_release(a);
    free(out);
}

Test(from_memory, gives_memory_that_is_not_cleared_to_who_asks)
{
    int64_t n = N;
    struct gad_array *a;
    struct gad_error error;
    cr_assert(zero(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, &a, NULL)));
    double *data = gad_array_data(a);
    for (int i = 0; i < N; i++)
        cr_assert(zero(dbl, data[i]), "fresh pages show nobody's bytes");
    data[5] = 7;
    gad_array_release(a);
    cr_assert(zero(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, &a, NULL)));
    cr_assert(eq(ptr, gad_array_data(a), data));
    cr_assert(eq(dbl, data[5], 7));
    gad_array_release(a);
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 1, &n, &a, NULL)));
    cr_assert(zero(dbl, data[5]));
    gad_array_release(a);
    n = -1;
    cr_assert(eq(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, &a, &error), GAD_BAD_SHAPE));
    cr_assert(
        eq(int, (int)gad_array_empty(NULL, GAD_FLOAT64, 1, &n, &a, &error), GAD_BAD_ARGUMENT));
    cr_assert(
        eq(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, NULL, &error), GAD_BAD_ARGUMENT));
}

static struct gad_array *empty(int64_t mib)
{
    struct gad_array *array;
    struct gad_error error = {0};
    int64_t n = mib << 17;
    cr_assert(zero(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, &array, &error)), "%s",
              error.message);
    return array;
}

/* The daemon's own program, with a limit. */
static void set_up_limited(void)
{
    struct gad_connect_options options = {0};
    snprintf(scratch, sizeof(scratch), "/tmp/gad-client.XXXXXX");
    cr_assert(ne(ptr, mkdtemp(scratch), NULL));
    setenv("XDG_RUNTIME_DIR", scratch, 1);
    unsetenv("GPUARRAYD_SOCKET");
    options.daemon_path = path_in("limited");
    FILE *file = fopen(options.daemon_path, "we");
    fputs("#!/bin/sh\nexec \"$GPUARRAYD_DAEMON\" --region-limit=160M \"$@\"\n", file);
    fclose(file);
    cr_assert(zero(int, chmod(options.daemon_path, 0700)));
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_connect(&options, &client, &error)), "%s", error.message);
}

Test(quota, is_not_held_by_memory_that_nobody_uses, .init = set_up_limited, .fini = tear_down,
     .timeout = 60)
{
    struct gad_array *a = empty(70), *b = empty(70), *c = NULL;
    gad_array_release(a);
    gad_array_release(b);
    a = empty(90); /* beside 140 MiB that are only kept for later */
    cr_assert(eq(int, count("regions"), 1));
    struct gad_error error = {0};
    int64_t n = 80 << 17;
    cr_assert(
        eq(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, &c, &error), GAD_QUOTA_EXCEEDED));
    cr_assert(zero(ptr, c));
    b = empty(60);
    gad_array_release(a);
    gad_array_release(b);
}

/* The way of a program that binds each result to the same name. */
Test(from_memory, reuses_the_pages_of_large_results)
{
    int64_t n = 9 << 20; /* 72 MiB of float64: more than is always kept */
    struct gad_array *old = NULL, *a;
    void *seen[2] = {NULL};
    if (sysconf(_SC_PHYS_PAGES) < (INT64_C(4) << 30) / sysconf(_SC_PAGESIZE))
        cr_skip("a machine this small keeps less");
    for (int round = 0; round < 6; round++) {
        cr_assert(zero(int, (int)gad_array_empty(client, GAD_FLOAT64, 1, &n, &a, NULL)));
        void *data = gad_array_data(a);
        cr_assert(round < 2 || data == seen[round % 2], "round %d", round);
        seen[round % 2] = data;
        gad_array_release(old);
        old = a;
    }
    cr_assert(le(int, count("regions"), 2));
    gad_array_release(old);
}
