/* The kernels, as the host sees them: a launch computes all grains of a tile. Implemented by
 * interpreter.cu on the device, and by device/host_launch.c with device/host.c where the same
 * source is compiled for the host, for tests. */
#pragma once

#include "kernels/cuda/code.h"
#include "kernels/cuda/runtime.h"

/* Bytes of device memory, from a slot's base on; it may lie before it. */
struct interpreter_range {
    int64_t begin, end; /* equal: empty */
};

struct interpreter_launch {
    struct code_header header;
    /* The grids: blocks of the grain that has the most. 0: the kernel has nothing to do. */
    uint32_t n_grains, n_window_blocks, n_rank_blocks, n_blocks, n_axes_blocks, n_count_blocks,
        n_scan_blocks;
    /* What they touch of the slot: they read [0, read_bytes) and what they have written. */
    uint64_t read_bytes, write_offset, write_bytes;
    /* And of the memory outside: all that they read, and all that they write, lies in here. */
    struct interpreter_range outside_read, outside_written;
};

/* Puts the kernels that have something to do into the stream, the interpreter first. 0 or a runtime
 * error. */
int cuda_interpreter_launch(const struct interpreter_launch *launch, void *device_slot,
                            cuda_stream stream) GAD_MUST_CHECK;

/* device/host.c: computes it here and now. Any thread; -ENOMEM. */
int cuda_interpreter_run_on_host(const struct interpreter_launch *launch,
                                 void *device_slot) GAD_MUST_CHECK;
