/* Bytes by path and seconds by stage, in memory and as maps.
 *
 * A job's numbers are told as sums since its attempt began, again and again, each time whole: what
 * is told twice counts once, and what gets lost is made up by the next. Whoever adds jobs up adds
 * the differences. So numbers must not fall, and traffic_update() keeps the larger one, whatever a
 * worker says.
 *
 * Called by the worker's reply.c and tile.c, the broker's metrics.c and stats.c.
 */
#include "daemon/traffic.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

/* Of one job; more is no time, and no number of bytes: sums would wrap around, and fall. */
#define MAX_SECONDS 1e9
#define MAX_BYTES   (UINT64_C(1) << 56)

static const char *const path_names[TRAFFIC_N_PATHS] = {
    [TRAFFIC_FILE] = "file",         [TRAFFIC_CHUNKS] = "chunks", [TRAFFIC_REGION] = "region",
    [TRAFFIC_PROVIDER] = "provider", [TRAFFIC_INLINE] = "inline",
};

static const char *const stage_names[TRAFFIC_N_STAGES] = {
    [TRAFFIC_SOURCE] = "source", [TRAFFIC_TO_DEVICE] = "to_device",
    [TRAFFIC_KERNEL] = "kernel", [TRAFFIC_FROM_DEVICE] = "from_device",
    [TRAFFIC_SINK] = "sink",     [TRAFFIC_CLIENT] = "client",
};
static const char *const wait_names[TRAFFIC_N_WAITS] = {
    [TRAFFIC_INPUT] = "input", [TRAFFIC_ROOM] = "room", [TRAFFIC_TURN] = "turn"};

enum traffic_path traffic_path_of(const struct location *at)
{
    switch (at->kind) {
    case LOCATION_FILE: return at->file.is_grid ? TRAFFIC_CHUNKS : TRAFFIC_FILE;
    case LOCATION_REGION: return TRAFFIC_REGION;
    case LOCATION_PROVIDER: return TRAFFIC_PROVIDER;
    case LOCATION_INLINE:
    case LOCATION_NONE: break;
    }
    return TRAFFIC_INLINE;
}

const char *traffic_wait_name(enum traffic_wait wait)
{
    return wait_names[wait];
}

const char *traffic_path_name(enum traffic_path path)
{
    return path_names[path];
}

const char *traffic_stage_name(enum traffic_stage stage)
{
    return stage_names[stage];
}

uint64_t traffic_sum(const uint64_t *by_path)
{
    uint64_t n_bytes = 0;
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++)
        n_bytes += by_path[i];
    return n_bytes;
}

void traffic_add(struct traffic *sum, const struct traffic *t)
{
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++) {
        sum->read_bytes[i] += t->read_bytes[i];
        sum->write_bytes[i] += t->write_bytes[i];
    }
    sum->around_cache_bytes += t->around_cache_bytes;
    for (unsigned i = 0; i < TRAFFIC_N_STAGES; i++)
        sum->stage_ns[i] += t->stage_ns[i];
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        sum->wait_ns[i] += t->wait_ns[i];
}

/* Copies both ways and kernels overlap. */
uint64_t traffic_work_ns(const struct traffic *t)
{
    const uint64_t *ns = t->stage_ns;
    uint64_t device_ns = max_u64(ns[TRAFFIC_TO_DEVICE], ns[TRAFFIC_FROM_DEVICE]);
    return ns[TRAFFIC_SOURCE] + max_u64(ns[TRAFFIC_KERNEL], device_ns) + ns[TRAFFIC_SINK];
}

void traffic_pack_waits(msgpack_packer *p, const uint64_t *wait_ns)
{
    msgpack_pack_map(p, TRAFFIC_N_WAITS);
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        pack_key_f64(p, wait_names[i], (double)wait_ns[i] / 1e9);
}

static void pack_paths(msgpack_packer *p, const char *key, const uint64_t *by_path)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++)
        n += by_path[i] > 0;
    pack_str(p, key);
    msgpack_pack_map(p, n);
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++)
        if (by_path[i] > 0)
            pack_key_u64(p, path_names[i], by_path[i]);
}

void traffic_pack_bytes(msgpack_packer *p, const uint64_t *read_by_path,
                        const uint64_t *write_by_path)
{
    msgpack_pack_map(p, 2);
    pack_paths(p, "read", read_by_path);
    pack_paths(p, "write", write_by_path);
}

static void raise_to(uint64_t *number, uint64_t value)
{
    if (value > *number)
        *number = value;
}

static void update_u64(uint64_t *number, const msgpack_object *map, const char *key)
{
    uint64_t value = 0;
    struct gad_error ignored;
    if (map && map_u64(map, key, &value, &ignored) == 0 && value <= MAX_BYTES)
        raise_to(number, value);
}

static void update_ns(uint64_t *number, const msgpack_object *map, const char *key)
{
    double seconds = 0;
    struct gad_error ignored;
    if (map && map_f64(map, key, &seconds, &ignored) == 0 && seconds > 0 && seconds < MAX_SECONDS)
        raise_to(number, (uint64_t)(seconds * 1e9));
}

void traffic_update(struct traffic *t, const msgpack_object *map)
{
    const msgpack_object *bytes = map_find(map, "bytes"), *seconds = map_find(map, "seconds");
    const msgpack_object *waits = map_find(map, "waits");
    const msgpack_object *read = bytes ? map_find(bytes, "read") : NULL;
    const msgpack_object *written = bytes ? map_find(bytes, "write") : NULL;
    for (unsigned i = 0; i < TRAFFIC_N_PATHS; i++) {
        update_u64(&t->read_bytes[i], read, path_names[i]);
        update_u64(&t->write_bytes[i], written, path_names[i]);
    }
    update_u64(&t->around_cache_bytes, map, "around_cache_bytes");
    for (unsigned i = 0; i < TRAFFIC_N_STAGES; i++)
        update_ns(&t->stage_ns[i], seconds, stage_names[i]);
    for (unsigned i = 0; i < TRAFFIC_N_WAITS; i++)
        update_ns(&t->wait_ns[i], waits, wait_names[i]);
}
