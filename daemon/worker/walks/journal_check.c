/* Whether the output is still the one that the journal tells of, before anything is written to it.
 *
 * A file keeps its name and its number when somebody makes it anew, so the names of files do not
 * tell. What is in it does. Tiles that were applied must have what they gave, of which the journal
 * has a sum. The tile that was being applied has in each cell what the journal has, what was there
 * before (of which the journal has checksums, piece by piece), or, where the end came while it was
 * written, first the one and then the other:
 *
 *     piece     0    1    2    3    4    5    ...
 *               new  new  both old  old  old        bytes are written upwards
 *
 * After the machine's own end pages may have reached the disk in any order. Then whole pieces that
 * are the one or the other are as good in any order; one that has both cannot be told from a change
 * there, and is refused.
 *
 * Where the job does not read its output what was there before means nothing. Tiles that were not
 * begun have no trace in the journal: they are the caller's to change.
 *
 * All that was applied is read again, as much as was written; a job that is stopped meanwhile stops
 * here, too. Called by an I/O thread, before the job's first turn.
 */
#include "daemon/worker/walks/journal.h"
#include "daemon/worker/walks/journal_file.h"
#include "daemon/worker/walks/walk_product.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

struct check {
    const struct wjob *job;
    const struct port *port;     /* the output */
    struct plan_product product; /* of all tiles, those that are finished, too */
    const struct port_io *io;
    char *now, *logged; /* a cell each */
    uint64_t tile, sum; /* of the cells that were looked at */
};

static int refuse(const struct check *c, uint64_t tile, struct gad_error *error)
{
    error_set(error, GAD_BAD_JOURNAL, "journal",
              "'%s' was changed since the journal was written, which says that part of it was "
              "added to",
              c->port->name);
    error_expected(error,
                   "what the journal says of tile %" PRIu64
                   ": that output; or no journal, to begin anew with what is there now",
                   tile);
    error_found(error, "other content");
    return GAD_BAD_JOURNAL;
}

/* What is there, of a cell that is being applied, piece by piece. */
struct pieces {
    bool is_new[JOURNAL_N_PIECES], is_old[JOURNAL_N_PIECES];
    bool begins_new[JOURNAL_N_PIECES]; /* its first byte is */
};

static void look_at_pieces(const char *now, const char *logged, const uint64_t *before,
                           size_t n_bytes, struct pieces *ret)
{
    uint64_t is[JOURNAL_N_PIECES];
    size_t piece = journal_piece_bytes(n_bytes), at = 0;
    journal_piece_checksums(now, n_bytes, is);
    for (unsigned i = 0; i < JOURNAL_N_PIECES; i++) {
        size_t n = min_u64(piece, n_bytes - at);
        ret->is_new[i] = memcmp(now + at, logged + at, n) == 0;
        ret->is_old[i] = is[i] == before[i];
        ret->begins_new[i] = n > 0 && now[at] == logged[at];
        at += n;
    }
}

static bool is_new_or_old(const struct pieces *p)
{
    unsigned i = 0;
    while (i < JOURNAL_N_PIECES && (p->is_new[i] || p->is_old[i]))
        i++;
    return i == JOURNAL_N_PIECES;
}

static bool is_new_then_old(const struct pieces *p)
{
    unsigned i = 0;
    while (i < JOURNAL_N_PIECES && p->is_new[i])
        i++;
    if (i < JOURNAL_N_PIECES && !p->is_old[i] && p->begins_new[i])
        i++; /* both */
    while (i < JOURNAL_N_PIECES && p->is_old[i])
        i++;
    return i == JOURNAL_N_PIECES;
}

static int check_begun(struct check *c, uint64_t cell, int64_t n_bytes, struct gad_error *error)
{
    struct journal_cell head;
    struct pieces pieces;
    int r = journal_load(c->job, c->tile, cell, c->logged, n_bytes, c->io, error);
    if (!r)
        r = journal_read_cell(c->job, cell, &head, c->io, error);
    if (r || !c->job->is_in_place)
        return r;
    look_at_pieces(c->now, c->logged, head.before, (size_t)n_bytes, &pieces);
    if (is_new_then_old(&pieces) || is_new_or_old(&pieces))
        return 0;
    return refuse(c, c->tile, error);
}

static int check_turn(struct check *c, const struct product_turn *turn, struct gad_error *error)
{
    const struct geometry *g = &c->product.passes[PRODUCT_RESULT].geometry;
    bool is_applied = turn->tile < c->job->walk.journal->n_applied;
    int r = 0;
    for (uint64_t k = 0; !turn->is_empty && k < turn->n_grains && !r; k++) {
        int64_t start[ARRAY_MAX_NDIM], count[ARRAY_MAX_NDIM];
        uint64_t n_cells = c->job->walk.journal->n_cells, cell = turn->first_cell + k;
        struct port_box box;
        if (atomic_load_explicit(&c->job->is_stopped, memory_order_relaxed))
            return 0;
        if (c->io->page)
            crashpage_go_on(c->io->page, clock_ns());
        geometry_grain(g, product_grain(&c->product, turn, k), start, count);
        port_pass_box(c->port, g->ndim, start, count, &box);
        int64_t n_bytes = port_box_bytes(c->port, &box);
        r = walk_log_read_output(c->job, c->port, &box, c->now, c->io, error);
        if (!r && is_applied)
            c->sum ^= journal_checksum(c->now, (size_t)n_bytes, c->tile * n_cells + cell);
        else if (!r)
            r = check_begun(c, cell, n_bytes, error);
    }
    return r;
}

/* The tile's last turn was looked at. */
static int check_sum(const struct check *c, struct gad_error *error)
{
    uint64_t sum;
    if (c->tile >= c->job->walk.journal->n_applied ||
        atomic_load_explicit(&c->job->is_stopped, memory_order_relaxed))
        return 0;
    int r = journal_read_sum(c->job, c->tile, &sum, c->io, error);
    return !r && sum != c->sum ? refuse(c, c->tile, error) : r;
}

static int check_tiles(struct check *c, struct gad_error *error)
{
    const struct journal *j = c->job->walk.journal;
    for (uint64_t i = 0; i < c->product.n_turns; i++) {
        struct product_turn turn;
        i = product_skip(&c->product, i, 1u << PRODUCT_RESULT);
        if (i >= c->product.n_turns)
            break;
        product_turn(&c->product, i, &turn);
        if (turn.step != PRODUCT_APPLY)
            continue;
        if (turn.tile != c->tile) {
            int r = check_sum(c, error);
            if (r)
                return r;
            c->tile = turn.tile;
            c->sum = 0;
        }
        if (turn.tile >= j->n_logged)
            return 0;
        int r = check_turn(c, &turn, error);
        if (r)
            return r;
    }
    return check_sum(c, error);
}

int journal_check_output(const struct wjob *job, const struct port_io *io, struct gad_error *error)
{
    struct check c = {.job = job, .port = &job->ports[job->program->n_inputs], .io = io};
    size_t cell_bytes = job->walk.journal->cell_bytes;
    int r = -ENOMEM;
    c.now = malloc(cell_bytes);
    c.logged = malloc(cell_bytes);
    if (c.now && c.logged) {
        c.product = job->plan.products[0];
        product_resume(&c.product, 0, false);
        r = check_tiles(&c, error);
    }
    free(c.now);
    free(c.logged);
    return r;
}
