/* Reductions of inputs that no instruction touches: taken in where they lie.
 *
 * There are no strips then. One reduction takes a whole box, or a whole run of it, at once; several
 * take a piece that stays in the first-level cache, one after the other. Where rows belong to
 * many cells (a mean along the first axis) a piece is all rows of some columns: so sums stay in
 * registers over several rows. The bits are those of strips. Called by run.c for each box.
 */
#include "kernels/cpu/run/run.h"

#include "proto/util.h"

#define PIECE_BYTES   (16u << 10)
#define PIECE_COLUMNS 64 /* at least */

static struct stream *stream_of(const struct run *run, const struct reducing *d)
{
    for (unsigned i = 0; i < run->n_inputs; i++)
        if (run->inputs[i].slot == d->src)
            return &run->inputs[i];
    return NULL;
}

/* In runs that are whole rows. */
static bool is_direct(const struct reducer *r, const struct stream *s)
{
    if (!s || s->near || (s->kind != STREAM_LINEAR && s->kind != STREAM_RUNS))
        return false;
    return s->kind == STREAM_LINEAR || s->n_run % r->row == 0;
}

static size_t widest_item(const struct run *run)
{
    size_t item_bytes = 1;
    for (unsigned i = 0; i < run->n_reductions; i++)
        item_bytes = max_u64(item_bytes, (size_t)1 << run->reductions[i].item_log2);
    return item_bytes;
}

/* Reductions that take in the elements by themselves. */
static unsigned count_sweeps(const struct run *run)
{
    unsigned n = 0;
    for (unsigned i = 0; i < run->n_reductions; i++)
        n += !run->reductions[i].twin && !run->reductions[i].is_taken;
    return n;
}

/* How many elements from `first` on lie together in all inputs and are not too many. */
static size_t piece_along_rows(const struct run *run, uint64_t first)
{
    const struct reducer *r = &run->reducer;
    uint64_t n = run->n_elements - first, most = n;
    for (unsigned i = 0; i < run->n_reductions; i++) {
        const struct stream *s = stream_of(run, &run->reductions[i]);
        if (s->kind == STREAM_RUNS)
            n = min_u64(n, s->n_run - first % s->n_run);
    }
    if (count_sweeps(run) > 1)
        most = PIECE_BYTES / widest_item(run);
    if (n <= most)
        return n;
    return r->row < most ? most - most % r->row : min_u64(most, r->row - first % r->row);
}

static void take_along_rows(struct run *run)
{
    for (uint64_t first = 0; first < run->n_elements;) {
        size_t n = piece_along_rows(run, first);
        for (unsigned i = 0; i < run->n_reductions; i++) {
            struct reducing *d = &run->reductions[i];
            const void *at = stream_direct(stream_of(run, d), run->box, first, n);
            reducing_take(&run->reducer, d, first, n, at, NULL);
        }
        first += n;
    }
}

/* n_rows rows from `first` on, that belong to the same cells. */
static void take_columns(struct run *run, uint64_t first, size_t n_rows)
{
    const struct reducer *r = &run->reducer;
    size_t n = (size_t)r->row, n_most = n;
    if (run->n_reductions > 1)
        n_most = max_u64(PIECE_BYTES / widest_item(run) / n_rows, PIECE_COLUMNS);
    for (size_t done = 0; done < n; done += n_most) {
        size_t n_now = min_u64(n_most, n - done);
        for (unsigned i = 0; i < run->n_reductions; i++) {
            struct reducing *d = &run->reductions[i];
            struct stream *s = stream_of(run, d);
            int64_t row_bytes = (int64_t)(r->row << d->item_log2);
            if (s->kind == STREAM_RUNS && r->next_axis >= 0)
                row_bytes = s->strides[r->next_axis];
            const char *at = stream_direct(s, run->box, first, n);
            reducing_take_rows(r, d, first + done, n_now, n_rows, at + (done << d->item_log2),
                               row_bytes);
        }
    }
}

bool run_directly(struct run *run)
{
    const struct reducer *r = &run->reducer;
    if (run->n_insns || run->n_stores || run->positions || !run->n_reductions)
        return false;
    for (unsigned i = 0; i < run->n_reductions; i++)
        if (!is_direct(r, stream_of(run, &run->reductions[i])))
            return false;
    if (r->is_along_rows) {
        take_along_rows(run);
        return true;
    }
    for (uint64_t first = 0; first < run->n_elements; first += r->next_length * r->row)
        take_columns(run, first, (size_t)r->next_length);
    return true;
}
