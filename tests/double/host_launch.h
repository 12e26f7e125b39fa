/* The launch of a kernel that was compiled for the host: what interpreter.cu does with <<<>>>, its
 * host compilation does with this. Implemented by the test double of the CUDA runtime; programs
 * that are installed have no part of it. */
#pragma once

#include "kernels/cuda/product/matrix.h"
#include "kernels/cuda/runtime.h"

/* slot: the memory behind device_slot. Runs in the stream's thread, all blocks of the grid. */
typedef void cuda_host_kernel(char *slot, const void *arguments);

/* What that would be for a device, at least: *ret_work has the bytes of the slot. */
struct timeline_work;
typedef void cuda_host_work(const char *slot, const void *arguments,
                            struct timeline_work *ret_work);

#define CUDA_HOST_MAX_ARGUMENTS 320u
#define CUDA_HOST_MAX_RANGES    3u

/* Of the device memory that the slot is in, somewhere: at the same distance from `slot`. */
struct cuda_host_range {
    char *address;
    uint64_t n_bytes; /* 0: nothing */
    bool is_written;
};

struct cuda_host_launch {
    cuda_host_kernel *kernel;
    cuda_host_work *work;  /* NULL: nothing but those bytes */
    const void *arguments; /* copied */
    size_t n_argument_bytes;
    char *device_slot;
    uint64_t slot_bytes;
    /* What the kernel may touch, for the checks of order: it reads [0, read_bytes) of the slot and
     * writes [write_offset, write_offset + write_bytes), which has garbage in it before as far as
     * it does not read it. */
    uint64_t read_bytes, write_offset, write_bytes;
    /* What else it touches; there is no garbage. */
    struct cuda_host_range ranges[CUDA_HOST_MAX_RANGES];
    bool is_warm_up; /* does not count for faults in the n-th launch */
};

/* 0 or a runtime error, as a launch gives them. */
int cuda_host_launch(const struct cuda_host_launch *launch, cuda_stream stream) GAD_MUST_CHECK;

/* device/host_product.c: where matrices lie, with whatever is between their rows. */
struct cuda_host_range cuda_host_matrix(const struct cuda_matrix *m, int64_t n_matrices,
                                        int64_t n_rows, int64_t n_columns, int64_t item_bytes,
                                        bool is_written);
