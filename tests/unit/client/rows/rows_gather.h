/* Rows of a source by number, the whole way: into an order, gathered, and what went wrong told. */
#pragma once

#include "client/rows/gather.h"
#include "proto/error.h"

#include <errno.h>

/* To out + i * out_stride_bytes, as they are stored. */
static inline int rows_gather(struct row_source *source, uint64_t n, const int64_t *rows, void *out,
                              size_t out_stride_bytes, unsigned n_threads, const char *name,
                              struct gad_error *error)
{
    const struct gather_options options = {.n_threads = n_threads};
    char *bases[] = {out};
    const struct row_target target = {bases, n + 1, out_stride_bytes};
    struct row_failure failure;
    struct row_order order;
    if (row_order_init(&order, n, rows))
        return error_from_errno(error, ENOMEM, name, "the order of rows");
    int r = gather(source, &order, &target, &options, &failure);
    row_order_deinit(&order);
    return r ? row_source_explain(source, failure.first, failure.n, r, name, error) : 0;
}
