/* Rates as a worker sends them and as the broker tells of them: the same keys in both places, so that
 * whoever reads server.info finds what the estimates were made with. A rate of 0 is not known.
 *
 * Called by the worker (stats.c) and the broker (info.c).
 */
#include "daemon/rates.h"

void pack_rates(msgpack_packer *p, const struct plan_rates *rates)
{
    pack_str(p, "rates");
    msgpack_pack_map(p, 10);
    pack_key_f64(p, "memory", rates->memory);
    pack_key_f64(p, "file", rates->file);
    pack_key_f64(p, "to_device", rates->to_device);
    pack_key_f64(p, "from_device", rates->from_device);
    pack_key_f64(p, "device", rates->device);
    pack_key_f64(p, "work", rates->work);
    pack_key_f64(p, "product_float32", rates->product_float32);
    pack_key_f64(p, "product_float64", rates->product_float64);
    pack_key_f64(p, "product_integer", rates->product_integer);
    pack_key_f64(p, "job_seconds", rates->job_seconds);
}
