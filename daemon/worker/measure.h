/* What a worker measures as it starts: how fast this machine's memory and processors are, for the
 * broker's estimates. Never checked, never waited for: a rate is a hint. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/plan/plan.h"

/* Runs work(argument, thread) in n_threads threads that begin together. Returns the nanoseconds
 * from there until the last has ended; 0 where no thread could be started. */
uint64_t measure_together(unsigned n_threads, void (*work)(void *argument, unsigned thread),
                          void *argument);

/* Bytes read + written a second: the first half of the memory is copied to the second, each thread
 * a part of it. At least 2 MiB of memory. 0: not known. */
double measure_copy(char *memory, uint64_t n_bytes, unsigned n_threads);

/* An expression of the float32 vector `a`. */
int measure_compile(const char *text, int64_t n_elements,
                    struct program **ret_program) GAD_MUST_CHECK;

/* All rates of the CPU's engine, in a few milliseconds. pool: the worker's own, nobody has it yet;
 * of it at most MEASURE_MAX_BYTES are touched and given back to the system. */
#define MEASURE_MAX_BYTES (16u * 1024 * 1024)
void measure_cpu(const struct cpu_engine *engine, char *pool, uint64_t pool_bytes,
                 unsigned n_threads, struct plan_rates *ret_rates);
