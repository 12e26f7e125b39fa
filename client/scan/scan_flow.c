/* The flow of a shared scan.
 *
 *      taken by all        may be read         being decoded
 *     ----------------|---------------------|----------------|------------->  numbers
 *                  least done           published           next
 *
 * Number n takes the slot of n - n_slots, so it waits until that was published and every reader is
 * done with it; but
 *
 * - nobody runs ahead of the fastest reader by more than the ring or all chunks, so a scan whose
 *   readers all rest rests too;
 * - a reader that is behind is waited for at most PATIENCE_NS, of which it gets back an eighth of
 *   the time in which it is not: then it lags, and chunks are overwritten before it has seen them,
 *   which the stamps tell it. It is waited for again when it has caught up. So readers cost each
 *   other an eighth of their time at most.
 *
 * What a reader says is believed as far as it concerns itself: it is done with no more than was
 * begun. That may be more than is published: who comes back after a while skips numbers, of which
 * one may still be written where its thread was not let run.
 *
 * A reader begins where the older half of the ring is still there: who comes a moment later than
 * the others goes with them.
 */
#include "client/scan/scan_flow.h"
#include "proto/util.h"

#include <string.h>

#define PATIENCE_NS  UINT64_C(100000000)
#define REFILL_SHARE 8u

void scan_flow_init(struct scan_flow *flow, uint32_t n_slots, uint64_t n_chunks)
{
    memset(flow, 0, sizeof(*flow));
    flow->n_slots = n_slots;
    flow->most_ahead = min_u64(n_slots, n_chunks);
}

uint64_t scan_flow_join(struct scan_flow *flow, unsigned place, uint64_t now_ns)
{
    uint64_t back = min_u64(flow->next, flow->n_slots / 2);
    flow->readers[place] = (struct scan_reader_flow){.is_there = true,
                                                     .done = flow->next - back,
                                                     .patience_ns = PATIENCE_NS,
                                                     .refilled_ns = now_ns};
    return flow->next - back;
}

void scan_flow_leave(struct scan_flow *flow, unsigned place)
{
    flow->readers[place].is_there = false;
}

static bool is_behind(const struct scan_flow *flow, const struct scan_reader_flow *reader)
{
    return flow->next >= reader->done + flow->n_slots;
}

static void stop_blocking(struct scan_reader_flow *reader, uint64_t now_ns)
{
    if (reader->blocks_since == 0)
        return;
    reader->patience_ns -= min_u64(reader->patience_ns, now_ns - reader->blocks_since);
    reader->blocks_since = 0;
    reader->refilled_ns = now_ns;
}

int scan_flow_ack(struct scan_flow *flow, unsigned place, const struct scan_ack *ack,
                  uint64_t now_ns)
{
    struct scan_reader_flow *reader = &flow->readers[place];
    if (ack->done < reader->done || ack->done > flow->next)
        return -EPROTO;
    flow->n_taken += ack->done - reader->done;
    reader->done = ack->done;
    reader->wants_more = ack->wants_more != 0;
    if (!is_behind(flow, reader))
        stop_blocking(reader, now_ns);
    if (flow->next - min_u64(reader->done, flow->next) <= flow->n_slots / 2)
        reader->is_lagging = false;
    return 0;
}

/* Whether the reader is to be waited for; until when at most. */
static bool blocks(struct scan_reader_flow *reader, uint64_t now_ns, uint64_t *until_ns)
{
    if (reader->blocks_since == 0) {
        uint64_t refill = (now_ns - reader->refilled_ns) / REFILL_SHARE;
        reader->patience_ns = min_u64(reader->patience_ns + refill, PATIENCE_NS);
        reader->blocks_since = max_u64(now_ns, 1);
    }
    uint64_t end_ns = reader->blocks_since + reader->patience_ns;
    if (now_ns >= end_ns) {
        stop_blocking(reader, now_ns);
        reader->is_lagging = true;
        return false;
    }
    *until_ns = min_u64(*until_ns, end_ns);
    return true;
}

bool scan_flow_claim(struct scan_flow *flow, uint64_t now_ns, uint64_t *ret_number,
                     uint64_t *ret_until_ns)
{
    uint64_t most = 0;
    bool has_reader = false, is_blocked = false;
    *ret_until_ns = SCAN_NEVER_NS;
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++)
        if (flow->readers[i].is_there) {
            most = max_u64(most, flow->readers[i].done);
            has_reader = true;
        }
    if (!has_reader || flow->next >= most + flow->most_ahead ||
        flow->next >= flow->published + flow->n_slots)
        return false;
    for (unsigned i = 0; i < SCAN_MAX_READERS; i++) {
        struct scan_reader_flow *reader = &flow->readers[i];
        if (reader->is_there && !reader->is_lagging && is_behind(flow, reader))
            is_blocked |= blocks(reader, now_ns, ret_until_ns);
    }
    if (!is_blocked)
        *ret_number = flow->next++;
    return !is_blocked;
}

void scan_flow_publish(struct scan_flow *flow, uint64_t number)
{
    flow->there[number % flow->n_slots] = number + 1;
    while (flow->there[flow->published % flow->n_slots] == flow->published + 1)
        flow->published++;
}

bool scan_flow_take_wish(struct scan_flow *flow, unsigned place)
{
    struct scan_reader_flow *reader = &flow->readers[place];
    if (!reader->is_there || !reader->wants_more ||
        flow->there[reader->done % flow->n_slots] <= reader->done)
        return false;
    reader->wants_more = false;
    return true;
}
