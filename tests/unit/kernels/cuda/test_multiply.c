/* Multiplications on the test double: what cuBLAS is given, what happens without it or when it
 * fails, and that operands and results are under the checks of order. What is computed is compared
 * by checkcuda. */
#include "kernels/cuda/product/multiply.h"
#include "kernels/cuda/tile.h"
#include "tests/unit/kernels/cuda/card_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <cuda_runtime_api.h>
#include <string.h>

#define SIDE       8
#define SLAB_BYTES (CUDA_MULTIPLY_SCRATCH_BYTES + CUDA_BLAS_WORKSPACE_BYTES)

static struct card_rig rig;
static struct cuda_blas *blas;
static char *slab; /* of the device: matrices, then the workspace */

static int open_blas(struct gad_error *error)
{
    void *memory = NULL;
    card_rig_open(&rig, 0);
    MUST(cuda_malloc(SLAB_BYTES, &memory));
    slab = memory;
    return cuda_blas_open(slab + CUDA_MULTIPLY_SCRATCH_BYTES, CUDA_BLAS_WORKSPACE_BYTES,
                          rig.compute, &blas, error);
}

static void open_all(const char *settings)
{
    struct gad_error error;
    card_rig_set(settings);
    MUST(open_blas(&error));
}

static void close_all(void)
{
    blas = cuda_blas_close(blas);
    cuda_free(slab);
    card_rig_close(&rig);
}

/* Row after row, side by side: left, right, result. */
static struct cuda_multiply multiply_of(enum dtype dtype)
{
    int64_t item = (int64_t)dtype_size(dtype), bytes = SIDE * SIDE * item;
    struct cuda_matrix left = {slab, SIDE * item, item, 0};
    struct cuda_matrix right = {slab + bytes, SIDE * item, item, 0};
    struct cuda_matrix result = {slab + 2 * bytes, SIDE * item, item, 0};
    return (struct cuda_multiply){.dtype = dtype,
                                  .n_matrices = 1,
                                  .n_rows = SIDE,
                                  .n_columns = SIDE,
                                  .n_depth = SIDE,
                                  .left = left,
                                  .right = right,
                                  .result = result};
}

static void wait_for_compute(void)
{
    MUST(cuda_event_record(rig.computed, rig.compute));
    MUST(cuda_event_wait(rig.computed));
}

/* All elements of left, right and result. */
static void put_floats(float left, float right, float result)
{
    float *items = (float *)rig.slot;
    for (int i = 0; i < SIDE * SIDE; i++) {
        items[i] = left;
        items[i + SIDE * SIDE] = right;
        items[i + 2 * SIDE * SIDE] = result;
    }
    MUST(cuda_copy_to_device(slab, rig.slot, 3 * SIDE * SIDE * 4, rig.compute));
}

static float first_of_result(void)
{
    MUST(cuda_copy_from_device(rig.slot, slab + 2 * SIDE * SIDE * 4, 4, rig.compute));
    wait_for_compute();
    return *(float *)rig.slot;
}

static float multiplied(const struct cuda_multiply *m)
{
    MUST(cuda_multiply(blas, m, rig.compute));
    return first_of_result();
}

Test(multiply, says_its_version_and_adds_to_what_is_there)
{
    open_all("");
    cr_assert(eq(str, (char *)cuda_blas_version(blas), (char *)"cuBLAS 13.0.0"));
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT32);
    put_floats(2, 3, 100);
    cr_assert(eq(flt, multiplied(&m), 6 * SIDE));
    m.adds = true;
    cr_assert(eq(flt, multiplied(&m), 12 * SIDE));
    close_all();
}

Test(multiply, rounds_float32_where_tf32_is_allowed)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT32);
    put_floats(1 + 0x1p-12f, 1, 0);
    cr_assert(eq(flt, multiplied(&m), SIDE * (1 + 0x1p-12f)));
    m.is_tf32 = true;
    cr_assert(eq(flt, multiplied(&m), SIDE));
    close_all();
}

Test(multiply, sets_zeros_without_depth)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT32);
    put_floats(2, 3, 100);
    m.n_depth = 0;
    m.adds = true;
    cr_assert(eq(flt, multiplied(&m), 100));
    m.adds = false;
    cr_assert(eq(flt, multiplied(&m), 0));
    close_all();
}

/* Many tiny matrices, multiplied by the same one. */
Test(multiply, has_more_matrices_than_the_library_takes_at_once)
{
    enum { MANY = 70000, PART = RIG_BYTES / sizeof(float), N_PARTS = MANY / PART + 1 };
    open_all("");
    float *items = (float *)rig.slot;
    char *results = slab + 2 * N_PARTS * RIG_BYTES;
    struct cuda_multiply m = {.dtype = DTYPE_FLOAT32,
                              .n_matrices = MANY,
                              .n_rows = 1,
                              .n_columns = 1,
                              .n_depth = 1,
                              .left = {slab + 8, 4, 4, 0},
                              .right = {slab, 4, 4, 4},
                              .result = {results, 4, 4, 4}};
    for (int part = 0; part < N_PARTS; part++) {
        for (int i = 0; i < PART; i++)
            items[i] = (float)(part * PART + i);
        MUST(cuda_copy_to_device(slab + part * RIG_BYTES, items, RIG_BYTES, rig.compute));
        wait_for_compute();
    }
    MUST(cuda_multiply(blas, &m, rig.compute));
    for (int part = 0; part < N_PARTS; part++) {
        MUST(cuda_copy_from_device(items, results + part * RIG_BYTES, RIG_BYTES, rig.compute));
        wait_for_compute();
        for (int i = 0; i < PART && part * PART + i < MANY; i++)
            cr_assert(eq(flt, items[i], 2 * (float)(part * PART + i)), "%d", part * PART + i);
    }
    close_all();
}

Test(multiply, has_no_floats_without_cublas)
{
    struct gad_error error;
    card_rig_set("no-blas");
    cr_assert(eq(int, open_blas(&error), GAD_NO_ENGINE));
    cr_assert(ne(ptr, strstr(error.message, "cuBLAS cannot be opened"), NULL), "%s", error.message);
    cr_assert(eq(ptr, blas, NULL));
    MUST(cuda_multiply_warm_up(NULL, slab, CUDA_SLOT_MIN_BYTES, rig.compute));
    struct cuda_multiply m = multiply_of(DTYPE_INT32);
    memset(rig.slot, 1, RIG_BYTES);
    MUST(cuda_copy_to_device(slab, rig.slot, RIG_BYTES, rig.compute));
    MUST(cuda_multiply(NULL, &m, rig.compute));
    MUST(cuda_copy_from_device(rig.slot, m.result.base, 4, rig.compute));
    wait_for_compute();
    cr_assert(eq(u32, *(uint32_t *)rig.slot, 0x01010101u * 0x01010101u * SIDE));
    close_all();
}

Test(multiply, says_when_cublas_does_not_start)
{
    struct gad_error error;
    card_rig_set("fail-blas");
    cr_assert(eq(int, open_blas(&error), GAD_DEVICE_FAULT));
    cr_assert(ne(ptr, strstr(error.message, "cuBLAS cannot be started: out of memory"), NULL), "%s",
              error.message);
    close_all();
}

Test(multiply, warms_up_in_its_scratch_and_is_not_counted)
{
    open_all("sticky-launch=1,seed=5");
    const uint64_t sizes[] = {1000, CUDA_SLOT_MIN_BYTES, CUDA_MULTIPLY_SCRATCH_BYTES};
    for (int i = 0; i < 3; i++) {
        uint64_t n_before = double_stats().n_launches;
        MUST(cuda_multiply_warm_up(blas, slab, sizes[i], rig.compute));
        cr_assert(ge(u64, double_stats().n_launches - n_before, i ? 100 : 9));
    }
    wait_for_compute();
    close_all();
}

/* Behind the workspace is memory that nobody may touch. */
Test(multiply, touches_nothing_behind_its_operands)
{
    for (int is_float = 0; is_float < 2; is_float++) {
        for (int64_t n = 1; n < SIDE; n += 3) {
            if (n == 1)
                open_all("");
            struct cuda_multiply m = multiply_of(is_float ? DTYPE_FLOAT64 : DTYPE_INT64);
            m.n_rows = m.n_columns = m.n_depth = n;
            m.right.base = slab + SLAB_BYTES - (n - 1) * SIDE * 8 - n * 8;
            MUST(cuda_multiply(blas, &m, rig.compute));
            m.left = m.right;
            MUST(cuda_multiply(blas, &m, rig.compute));
            m.result = m.right;
            MUST(cuda_multiply(blas, &m, rig.compute));
            MUST(cuda_mirror(&m.result, 8, 1, n, rig.compute));
            wait_for_compute();
        }
        close_all();
    }
}

static void multiply_of_memory_that_nobody_has(void)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT64);
    m.right.base = slab + SLAB_BYTES - SIDE * SIDE * 8 + 8;
    MUST(cuda_multiply(blas, &m, rig.compute));
}

static void multiply_integers_of_memory_that_nobody_has(void)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_INT64);
    m.left.base = slab - 8;
    MUST(cuda_multiply(blas, &m, rig.compute));
}

static void multiply_of_other_memory(void)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT64);
    m.right.base = rig.device_slot;
    MUST(cuda_multiply(blas, &m, rig.compute));
}

static void open_with_a_workspace_on_the_host(void)
{
    struct gad_error error;
    card_rig_set("");
    card_rig_open(&rig, 0);
    MUST(cuda_blas_open(rig.slot, RIG_BYTES, rig.compute, &blas, &error));
}

Test(multiply, refuses_memory_that_is_not_the_devices)
{
    dies_saying("are not of one piece of device memory", multiply_of_memory_that_nobody_has);
    dies_saying("are not of one piece of device memory",
                multiply_integers_of_memory_that_nobody_has);
    dies_saying("are of different memory", multiply_of_other_memory);
    dies_saying("cuBLAS's workspace of 65536 bytes", open_with_a_workspace_on_the_host);
}

/* An operand is copied in another stream, and nothing waits. */
static void multiply_too_early(enum dtype dtype, int64_t which)
{
    open_all("");
    struct cuda_multiply m = multiply_of(dtype);
    int64_t bytes = SIDE * SIDE * (int64_t)dtype_size(dtype);
    MUST(cuda_copy_to_device(slab + which * bytes + bytes - 1, rig.slot, 1, rig.to_device));
    MUST(cuda_multiply(blas, &m, rig.compute));
}

static void multiply_before_the_left_is_there(void)
{
    multiply_too_early(DTYPE_FLOAT32, 0);
}

static void multiply_before_the_right_is_there(void)
{
    multiply_too_early(DTYPE_FLOAT64, 1);
}

static void multiply_integers_before_the_left_is_there(void)
{
    multiply_too_early(DTYPE_UINT8, 0);
}

static void overwrite_a_result_on_its_way(void)
{
    multiply_too_early(DTYPE_INT16, 2);
}

static void copy_a_result_too_early(void)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT32);
    MUST(cuda_multiply(blas, &m, rig.compute));
    MUST(cuda_copy_from_device(rig.slot, m.result.base, 4, rig.from_device));
}

static void mirror_too_early(void)
{
    open_all("");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT32);
    MUST(cuda_copy_to_device(m.result.base, rig.slot, 4, rig.to_device));
    MUST(cuda_mirror(&m.result, 4, 1, SIDE, rig.compute));
}

Test(multiply, comes_behind_what_it_reads_and_before_what_reads_it)
{
    dies_saying("reads 1 bytes", multiply_before_the_left_is_there);
    dies_saying("reads 1 bytes", multiply_before_the_right_is_there);
    dies_saying("reads 1 bytes", multiply_integers_before_the_left_is_there);
    dies_saying("overwrites 1 bytes", overwrite_a_result_on_its_way);
    dies_saying("nothing makes it wait for that", copy_a_result_too_early);
    dies_saying("nothing makes it wait for that", mirror_too_early);
}

/* It is met at once, or later. */
static void check_fault(enum dtype dtype)
{
    open_all("sticky-launch=1");
    struct cuda_multiply m = multiply_of(dtype);
    MUST(cuda_multiply(blas, &m, rig.compute));
    int r = cuda_event_record(rig.computed, rig.compute);
    if (r == 0)
        r = cuda_event_wait(rig.computed);
    cr_assert(eq(int, r, cudaErrorIllegalAddress));
    cr_assert(cuda_error_is_sticky(cuda_multiply(blas, &m, rig.compute)));
}

Test(multiply, of_floats_ends_the_context_with_a_fault)
{
    check_fault(DTYPE_FLOAT64);
}

Test(multiply, of_integers_ends_the_context_with_a_fault)
{
    check_fault(DTYPE_UINT32);
}

Test(multiply, that_cublas_could_not_begin_is_a_fault)
{
    open_all("fail-launch=1");
    struct cuda_multiply m = multiply_of(DTYPE_FLOAT64);
    int r = cuda_multiply(blas, &m, rig.compute);
    cr_assert(eq(int, r, cudaErrorLaunchFailure));
    cr_assert(cuda_error_is_sticky(r));
    close_all();
}

/* Outside of the slot, as cuda_tile_launch() says it. */
static void launch_outside(int64_t begin, int64_t end, bool is_written)
{
    struct interpreter_launch launch = {.n_grains = 0};
    if (is_written)
        launch.outside_written = (struct interpreter_range){begin, end};
    else
        launch.outside_read = (struct interpreter_range){begin, end};
    MUST(cuda_interpreter_launch(&launch, slab + 4096, rig.compute));
}

static void read_c_too_early(void)
{
    open_all("");
    MUST(cuda_copy_to_device(slab + 100, rig.slot, 10, rig.to_device));
    launch_outside(-4000, -3980, false);
}

static void write_a_panel_that_is_read(void)
{
    open_all("");
    launch_outside(8192, 9000, false);
    MUST(cuda_copy_from_device(rig.slot, slab + 4096 + 8192, 10, rig.from_device));
    launch_outside(8192, 9000, true);
}

static void write_beyond_the_slab(void)
{
    open_all("");
    launch_outside(-5000, -4090, true);
}

Test(multiply, panels_are_checked_though_they_are_outside_of_slots)
{
    dies_saying("reads 10 bytes", read_c_too_early);
    dies_saying("overwrites 10 bytes", write_a_panel_that_is_read);
    dies_saying("are not of one piece of device memory", write_beyond_the_slab);
}
