/* How fast files come that are not in the page cache.
 *
 * Nothing is read for it: whenever a compute thread's read would have waited, an I/O thread waits,
 * and that is seen here. While the system reads ahead, others find in the cache what came from the
 * disk a moment ago, so what counts is all that tiles have of files meanwhile:
 *
 *     I/O thread 1      |wait|   |wait|  |wait|              |wait|
 *     I/O thread 2         |wait|   |wait|
 *     busy_ns           `-----'  `----'  `---'   gap: begins anew
 *
 * The sum is as good as a rate once it is of some size, if threads waited for most of the time:
 * else something other than the disk was slow. Rates are smoothed, since other programs use the
 * disk too.
 *
 * Called by the scheduler and its threads, under its lock. Pure code.
 */
#include "daemon/worker/io/disk.h"

#define LEAST_NS    UINT64_C(100000000)
#define LEAST_BYTES (UINT64_C(16) << 20)
#define GAP_NS      UINT64_C(100000000)
#define OLD_SHARE   3 /* of the rate so far, to one of what was found */

static void begin_anew(struct disk_meter *m, uint64_t now_ns)
{
    m->begun_ns = m->since_ns = now_ns;
    m->busy_ns = m->n_bytes = 0;
}

void disk_begin(struct disk_meter *m, uint64_t now_ns)
{
    if (m->n_reading++ > 0)
        return;
    if (m->begun_ns == 0 || now_ns - m->since_ns > GAP_NS)
        begin_anew(m, now_ns);
    m->since_ns = now_ns;
}

void disk_end(struct disk_meter *m, uint64_t now_ns)
{
    m->n_reading--;
    m->busy_ns += now_ns - m->since_ns;
    m->since_ns = now_ns;
    if (m->busy_ns < LEAST_NS || m->n_bytes < LEAST_BYTES)
        return;
    if (m->busy_ns >= (now_ns - m->begun_ns) / 2) {
        double found = (double)m->n_bytes / ((double)m->busy_ns * 1e-9);
        m->rate = m->rate > 0 ? (OLD_SHARE * m->rate + found) / (OLD_SHARE + 1) : found;
    }
    begin_anew(m, now_ns);
}

void disk_count(struct disk_meter *m, uint64_t n_bytes)
{
    m->n_bytes += n_bytes;
}
