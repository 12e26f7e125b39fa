/* What a worker did with a job's tiles, as job.trace tells it: records one behind the other. */
#pragma once

#include <stdint.h>

enum trace_kind {
    TRACE_READ,        /* from where the arguments are, into memory of the worker's */
    TRACE_TO_DEVICE,   /* a copy */
    TRACE_KERNEL,      /* arithmetic */
    TRACE_FROM_DEVICE, /* a copy */
    TRACE_WRITE,       /* to where the outputs are */
    TRACE_SUBMIT,      /* copies and kernels were put into the device's streams */
    TRACE_N_KINDS
};

/* Lanes below are threads: 0 the main one, then as the worker numbers them. */
enum trace_lane {
    TRACE_LANE_TO_DEVICE = 0xff00,
    TRACE_LANE_KERNELS,
    TRACE_LANE_FROM_DEVICE,
    TRACE_LANE_SUBMISSIONS,
    TRACE_LANE_PRODUCTS, /* kernels beside the others */
};

struct trace_record {
    uint64_t begin_ns; /* CLOCK_MONOTONIC */
    uint64_t duration_ns;
    uint32_t tile; /* of its stage */
    uint16_t lane;
    uint8_t kind, pass;
};

_Static_assert(sizeof(struct trace_record) == 24, "as on the wire, in the host's byte order");

#define TRACE_MAX_RECORDS 16384u /* of one answer: a worker remembers no more */
