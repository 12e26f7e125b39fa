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

#include <string.h>

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

static bool is_name(const char *name, const msgpack_object *key)
{
    return key->type == MSGPACK_OBJECT_STR && key->via.str.size > 0 &&
           key->via.str.ptr[0] == name[0] && strlen(name) == key->via.str.size &&
           memcmp(name, key->via.str.ptr, key->via.str.size) == 0;
}

/* Which of the names, probably this one; n: none of them. */
static unsigned index_of(const char *const *names, unsigned n, const msgpack_object *key,
                         unsigned probably)
{
    if (probably < n && is_name(names[probably], key))
        return probably;
    unsigned i = 0;
    while (i < n && !is_name(names[i], key))
        i++;
    return i;
}

static void update_u64(uint64_t *number, const msgpack_object *value)
{
    if (value && value->type == MSGPACK_OBJECT_POSITIVE_INTEGER && value->via.u64 <= MAX_BYTES)
        raise_to(number, value->via.u64);
}

static void update_ns(uint64_t *number, const msgpack_object *value)
{
    bool is_float = value->type == MSGPACK_OBJECT_FLOAT64 || value->type == MSGPACK_OBJECT_FLOAT32;
    double seconds = is_float                                         ? value->via.f64
                     : value->type == MSGPACK_OBJECT_POSITIVE_INTEGER ? (double)value->via.u64
                                                                      : 0;
    if (seconds > 0 && seconds < MAX_SECONDS)
        raise_to(number, (uint64_t)(seconds * 1e9));
}

/* Each job tells these once at least: what is there is gone through, and nothing looked for. */
static void update_all(uint64_t *numbers, const char *const *names, unsigned n,
                       const msgpack_object *map, bool is_time)
{
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return;
    unsigned next = 0; /* as they are packed */
    for (uint32_t k = 0; k < map->via.map.size; k++) {
        const msgpack_object_kv *entry = &map->via.map.ptr[k];
        unsigned i = index_of(names, n, &entry->key, next);
        next = i < n ? i + 1 : next;
        if (i < n && is_time)
            update_ns(&numbers[i], &entry->val);
        else if (i < n)
            update_u64(&numbers[i], &entry->val);
    }
}

void traffic_update(struct traffic *t, const msgpack_object *map)
{
    const msgpack_object *bytes = map_find(map, "bytes");
    update_all(t->read_bytes, path_names, TRAFFIC_N_PATHS, map_find(bytes, "read"), false);
    update_all(t->write_bytes, path_names, TRAFFIC_N_PATHS, map_find(bytes, "write"), false);
    update_u64(&t->around_cache_bytes, map_find(map, "around_cache_bytes"));
    update_all(t->stage_ns, stage_names, TRAFFIC_N_STAGES, map_find(map, "seconds"), true);
    update_all(t->wait_ns, wait_names, TRAFFIC_N_WAITS, map_find(map, "waits"), true);
}
