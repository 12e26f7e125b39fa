/* What the benchmarks of large arrays share: arrays in shared memory, work on several threads, the
 * streaming copy that is their limit, and a peer process that runs in turns with us. Everything
 * that fails ends the program with a message. */
#pragma once

#include "client/gpuarrayd.h"

#define BULK_ROUNDS  15
#define BULK_THREADS 2

#define BULK_MAX_THREADS 64
extern unsigned bulk_n_threads; /* BULK_THREADS until it is set */

double bulk_now(void); /* seconds */
double bulk_median(double *values, int n);

/* To the daemon of $GPUARRAYD_SOCKET. */
struct gad_client *bulk_connect(void);
struct gad_array *bulk_array(struct gad_client *client, enum gad_dtype dtype, int64_t n);
/* Seconds of one job, from the call to its return. */
double bulk_run_job(struct gad_client *client, const struct gad_job_options *options);

/* Calls work(data, first, count) for pieces of [0, n) on bulk_n_threads threads; seconds. */
typedef void bulk_work(void *data, size_t first, size_t count);
double bulk_parallel(bulk_work *work, void *data, size_t n, size_t piece);

/* Copies with stores that bypass the cache, where the processor has them. Both are aligned to 64
 * bytes, n_bytes is a multiple of 4096. Seconds. */
double bulk_copy(void *dst, const void *src, size_t n_bytes);

/* A program that writes a line when it is ready, and then for every line that it reads the seconds
 * of one round. */
struct bulk_peer {
    int pid; /* 0: there is none */
    void *requests, *replies;
};
void bulk_peer_start(struct bulk_peer *peer, const char *const *arguments);
double bulk_peer_round(struct bulk_peer *peer);
void bulk_peer_end(struct bulk_peer *peer);
