/* cuBLAS as a benchmark's limit and peer, opened at run time: bundles have none of NVIDIA's
 * libraries, and a host may have only a driver. */
#pragma once

#include "kernels/cuda/runtime.h"

#include <stdbool.h>
#include <stdint.h>

enum blas_kind { BLAS_FLOAT32, BLAS_FLOAT64, BLAS_TF32 };

struct blas_peer {
    void *library, *handle, *xt; /* xt NULL: cublasXt is not to be had */
};

/* Returns NULL, or why there is none. The device is open. */
const char *blas_peer_open(struct blas_peer *b, cuda_stream stream);
void blas_peer_close(struct blas_peer *b);
/* C = A @ B of n x n elements, row after row. Return 0 or the library's status. */
/* On the device: puts it into the stream. */
int blas_peer_multiply(const struct blas_peer *b, enum blas_kind kind, int n, const void *left,
                       const void *right, void *result);
/* In the host's memory, by cublasXt, which has no TF32 of its own; returns when it is done. */
int blas_peer_multiply_host(const struct blas_peer *b, bool is_double, int64_t n, const void *left,
                            const void *right, void *result);
