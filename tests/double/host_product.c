/* What product.cu does on a device, for the host: the same source with threads as loops, put into a
 * stream of the double of the CUDA runtime. Programs of tests only. Operands are reached by their
 * distance from the result.
 */
#include "kernels/cuda/device/product_kinds.h"
#include "tests/double/host_launch.h"
#include "kernels/cuda/tile.h"

#include <stdlib.h>
#include <string.h>

/* More than one kernel has. */
union shared {
    struct product_u32_shared narrow;
    struct product_u64_shared wide;
    struct mirror_u64_shared mirror;
};

/* A block of a kernel; `of`: its arguments. */
typedef void block_function(const void *of, union shared *shared, i64 matrix, i64 block);

#define BLOCK(family, kind)                                                                        \
    static void run_##family##_##kind(const void *of, union shared *shared, i64 matrix, i64 block) \
    {                                                                                              \
        family##_##kind##_run_block(of, (struct family##_##kind##_shared *)shared, matrix, block); \
    }
BLOCK(product, u8)
BLOCK(product, u16)
BLOCK(product, u32)
BLOCK(product, u64)
BLOCK(product, b8)
BLOCK(mirror, u8)
BLOCK(mirror, u16)
BLOCK(mirror, u32)
BLOCK(mirror, u64)

static block_function *const product_functions[CUDA_PRODUCT_N_KINDS] = {
    run_product_u8, run_product_u16, run_product_u32, run_product_u64, run_product_b8};
static block_function *const mirror_functions[] = {run_mirror_u8, run_mirror_u16, run_mirror_u32,
                                                   run_mirror_u64};

static void run_blocks(block_function *run, const void *of, i64 n_matrices, i64 n_blocks)
{
    union shared *shared = malloc(sizeof(*shared));
    if (!shared)
        abort();
    for (i64 matrix = 0; matrix < n_matrices; matrix++) {
        for (i64 block = 0; block < n_blocks; block++) {
            memset(shared, 0xa5, sizeof(*shared));
            run(of, shared, matrix, block);
        }
    }
    free(shared);
}

static void run_product(char *result, const void *arguments)
{
    struct cuda_product p;
    memcpy(&p, arguments, sizeof(p));
    p.left.base = result + (p.left.base - p.result.base);
    p.right.base = result + (p.right.base - p.result.base);
    p.result.base = result;
    run_blocks(product_functions[p.kind], &p, p.n_matrices, cuda_product_blocks(&p));
}

static void run_mirror(char *matrix, const void *arguments)
{
    struct cuda_mirror m;
    memcpy(&m, arguments, sizeof(m));
    m.matrix.base = matrix;
    run_blocks(mirror_functions[m.item_log2], &m, m.n_matrices, cuda_mirror_blocks(&m));
}

struct cuda_host_range cuda_host_matrix(const struct cuda_matrix *m, int64_t n_matrices,
                                        int64_t n_rows, int64_t n_columns, int64_t item_bytes,
                                        bool is_written)
{
    if (n_matrices == 0 || n_rows == 0 || n_columns == 0)
        return (struct cuda_host_range){.address = m->base};
    int64_t last = (n_matrices - 1) * m->matrix_bytes + (n_rows - 1) * m->row_bytes +
                   (n_columns - 1) * m->column_bytes;
    return (struct cuda_host_range){m->base, (uint64_t)(last + item_bytes), is_written};
}

int cuda_product_launch(const struct cuda_product *p, cuda_stream stream)
{
    static const int64_t item_bytes[CUDA_PRODUCT_N_KINDS] = {1, 2, 4, 8, 1};
    int64_t item = item_bytes[p->kind];
    struct cuda_host_launch call = {
        .kernel = run_product,
        .arguments = p,
        .n_argument_bytes = sizeof(*p),
        .device_slot = p->result.base,
        .ranges = {cuda_host_matrix(&p->left, p->n_matrices, p->n_rows, p->n_depth, item, false),
                   cuda_host_matrix(&p->right, p->n_matrices, p->n_depth, p->n_columns, item,
                                    false),
                   cuda_host_matrix(&p->result, p->n_matrices, p->n_rows, p->n_columns, item,
                                    true)},
    };
    return cuda_product_blocks(p) * p->n_matrices > 0 ? cuda_host_launch(&call, stream) : 0;
}

int cuda_mirror_launch(const struct cuda_mirror *m, cuda_stream stream)
{
    struct cuda_host_launch call = {
        .kernel = run_mirror,
        .arguments = m,
        .n_argument_bytes = sizeof(*m),
        .device_slot = m->matrix.base,
        .ranges = {cuda_host_matrix(&m->matrix, m->n_matrices, m->n_rows, m->n_rows,
                                    INT64_C(1) << m->item_log2, true)},
    };
    return cuda_mirror_blocks(m) * m->n_matrices > 0 ? cuda_host_launch(&call, stream) : 0;
}

static void do_nothing(char *slot, const void *arguments)
{
    (void)slot;
    (void)arguments;
}

int cuda_product_warm_up(void *scratch, cuda_stream stream)
{
    struct cuda_host_launch call = {
        .kernel = do_nothing,
        .device_slot = scratch,
        .is_warm_up = true,
    };
    int r = 0;
    for (int kernel = 0; r == 0 && kernel < CUDA_PRODUCT_N_KINDS + 4; kernel++)
        r = cuda_host_launch(&call, stream);
    return r;
}
