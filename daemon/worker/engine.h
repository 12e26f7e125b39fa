/* What computes: the part of a worker that differs between engines. The rest of the worker
 * (scheduler, ports, rings, jobs) is the same source for all. A worker program has one engine; its
 * program makes it (cpu/engine.h, cuda/engine.h) and gives it to worker_new().
 *
 * A turn of a compute thread is engine->ops->run(). It may leave the tile with the device
 * (TILE_ON_DEVICE): then the thread is free, and the engine gives the tile back with
 * sched_device_done() when the device has ended; the next turn of the tile finishes it.
 */
#pragma once

#include "daemon/worker/jobs/tile.h"
#include "kernels/plan/plan.h"
#include "proto/wire/message.h"

struct engine;
struct sched;
struct trace;

struct engine_ops {
    /* The threads of the scheduler are about to run; the device's thread may start. NULL: nothing
     * to do. -errno. */
    int (*start)(struct engine *e, struct sched *sched);
    /* No turn runs any more. Waits until nothing is with the device. NULL: nothing to do. */
    void (*stop)(struct engine *e);
    struct engine *(*free)(struct engine *e); /* NULL */
    /* One turn of a compute thread; without the scheduler's lock. TILE_FAILED: th->status and
     * th->error, or nothing when the job was stopped (status 0). */
    enum tile_outcome (*run)(struct engine *e, struct tile *t, struct thread_context *th);
    /* The main thread: a tile of a small job from its beginning to its end, without a slot. */
    enum tile_outcome (*run_small)(struct engine *e, struct tile *t, struct thread_context *th);
    /* I/O threads: reads the inputs that would have made run() wait for a disk, and tells the
     * system about the grains behind them. 0 or a status in th->error. */
    int (*read)(struct engine *e, struct tile *t, struct thread_context *th);
    /* The tile is given up, with its slot or without; it is not with the device. The scheduler's
     * lock is held. NULL: nothing to do. */
    void (*drop)(struct engine *e, struct tile *t);
    /* What worker.ready and `stats` say of this engine beside what all say: n pairs of a map. Main
     * thread. NULL: none. */
    unsigned (*n_ready_pairs)(const struct engine *e);
    void (*pack_ready)(const struct engine *e, msgpack_packer *p);
    unsigned (*n_stats_pairs)(const struct engine *e);
    void (*pack_stats)(const struct engine *e, msgpack_packer *p);
    /* Clients' memory was mapped; is about to be unmapped, and no job uses it. Main thread. NULL:
     * nothing to do. */
    void (*region_mapped)(struct engine *e, struct region *region);
    void (*region_unmapped)(struct engine *e, struct region *region);
};

struct engine { /* first member of an engine's own struct */
    const struct engine_ops *ops;
    char name[16];               /* of results: "cpu", "cuda:0" */
    const char *kind;            /* "cpu", "cuda" */
    char device[128], level[32]; /* for people: "NVIDIA H100", "sm_90" */
    char *pool;                  /* limits.pool_bytes that slots and carries are cut from */
    struct plan_limits limits;   /* as the broker will plan with */
    /* Of a device: its memory for carries of products. Not to be touched: an address is as far from
     * those of slots here as it is there. */
    char *device_carries;
    unsigned n_device_tiles;      /* tiles that may be with the device at a time; 0: never */
    unsigned n_device_products;   /* MULTIPLYs beside them, with those that are queued */
    unsigned n_device_flights;    /* of both kinds with the device at a time */
    const char *blas;             /* what multiplies matrices of floats: "cuBLAS 13.0.2"; NULL: */
    const char *why_no_blas;      /* none, and why not */
    const struct cpu_engine *cpu; /* for threads' contexts; NULL: not needed */
    /* n_device_flights entries for these; the worker's. NULL: none. */
    struct crashpage_thread *device_pages;
    struct trace *trace; /* the worker's */
};
