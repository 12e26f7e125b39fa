/* The least that a second process costs: for each of two threads a process of its own computes what
 * the thread copies into shared slabs, and the thread copies out of them. Of the daemon there is
 * nothing in this but the copies, the kernel and one wait a batch. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef void pairs_compute(double *out, const double *in, size_t n);

/* Before memory that is large or that matters: the processes are children. They end with this one.
 */
void pairs_start(pairs_compute *compute);
/* Seconds for n elements. stays: thread and process are on one processor, each pair on its own;
 * otherwise wherever the kernel puts them. */
double pairs_run(double *to, const double *from, size_t n, bool stays);
