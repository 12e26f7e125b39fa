/* Where an axis has its marks, and what they say. Pure. */
#pragma once

#include <stddef.h>

enum axis_unit {
    AXIS_BYTES,
    AXIS_BYTES_A_SECOND,
    AXIS_NUMBER,
};

#define AXIS_LABEL_SIZE 32

/* The distance of marks from 0 on, so that there are at most `most` of them up to `last`: 1, 2 or 5
 * times a power of ten, at least 1 where numbers are whole. */
double axis_step(double last, unsigned most, enum axis_unit unit);
/* `value` on an axis that ends at `last`, in the unit that fits it: "1.5 GB/s". */
char *axis_label(double value, double last, enum axis_unit unit, char buffer[AXIS_LABEL_SIZE]);

/* The distance of marks in time, in seconds: such as people count in. */
double axis_time_step(double seconds, unsigned most);
/* The first mark at or behind `from`; clock_s: what the clock says at time 0 (seconds since 1970):
 * marks are where the local clock has whole steps; NaN: where the time itself has. */
double axis_first_time(double from, double step, double clock_s);
/* "14:05", "14:05:30"; without a clock "90 s", "2.5 s". */
char *axis_time_label(double time, double step, double clock_s, char buffer[AXIS_LABEL_SIZE]);
