/* The choice between writing through the page cache and around it.
 *
 * Which is faster is not known beforehand and changes while a job runs: a write into cached pages
 * is a copy as long as there are free pages and few dirty ones, and waits for the disk when there
 * are not; one around the cache reuses a few pages and always goes at the disk's pace. So both are
 * timed, piece by piece, and what was learnt is kept per file system, for the jobs that follow:
 *
 *     |c c c c|a a a a|c c c c|a a a a| ...        until both have FIRST_SAMPLES
 *     |b b b b b b ... b b|x x x x x x x x|b b b b b b ...
 *        n_between           the probe
 *
 * b is the way with the lower mean, but the one around the cache already when it is no more than
 * 10 % slower: it leaves to others what they have in the cache. x is the other way, of which the
 * last probe alone counts; a probe ends early when it is very slow. The first probe comes soon
 * after every change of b, so a wrong turn is short; each one that changes nothing makes the time
 * to the next one longer, up to where probes cost a PROBE_SHARE of all.
 *
 * The mean of b follows its last dozens of pieces. One long wait does not turn the choice (a file
 * system's journal makes everybody wait now and then), a second one does. A wait that several
 * threads share is one.
 *
 * An output beyond what the cache can hold dirty is not timed: through the cache it looks fast
 * until the limit is reached. It goes around by RWF_DONTCACHE from its first piece on, where that
 * is known; only its last bytes, as many as may wait in the cache for a while, are timed as those
 * of others are, and so need not wait for the disk.
 *
 * Another descriptor with O_DIRECT is not among the ways: it needs alignment that npy data do not
 * have, and was slower than either way around the cache (DONTCACHE 3.5, behind 2.7, O_DIRECT 2.1
 * GB/s on one ext4 with two threads).
 *
 * Called by boxio.c on compute threads, by file.c when a job begins.
 */
#include "daemon/worker/io/writing.h"
#include "daemon/worker/procfiles.h"
#include "proto/util.h"

#define FIRST_SAMPLES 16
#define FIRST_RUN     4
#define PROBE_PIECES  8
#define PROBE_SHARE   50    /* one part of so many */
#define PROBE_GIVE_UP 4     /* times as slow as the better way */
#define MIN_BETWEEN   64    /* pieces: 16 MiB */
#define MAX_BETWEEN   16384 /* 4 GiB */
#define MEAN_OF       32
#define MAX_OUTLIER   64 /* times the mean */
#define WORTH_TENTHS  11 /* around is taken up to 11 tenths of the other way's time */
#define LONG_WAIT     4  /* times the mean */
#define ALWAYS_SMALL  (16u * 1024 * 1024)
#define LARGE_SHARE   4  /* of the memory that is available */
#define BEYOND_SHARE  8  /* the same */
#define LAST_SHARE    12 /* the same: less than the kernel lets lie before it writes back */

static uint32_t n_first(const struct write_choice *c)
{
    return c->n_samples[WRITE_CACHED] + c->n_samples[WRITE_AROUND];
}

static enum write_way other_way(enum write_way way)
{
    return way == WRITE_CACHED ? WRITE_AROUND : WRITE_CACHED;
}

enum write_way writing_choose(const struct write_choice *c)
{
    if (c->n_between == 0)
        return n_first(c) / FIRST_RUN % 2 ? WRITE_AROUND : WRITE_CACHED;
    return c->n_probe > 0 ? other_way(c->better) : c->better;
}

static void take_mean(struct write_choice *c, enum write_way way, uint64_t piece_ns)
{
    uint32_t n = c->n_samples[way];
    int64_t mean = c->piece_ns[way], sample = (int64_t)min_u64(piece_ns, UINT32_MAX);
    if (n >= FIRST_SAMPLES)
        sample = (int64_t)min_u64((uint64_t)sample, max_u64(mean, 1) * MAX_OUTLIER);
    int64_t weight = n < MEAN_OF ? (int64_t)n + 1 : MEAN_OF;
    c->piece_ns[way] = (uint32_t)(mean + (sample - mean) / weight);
    if (n < MEAN_OF)
        c->n_samples[way] = n + 1;
}

static enum write_way find_better(const struct write_choice *c)
{
    uint64_t cached = c->piece_ns[WRITE_CACHED], around = c->piece_ns[WRITE_AROUND];
    return around * 10 <= cached * WORTH_TENTHS ? WRITE_AROUND : WRITE_CACHED;
}

/* Pieces between probes so that what one costs beyond the better way is a PROBE_SHARE of all. */
static uint32_t affordable_between(const struct write_choice *c)
{
    uint64_t good = max_u64(c->piece_ns[c->better], 1);
    uint64_t other = c->piece_ns[other_way(c->better)];
    uint64_t lost = other > good ? (other - good) * PROBE_PIECES * PROBE_SHARE / good : 0;
    return (uint32_t)min_u64(max_u64(lost, MIN_BETWEEN), MAX_BETWEEN);
}

/* Both ways are known, the other one as of now when a probe has ended. */
static void decide(struct write_choice *c, bool is_probe_over)
{
    enum write_way better = find_better(c);
    if (c->n_between == 0 || better != c->better)
        c->n_between = MIN_BETWEEN;
    else if (is_probe_over)
        c->n_between = (uint32_t)min_u64(UINT64_C(4) * c->n_between, affordable_between(c));
    else
        return;
    c->better = better;
    c->n_until = c->n_between;
    c->n_probe = 0;
}

void writing_learn(struct write_choice *c, enum write_way way, uint64_t piece_ns)
{
    bool is_probe = c->n_probe > 0;
    if (c->n_between == 0) {
        take_mean(c, way, piece_ns);
        if (n_first(c) >= 2 * FIRST_SAMPLES)
            decide(c, false);
    } else if (is_probe && way != c->better) {
        take_mean(c, way, piece_ns);
        if (piece_ns / PROBE_GIVE_UP > c->piece_ns[c->better])
            c->n_probe = 1;
        if (--c->n_probe == 0)
            decide(c, true);
    } else if (!is_probe && way == c->better) {
        take_mean(c, way, piece_ns);
        if (--c->n_until == 0) {
            c->n_probe = PROBE_PIECES;
            c->n_until = c->n_between;
            c->n_samples[other_way(way)] = 0;
        } else {
            decide(c, false);
        }
    } /* else: it was begun before the last turn */
}

enum write_way writing_next(const struct write_device *d)
{
    if (writing_around(d) == AROUND_NONE)
        return WRITE_CACHED;
    return (enum write_way)atomic_load_explicit(&d->way, memory_order_relaxed);
}

/* What keeps one thread waiting mostly keeps the others, too: that is one wait, not several. */
static bool is_same_wait(struct write_device *d, enum write_way way, uint64_t piece_ns,
                         uint64_t begin_ns, uint64_t end_ns)
{
    if (d->choice.n_between == 0 || piece_ns / LONG_WAIT <= d->choice.piece_ns[way])
        return false;
    if (begin_ns < d->waited_until_ns)
        return true;
    d->waited_until_ns = end_ns;
    return false;
}

void writing_note(struct write_device *d, enum write_way way, uint64_t n_bytes, uint64_t begin_ns,
                  uint64_t end_ns)
{
    double pieces = (double)n_bytes / WRITING_PIECE_BYTES;
    uint64_t piece_ns = (uint64_t)((double)(end_ns - begin_ns) / pieces);
    if (atomic_flag_test_and_set_explicit(&d->is_learning, memory_order_acquire))
        return;
    if (!is_same_wait(d, way, piece_ns, begin_ns, end_ns)) {
        writing_learn(&d->choice, way, piece_ns);
        atomic_store_explicit(&d->way, writing_choose(&d->choice), memory_order_relaxed);
    }
    atomic_flag_clear_explicit(&d->is_learning, memory_order_release);
}

enum write_around writing_around(const struct write_device *d)
{
    return (enum write_around)atomic_load_explicit(&d->around, memory_order_relaxed);
}

void writing_lost(struct write_device *d, enum write_around around)
{
    uint32_t expected = around;
    if (around < AROUND_NONE)
        (void)atomic_compare_exchange_strong(&d->around, &expected, around + 1);
}

static void forget(struct write_device *d, uint64_t device)
{
    while (atomic_flag_test_and_set(&d->is_learning))
        ;
    d->device = device;
    d->choice = (struct write_choice){.n_between = 0};
    d->waited_until_ns = 0;
    atomic_store(&d->around, AROUND_DONTCACHE);
    atomic_store(&d->way, writing_choose(&d->choice));
    atomic_flag_clear(&d->is_learning);
}

struct write_device *writing_find(struct write_devices *table, uint64_t device)
{
    struct write_device *oldest = &table->devices[0];
    table->n_opened++;
    for (unsigned i = 0; i < WRITING_MAX_DEVICES; i++) {
        struct write_device *d = &table->devices[i];
        if (d->last_used > 0 && d->device == device) {
            d->last_used = table->n_opened;
            return d;
        }
        if (d->last_used < oldest->last_used)
            oldest = d;
    }
    forget(oldest, device);
    oldest->last_used = table->n_opened;
    return oldest;
}

bool writing_is_large(uint64_t n_bytes)
{
    if (n_bytes < ALWAYS_SMALL)
        return false;
    return n_bytes >= WRITING_LARGE_BYTES || n_bytes >= procfiles_available_bytes() / LARGE_SHARE;
}

uint64_t writing_no_choice_bytes(uint64_t n_bytes)
{
    uint64_t available = n_bytes < ALWAYS_SMALL ? UINT64_MAX : procfiles_available_bytes();
    return n_bytes < available / BEYOND_SHARE ? 0 : n_bytes - available / LAST_SHARE;
}
