/* The answer to `trace`: what the worker did with the tiles of one job, as far as its ring
 * remembers it, and what the lanes are called on which it did that. Main thread; called by
 * handle.c.
 *
 * Whose the job is was looked up by the broker. Nothing of other jobs is in the answer.
 */
#include "daemon/worker/trace.h"
#include "daemon/worker/worker.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <stdio.h>

#define NAME_SIZE 24
#define MAX_LANES (CRASHPAGE_MAX_THREADS + 4u)

struct lanes { /* that occur */
    uint16_t numbers[MAX_LANES];
    unsigned n;
};

static void add_lane(struct lanes *lanes, uint16_t lane)
{
    unsigned i = lanes->n;
    while (i > 0 && lanes->numbers[i - 1] != lane)
        i--;
    if (i == 0 && lanes->n < MAX_LANES)
        lanes->numbers[lanes->n++] = lane;
}

static void name_lane(const struct worker *w, uint16_t lane, char ret_name[NAME_SIZE])
{
    static const char *const of_device[] = {"to the device", "kernels", "from the device",
                                            "submissions", "products"};
    unsigned n_compute = w->engine->limits.n_threads, n_spares = sched_n_spares(n_compute);
    if (lane >= TRACE_LANE_TO_DEVICE)
        snprintf(ret_name, NAME_SIZE, "%s",
                 of_device[min_u64(lane - TRACE_LANE_TO_DEVICE, ARRAY_LENGTH(of_device) - 1)]);
    else if (lane == 0)
        snprintf(ret_name, NAME_SIZE, "main");
    else if (lane <= n_compute)
        snprintf(ret_name, NAME_SIZE, "compute %u", (unsigned)lane);
    else if (lane <= n_compute + n_spares)
        snprintf(ret_name, NAME_SIZE, "spare %u", lane - n_compute);
    else
        snprintf(ret_name, NAME_SIZE, "io %u", lane - n_compute - n_spares);
}

static void pack_lanes(msgpack_packer *p, const struct worker *w,
                       const struct trace_record *records, unsigned n)
{
    struct lanes lanes = {.n = 0};
    for (unsigned i = 0; i < n; i++)
        add_lane(&lanes, records[i].lane);
    pack_str(p, "lanes");
    msgpack_pack_array(p, lanes.n);
    for (unsigned i = 0; i < lanes.n; i++) {
        char name[NAME_SIZE];
        name_lane(w, lanes.numbers[i], name);
        msgpack_pack_array(p, 2);
        msgpack_pack_uint64(p, lanes.numbers[i]);
        pack_str(p, name);
    }
}

int worker_send_trace(struct worker *w, uint32_t message_id, uint64_t job)
{
    _cleanup_free_ struct trace_record *records = calloc(TRACE_SLOTS, sizeof(*records));
    msgpack_packer *p = &w->writer.packer;
    uint64_t since_ns = UINT64_MAX;
    unsigned n = records ? trace_find(w->engine->trace, job, records, &since_ns) : 0;
    message_writer_clear(&w->writer);
    message_begin_result(&w->writer, message_id);
    msgpack_pack_map(p, 3);
    pack_key_u64(p, "since_ns", since_ns);
    pack_lanes(p, w, records, n);
    pack_str(p, "records");
    msgpack_pack_bin(p, n * sizeof(*records));
    if (n > 0)
        msgpack_pack_bin_body(p, records, n * sizeof(*records));
    return worker_send(w);
}
