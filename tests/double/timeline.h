/* The clock of a device that is only modelled: what copies and kernels would take on a named
 * machine, for predictions (tests/gpu/predict.sh). What is not modelled is told in timeline.c. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What does the work: of each kind one thing at a time. */
enum timeline_engine {
    TIMELINE_TO_DEVICE,
    TIMELINE_FROM_DEVICE,
    TIMELINE_KERNELS,
    TIMELINE_ENGINES,
};

/* Bytes, operations and instructions of a lane, a second; nanoseconds. */
struct timeline_machine {
    const char *name;
    double to_device, from_device, memory, instructions;
    double host_memory; /* read and written by all its threads that copy */
    double product_float32, product_tf32, product_float64;
    unsigned n_processors;
    uint64_t call_ns, copy_ns, launch_ns; /* of the host; of an engine, beside the work */
};

/* What a kernel does. n_blocks: each on one processor at a time; 0: it fills the device. */
struct timeline_work {
    uint64_t n_bytes, n_blocks;
    double instructions;
    double product_float32, product_tf32, product_float64;
};

/* Of the machine that is modelled; 0: none is. */
double timeline_host_memory(void);

/* NULL: there is none of this name. */
const struct timeline_machine *timeline_find(const char *name);
uint64_t timeline_copy_ns(const struct timeline_machine *machine, enum timeline_engine engine,
                          uint64_t n_bytes);
uint64_t timeline_kernel_ns(const struct timeline_machine *machine,
                            const struct timeline_work *work);
