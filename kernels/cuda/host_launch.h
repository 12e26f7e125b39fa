/* The launch of a kernel that was compiled for the host: what interpreter.cu does with <<<>>>, its
 * host compilation does with this. Implemented by the test double of the CUDA runtime; programs
 * that are installed have no part of it. */
#pragma once

#include "kernels/cuda/runtime.h"

/* slot: the memory behind device_slot. Runs in the stream's thread, all blocks of the grid. */
typedef void cuda_host_kernel(char *slot, const void *arguments);

#define CUDA_HOST_MAX_ARGUMENTS 256u

struct cuda_host_launch {
    cuda_host_kernel *kernel;
    const void *arguments; /* copied */
    size_t n_argument_bytes;
    char *device_slot;
    uint64_t slot_bytes;
    /* What the kernel may touch, for the checks of order: it reads [0, read_bytes) of the slot and
     * writes [write_offset, write_offset + write_bytes), which has garbage in it before as far as
     * it does not read it. */
    uint64_t read_bytes, write_offset, write_bytes;
    bool is_warm_up; /* does not count for faults in the n-th launch */
};

/* 0 or a runtime error, as a launch gives them. */
int cuda_host_launch(const struct cuda_host_launch *launch, cuda_stream stream) GAD_MUST_CHECK;
