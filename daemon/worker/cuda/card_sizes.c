/* Sizes of what is taken for the worker's life.
 *
 * The defaults are polite: a machine has other users of the device, streaming needs little, and a
 * product of float64 is bound by arithmetic from a GiB on. So 1600 MiB of the device and 512 MiB of
 * pinned memory, but at most a quarter of the device and half of what is free there, at most an
 * eighth of the host's memory and a quarter of what is available. Below MIN_BYTES nothing works:
 * less is refused rather than tried. What was set is taken as it is or refused with the numbers,
 * never made smaller in silence.
 *
 * cuBLAS's workspace is at the end of the device's slab: an eighth, at most what cuBLAS advises.
 *
 * The pool is whole slots of what both slabs have beside it, without the main thread's own slot; of
 * the device's at most two thirds. What the device has beyond is for carries of matrix products.
 *
 * Called by card.c.
 */
#include "daemon/worker/cuda/card_sizes.h"
#include "kernels/cuda/product/multiply.h"
#include "kernels/cuda/tile.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>

#define DEVICE_BYTES (UINT64_C(1600) << 20)
#define PINNED_BYTES (UINT64_C(512) << 20)
#define UNIT_BYTES   ((uint64_t)CUDA_SLOT_MIN_BYTES)
#define MIN_BYTES    ((CARD_MIN_SLOTS + 1) * UNIT_BYTES) /* of a slab */
/* The device's has the workspace, too. */
#define MIN_DEVICE_BYTES (MIN_BYTES + UNIT_BYTES)
#define WORKSPACE_SHARE  8
#define CARRY_SHARE      3    /* of the device's slab: for carries at least, beyond MIN_BYTES */
#define GOOD_SHARE       0.95 /* of the link's rate */
#define TURNS_A_COPY     40   /* of the host, while a slot is copied */
#define ENOUGH_SLOTS     32   /* for threads that stage, the device and those that store */

static uint64_t proc_kilobytes(FILE *file, const char *format)
{
    char line[256];
    unsigned long long n = 0;
    rewind(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, format, &n) == 1)
            return n;
    return 0;
}

void card_host_memory(uint64_t *ret_total_bytes, uint64_t *ret_available_bytes)
{
    *ret_total_bytes = *ret_available_bytes = 0;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return;
    *ret_total_bytes = proc_kilobytes(file, "MemTotal: %llu") * 1024;
    *ret_available_bytes = proc_kilobytes(file, "MemAvailable: %llu") * 1024;
    fclose(file);
}

static uint64_t polite(uint64_t wanted, uint64_t of_all, uint64_t of_free, uint64_t least)
{
    uint64_t n_bytes = min_u64(wanted, min_u64(of_all, of_free)) / UNIT_BYTES * UNIT_BYTES;
    return max_u64(n_bytes, least);
}

static uint64_t workspace_bytes(uint64_t device_bytes)
{
    uint64_t n_bytes = device_bytes / WORKSPACE_SHARE;
    return min_u64(n_bytes - n_bytes % CUDA_BLAS_WORKSPACE_ALIGN, CUDA_BLAS_WORKSPACE_BYTES);
}

/* What slots may have of the device. */
static uint64_t slots_bytes(const struct card_sizes *s)
{
    uint64_t usable = s->device_bytes - s->workspace_bytes;
    return max_u64(usable - usable / CARRY_SHARE, MIN_BYTES);
}

static int refuse_device(const struct card_sizes *s, const struct card_room *room,
                         struct gad_error *error)
{
    error_set(error, GAD_NO_MEMORY, "device-bytes",
              "the pool is larger than what the device has free%s%s; make device-bytes smaller, or "
              "wait until others have left",
              room->holders[0] ? ", the rest is held by " : "", room->holders);
    error_expected(error, "%" PRIu64 " bytes free", s->device_bytes);
    error_found(error, "%" PRIu64 " bytes free of %" PRIu64, room->device_free_bytes,
                room->device_total_bytes);
    return GAD_NO_MEMORY;
}

static int refuse_host(const struct card_sizes *s, const struct card_room *room,
                       struct gad_error *error)
{
    error_set(error, GAD_NO_MEMORY, "pinned-bytes",
              "the pinned pool is larger than what the host has available; make pinned-bytes "
              "smaller");
    error_expected(error, "%" PRIu64 " bytes available", s->pinned_bytes);
    error_found(error, "%" PRIu64 " bytes available of %" PRIu64, room->host_available_bytes,
                room->host_total_bytes);
    return GAD_NO_MEMORY;
}

static int check_range(const char *name, uint64_t value, uint64_t low, uint64_t high,
                       struct gad_error *error)
{
    if (value == 0 || (value >= low && value <= high))
        return 0;
    error_set(error, GAD_LIMIT_EXCEEDED, name, "%s is out of its range", name);
    error_expected(error, "%" PRIu64 " to %" PRIu64, low, high);
    error_found(error, "%" PRIu64, value);
    return GAD_LIMIT_EXCEEDED;
}

static int check_settings(const struct card_config *c, struct gad_error *error)
{
    int r = check_range("device-bytes", c->device_bytes, MIN_DEVICE_BYTES, INT64_MAX, error);
    if (!r)
        r = check_range("pinned-bytes", c->pinned_bytes, MIN_BYTES, INT64_MAX, error);
    if (!r)
        r = check_range("chunk-bytes", c->chunk_bytes, UNIT_BYTES, CARD_MAX_SLOT_BYTES, error);
    if (!r)
        r = check_range("depth", c->depth, CARD_MIN_DEPTH, CARD_MAX_DEPTH, error);
    if (!r && (c->chunk_bytes & (c->chunk_bytes - 1)) != 0) {
        r = error_set(error, GAD_LIMIT_EXCEEDED, "chunk-bytes",
                      "chunk-bytes must be a power of two");
        error_found(error, "%" PRIu64, c->chunk_bytes);
    }
    return r;
}

int card_sizes_choose(const struct card_config *config, const struct card_room *room,
                      struct card_sizes *ret_sizes, struct gad_error *error)
{
    struct card_sizes s = {.device_bytes = config->device_bytes,
                           .pinned_bytes = config->pinned_bytes};
    int r = check_settings(config, error);
    if (r)
        return r;
    if (s.device_bytes == 0)
        s.device_bytes = polite(DEVICE_BYTES, room->device_total_bytes / 4,
                                room->device_free_bytes / 2, MIN_DEVICE_BYTES);
    s.device_bytes = s.device_bytes / UNIT_BYTES * UNIT_BYTES;
    s.workspace_bytes = workspace_bytes(s.device_bytes);
    uint64_t wanted = min_u64(PINNED_BYTES, slots_bytes(&s));
    if (s.pinned_bytes == 0 && room->host_total_bytes == 0)
        s.pinned_bytes = wanted;
    else if (s.pinned_bytes == 0)
        s.pinned_bytes =
            polite(wanted, room->host_total_bytes / 8, room->host_available_bytes / 4, MIN_BYTES);
    s.pinned_bytes = s.pinned_bytes / UNIT_BYTES * UNIT_BYTES;
    if (s.device_bytes > room->device_free_bytes)
        return refuse_device(&s, room, error);
    if (room->host_total_bytes > 0 && s.pinned_bytes > room->host_available_bytes)
        return refuse_host(&s, room, error);
    *ret_sizes = s;
    return 0;
}

static uint64_t slab_bytes(const struct card_sizes *s)
{
    return min_u64(slots_bytes(s), s->pinned_bytes);
}

static uint64_t good_bytes(const struct card_pace *pace)
{
    /* t = o + n / r; the share n / r / t is 0.95 at n = 19 o r */
    double good = pace->overhead_seconds * pace->rate * GOOD_SHARE / (1 - GOOD_SHARE);
    uint64_t n_bytes = UNIT_BYTES;
    while (n_bytes < CARD_MAX_SLOT_BYTES && (double)n_bytes < good)
        n_bytes *= 2;
    return n_bytes;
}

/* Slots are seldom more than half full, and of both ways. */
static uint64_t busy_bytes(const struct card_sizes *s, const struct card_pace *pace)
{
    double good = pace->turn_seconds * pace->rate * TURNS_A_COPY;
    uint64_t n_bytes = UNIT_BYTES;
    while (n_bytes < CARD_MAX_SLOT_BYTES && (double)n_bytes < good &&
           n_bytes * 2 * ENOUGH_SLOTS <= slab_bytes(s))
        n_bytes *= 2;
    return n_bytes;
}

void card_sizes_cut(struct card_sizes *s, uint64_t chunk_bytes, const struct card_pace *pace)
{
    uint64_t n_bytes = chunk_bytes;
    if (n_bytes == 0)
        n_bytes = max_u64(good_bytes(pace), busy_bytes(s, pace));
    while (n_bytes > UNIT_BYTES && n_bytes * (CARD_MIN_SLOTS + 1) > slab_bytes(s))
        n_bytes /= 2;
    s->slot_bytes = n_bytes;
    s->pool_bytes = (slab_bytes(s) / n_bytes - 1) * n_bytes;
    s->carry_bytes = s->device_bytes - s->workspace_bytes - s->pool_bytes - n_bytes;
}

unsigned card_sizes_depth(const struct card_sizes *s, unsigned depth, double turn_seconds,
                          double rate)
{
    uint64_t n = depth;
    if (n == 0) {
        double more = turn_seconds * rate / (double)s->slot_bytes;
        n = CARD_MIN_DEPTH + 1 + (more < CARD_MAX_DEPTH ? (unsigned)more : CARD_MAX_DEPTH);
    }
    return (unsigned)min_u64(min_u64(n, CARD_MAX_DEPTH), s->pool_bytes / s->slot_bytes - 1);
}
