/* An engine's measured rates on the wire: in worker.ready and in server.info. */
#pragma once

#include "kernels/plan.h"
#include "proto/message.h"

/* "rates": {...}, one pair of a map. */
void pack_rates(msgpack_packer *p, const struct plan_rates *rates);
