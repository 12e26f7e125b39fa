/* Three rings of different coarseness, of fixed size: together they go back a day.
 *
 *     minutes   |-----|-----|-----|-----|-----|
 *     tens of seconds          |-|-|-|-|-|-|-|-|
 *     seconds                            ||||||||||  now
 *
 * Every ring has all of its own time, so that one which is full forgets its oldest and nothing has
 * to be moved from ring to ring. Whoever reads gets the coarse ones only from before the finer ones
 * begin. A coarse sample has the most that a number was in its time, so a peak of memory that
 * lasted a second is seen a day later; counters are as they were at its end. While nothing happens
 * the sampler comes more seldom: a sample may stand for longer than its ring's period.
 *
 * Invariants: times rise within a ring, and its open sample is later than all of them.
 *
 * Called by sampler.c.
 */
#include "daemon/broker/numbers/samples.h"
#include "proto/util.h"

#include <string.h>

static const struct {
    uint64_t period_ms;
    size_t n_most;
} levels[SAMPLES_N_LEVELS] = {{1000, 600}, {10000, 720}, {60000, 1440}};

int samples_init(struct samples *samples)
{
    *samples = (struct samples){.levels = {{.n = 0}}};
    for (unsigned i = 0; i < SAMPLES_N_LEVELS; i++) {
        samples->levels[i].samples = calloc(levels[i].n_most, sizeof(struct sample));
        if (!samples->levels[i].samples) {
            samples_deinit(samples);
            return -ENOMEM;
        }
    }
    return 0;
}

void samples_deinit(struct samples *samples)
{
    for (unsigned i = 0; i < SAMPLES_N_LEVELS; i++)
        free_ptr(&samples->levels[i].samples);
}

static const struct sample *sample_at(const struct samples *samples, unsigned level, size_t i)
{
    const struct sample_ring *ring = &samples->levels[level];
    return &ring->samples[(ring->first + i) % levels[level].n_most];
}

static void push(struct samples *samples, unsigned level, const struct sample *sample)
{
    struct sample_ring *ring = &samples->levels[level];
    size_t n_most = levels[level].n_most;
    ring->samples[(ring->first + ring->n) % n_most] = *sample;
    if (ring->n < n_most)
        ring->n++;
    else
        ring->first = (ring->first + 1) % n_most;
}

static void take_in(struct sample *open, const struct sample *now)
{
    uint64_t period_ms = open->period_ms + now->period_ms;
    if (open->period_ms == 0)
        *open = *now;
    for (unsigned i = 0; i < SAMPLE_READ_BYTES; i++)
        open->numbers[i] = max_u64(open->numbers[i], now->numbers[i]);
    for (unsigned i = SAMPLE_READ_BYTES; i < SAMPLE_N; i++)
        open->numbers[i] = now->numbers[i];
    open->at_ms = now->at_ms;
    open->period_ms = period_ms;
}

void samples_add(struct samples *samples, const struct sample *now)
{
    const struct sample_ring *finest = &samples->levels[0];
    if (finest->n > 0 && sample_at(samples, 0, finest->n - 1)->at_ms >= now->at_ms)
        return;
    push(samples, 0, now);
    for (unsigned i = 1; i < SAMPLES_N_LEVELS; i++) {
        struct sample *open = &samples->levels[i].open;
        take_in(open, now);
        if (open->period_ms < levels[i].period_ms)
            continue;
        push(samples, i, open);
        open->period_ms = 0;
    }
}

/* From when on finer rings have it all. */
static uint64_t finer_from_ms(const struct samples *samples, unsigned level)
{
    for (unsigned i = level; i-- > 0;)
        if (samples->levels[i].n > 0)
            return sample_at(samples, i, 0)->at_ms;
    return UINT64_MAX;
}

size_t samples_after(const struct samples *samples, uint64_t after_ms, struct sample *ret_samples,
                     size_t n_most)
{
    size_t n = 0;
    for (unsigned level = SAMPLES_N_LEVELS; level-- > 0;) {
        uint64_t until_ms = finer_from_ms(samples, level);
        for (size_t i = 0; i < samples->levels[level].n && n < n_most; i++) {
            const struct sample *sample = sample_at(samples, level, i);
            if (sample->at_ms > after_ms && sample->at_ms < until_ms)
                ret_samples[n++] = *sample;
        }
    }
    return n;
}
