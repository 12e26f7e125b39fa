/* Rates as a worker sends them, as the broker tells of them, and as a worker gets them back with a
 * job that was planned by them: the same keys in all places, so that whoever reads server.info
 * finds what the estimates were made with. A rate of 0 is not known.
 *
 * Called by the worker (stats.c, wjob.c) and the broker (messages.c, requests.c, info.c).
 */
#include "daemon/rates.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#define MIN_RATE        1e3 /* bytes, or elements x instructions, a second */
#define MAX_RATE        1e18
#define MAX_JOB_SECONDS 60.0

void rates_pack(msgpack_packer *p, const struct plan_rates *rates)
{
    pack_str(p, "rates");
    msgpack_pack_map(p, 12);
    pack_key_f64(p, "memory", rates->memory);
    pack_key_f64(p, "file", rates->file);
    pack_key_f64(p, "disk", rates->disk);
    pack_key_f64(p, "to_device", rates->to_device);
    pack_key_f64(p, "from_device", rates->from_device);
    pack_key_f64(p, "device", rates->device);
    pack_key_f64(p, "work", rates->work);
    pack_key_f64(p, "product_float32", rates->product_float32);
    pack_key_f64(p, "product_float64", rates->product_float64);
    pack_key_f64(p, "product_integer", rates->product_integer);
    pack_key_f64(p, "product_tf32", rates->product_tf32);
    pack_key_f64(p, "job_seconds", rates->job_seconds);
}

/* Estimates are sums of what rates make of bytes: they have to stay finite, and what is no rate is
 * as good as not measured. */
static double sane(double value, double least, double most)
{
    return value >= least && value <= most ? value : 0;
}

double rates_or_none(double value)
{
    return sane(value, MIN_RATE, MAX_RATE);
}

int rates_read(const msgpack_object *map, struct plan_rates *ret, struct gad_error *error)
{
    const struct {
        const char *key;
        double *rate;
    } all[] = {
        {"memory", &ret->memory},
        {"file", &ret->file},
        {"disk", &ret->disk},
        {"to_device", &ret->to_device},
        {"from_device", &ret->from_device},
        {"device", &ret->device},
        {"work", &ret->work},
        {"product_float32", &ret->product_float32},
        {"product_float64", &ret->product_float64},
        {"product_integer", &ret->product_integer},
        {"product_tf32", &ret->product_tf32},
        {"job_seconds", &ret->job_seconds},
    };
    const msgpack_object *rates = map_find(map, "rates");
    int r = 0;
    for (unsigned i = 0; rates && r == 0 && i < ARRAY_LENGTH(all); i++)
        r = map_f64(rates, all[i].key, all[i].rate, error);
    for (unsigned i = 0; r == 0 && i < ARRAY_LENGTH(all); i++)
        *all[i].rate = all[i].rate == &ret->job_seconds ? sane(*all[i].rate, 0, MAX_JOB_SECONDS)
                                                        : rates_or_none(*all[i].rate);
    return r;
}
