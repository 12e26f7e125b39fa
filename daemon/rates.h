/* An engine's measured rates on the wire: in worker.ready, job.start and server.info. */
#pragma once

#include "kernels/plan/plan.h"
#include "proto/wire/message.h"

/* "rates": {...}, one pair of a map. */
void rates_pack(msgpack_packer *p, const struct plan_rates *rates);
/* From a map with such a pair, or without. What is no rate is as good as not measured. */
int rates_read(const msgpack_object *map, struct plan_rates *ret,
               struct gad_error *error) GAD_MUST_CHECK;
/* 0 where it is no rate. */
double rates_or_none(double value);
