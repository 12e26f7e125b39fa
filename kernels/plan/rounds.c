/* Rounds: where the results of all reductions together do not fit the carry, all passes are done
 * for one part of the arrays after the other.
 *
 * The part is a piece of one axis of every pass, which has to be found:
 *
 *     (a - mean(a, axis=0)) / std(a, axis=0)        a: (1000, 10^8)
 *
 *     pass 0 reduces axis 0, keeps axis 1 --results (10^8,)--> pass 1 reads them along its axis 1
 *
 * The largest result is cut along one of its axes. Then the pass that makes it is cut along the
 * same axis, which it must keep; all results of that pass are; and every pass that reads one of
 * them has to be cut along the axis with which it reads. Passes that this does not reach are done
 * once, in the first round, and their results are there for the others in whole. If these still are
 * too many, the largest of them is cut too, along an axis of the same length. A result that some
 * pass reads as a table is not cut.
 *
 * A round is a number of chunks, where an array is a grid of chunks, unless one is too large, and a
 * power of two of them, so that grains of all passes divide it.
 *
 * What has to be cut along which axis when one pass is cut along one of its own is found once for
 * each axis of each pass (struct reach), from the reaches of those that read its results. Then
 * choosing tries, for each axis of the pass with the largest result, to cut one pass more as often
 * as there are passes, each time along the axes of one: axes^2 x passes reaches are compared at
 * most, and axes x passes times is added up what all results take; plan->n_steps counts both.
 *
 * Called by carry.c. Pure code.
 */
#include "kernels/plan/planner.h"
#include "proto/util.h"

#include <string.h>

#define NOT_CUT -1

/* What is cut when a pass is cut along an axis. */
struct reach {
    bool is_known;
    bool is_possible;                /* no pass along two axes, all of one length, none reduced */
    int8_t axes[PROGRAM_MAX_PASSES]; /* NOT_CUT, or of each pass */
    int64_t unit;                    /* chunks along the axis of the pass itself; 0: not known */
};

struct search {
    struct planner *p;
    bool has_table[PROGRAM_MAX_PASSES]; /* some pass reads a result of this one in whole */
    uint64_t whole_bytes[PROGRAM_MAX_REDUCTIONS];
    int64_t length;                  /* of the axes that are cut */
    int8_t axes[PROGRAM_MAX_PASSES]; /* as of a reach: of what is cut so far */
    /* Of results of passes that are cut: bytes of one place along the axis. */
    int64_t rest_bytes[PROGRAM_MAX_REDUCTIONS];
    struct planner_life lives[PROGRAM_MAX_REDUCTIONS];
    struct reach reaches[PROGRAM_MAX_PASSES][ARRAY_MAX_NDIM];
};

/* The axis of a result that is this axis of the pass that makes it. */
static int result_axis(const struct program *program, unsigned reduction, int axis)
{
    const struct reduction *r = &program->reductions[reduction];
    const struct pass *pass = &program->passes[r->pass];
    int own = 0;

    for (int i = 0; i < axis; i++)
        own += r->keeps_dims || !(pass->reduced_axes >> i & 1);
    return own;
}

int planner_result_round_axis(const struct planner *p, unsigned reduction)
{
    unsigned pass = p->program->reductions[reduction].pass;

    if (p->round_length == 0 || p->round_axes[pass] < 0)
        return -1;
    return result_axis(p->program, reduction, p->round_axes[pass]);
}

uint64_t planner_one_result_bytes(const struct planner *p, unsigned reduction)
{
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t n_bytes = (int64_t)dtype_size((enum dtype)p->program->reductions[reduction].result);
    int ndim = program_reduction_shape(p->program, reduction, shape);
    int cut = planner_result_round_axis(p, reduction);

    if (!program_is_kept(p->program, reduction))
        return 0;
    for (int i = 0; i < ndim; i++)
        n_bytes = mul_saturating_i64(n_bytes, i == cut ? p->round_length : shape[i]);
    return round_up_u64((uint64_t)n_bytes, PLANNER_CARRY_ALIGN);
}

uint64_t planner_result_bytes(const struct planner *p, uint64_t which)
{
    uint64_t offsets[PROGRAM_MAX_REDUCTIONS];

    return planner_place_results(p, which, offsets);
}

static void find_tables(struct search *s)
{
    const struct program *program = s->p->program;
    uint64_t used = 0;

    memset(s->has_table, 0, sizeof(s->has_table));
    for (unsigned i = 0; i < program->n_passes; i++)
        used |= program->passes[i].tables_used;
    for (; used; used &= used - 1)
        s->has_table[program->reductions[__builtin_ctzll(used)].pass] = true;
}

/* What is cut with both; false: some pass would be along two axes. */
static bool join(struct search *s, int8_t *axes, const int8_t *others)
{
    bool is_possible = true;

    planner_count_steps(s->p, 1);
    for (unsigned i = 0; i < PROGRAM_MAX_PASSES; i++) {
        is_possible &= axes[i] == NOT_CUT || others[i] == NOT_CUT || axes[i] == others[i];
        axes[i] = axes[i] == NOT_CUT ? others[i] : axes[i];
    }
    return is_possible;
}

static const struct reach *reach_of(struct search *s, unsigned pass, int axis);

/* Every pass that reads the result, along the axis with which it does. */
static bool reach_readers(struct search *s, unsigned reduction, int axis, struct reach *reach)
{
    const struct program *program = s->p->program;
    unsigned maker = program->reductions[reduction].pass;
    int64_t shape[ARRAY_MAX_NDIM];
    int ndim = program_reduction_shape(program, reduction, shape);
    int own = result_axis(program, reduction, axis);

    for (unsigned i = maker + 1u; i < program->n_passes; i++) {
        const struct pass *pass = &program->passes[i];
        if (!(pass->reduced_used >> reduction & 1))
            continue;
        int at = pass->ndim - ndim + own;
        if (pass->shape[at] != program->passes[maker].shape[axis])
            return false;
        const struct reach *other = reach_of(s, i, at);
        if (!other->is_possible || !join(s, reach->axes, other->axes))
            return false;
    }
    return true;
}

/* Passes are read by later ones only, so that this ends. */
static const struct reach *reach_of(struct search *s, unsigned index, int axis)
{
    const struct pass *pass = &s->p->program->passes[index];
    struct reach *reach = &s->reaches[index][axis];

    if (reach->is_known)
        return reach;
    reach->is_known = true;
    reach->unit = 0;
    memset(reach->axes, NOT_CUT, sizeof(reach->axes));
    reach->axes[index] = (int8_t)axis;
    reach->is_possible = !(pass->reduced_axes >> axis & 1) && !s->has_table[index];
    for (unsigned i = 0; i < pass->n_reductions && reach->is_possible; i++)
        reach->is_possible = reach_readers(s, pass->first_reduction + i, axis, reach);
    return reach;
}

/* Chunks -------------------------------------------------------------------------------------- */

/* The common multiple; `most` where it is that or more. */
static int64_t common_multiple(int64_t a, int64_t b, int64_t most)
{
    if (a >= most || b >= most)
        return most;
    if (a % b == 0)
        return a;
    int64_t multiple = mul_saturating_i64(a / common_divisor_i64(a, b), b);
    return multiple < most ? multiple : most;
}

/* Of the arrays that a pass reads, along one of its axes. */
static int64_t unit_of(struct search *s, unsigned index, int axis)
{
    const struct program *program = s->p->program;
    const struct pass *pass = &program->passes[index];
    int64_t *unit = &s->reaches[index][axis].unit;

    if (*unit > 0)
        return *unit;
    *unit = 1;
    for (uint64_t left = pass->inputs_used; left; left &= left - 1) {
        const struct program_input *input = &program->inputs[__builtin_ctzll(left)];
        const int64_t *chunks = array_chunk_shape(&s->p->request->args[input->arg].array);
        int own = axis - (pass->ndim - input->ndim);
        planner_count_steps(s->p, 1);
        if (own >= 0 && input->shape[own] == s->length && chunks)
            *unit = common_multiple(*unit, chunks[own], s->length);
    }
    return *unit;
}

static int64_t chunk_unit(struct search *s)
{
    int64_t unit = 1;

    for (unsigned i = 0; i < s->p->program->n_passes; i++)
        if (s->axes[i] != NOT_CUT)
            unit = common_multiple(unit, unit_of(s, i, s->axes[i]), s->length);
    return unit < s->length ? unit : 1;
}

/* Lengths ------------------------------------------------------------------------------------- */

static bool fits_at(struct search *s, int64_t round_length, uint64_t max_bytes)
{
    const struct program *program = s->p->program;
    unsigned n = program->n_reductions;
    struct planner_life places[PROGRAM_MAX_REDUCTIONS];

    s->p->round_length = round_length;
    planner_count_steps(s->p, n);
    for (unsigned i = 0; i < n; i++) {
        bool is_cut = s->axes[program->reductions[i].pass] != NOT_CUT;
        int64_t n_bytes = is_cut ? mul_saturating_i64(s->rest_bytes[i], round_length) : 0;
        places[i] = s->lives[i];
        places[i].n_bytes =
            is_cut ? round_up_u64((uint64_t)n_bytes, PLANNER_CARRY_ALIGN) : s->whole_bytes[i];
        if (!is_cut) {
            places[i].first = 0;
            places[i].last = program->n_stages - 1u;
        }
    }
    if (planner_most_alive(places, n, program->n_stages) > max_bytes)
        return false;
    planner_count_steps(s->p, (uint64_t)n * n);
    return planner_place_all(places, n) <= max_bytes;
}

/* The longest rounds whose results fit. Most choices are none: the shortest would not, either. When
 * the steps are used up the answer means nothing. */
static bool choose_length(struct search *s, uint64_t max_bytes)
{
    int64_t length = s->length, unit = chunk_unit(s), round_length = unit;

    if (!fits_at(s, unit, max_bytes)) {
        if (!fits_at(s, 1, max_bytes))
            return false;
        for (round_length = 1; 2 * round_length < unit; round_length *= 2)
            ;
        while (round_length > 1 && !planner_is_out_of_steps(s->p) &&
               !fits_at(s, round_length, max_bytes))
            round_length /= 2;
        return fits_at(s, round_length, max_bytes);
    }
    while (round_length <= (length - 1) / 2 && !planner_is_out_of_steps(s->p) &&
           fits_at(s, 2 * round_length, max_bytes))
        round_length *= 2;
    return fits_at(s, round_length, max_bytes);
}

/* What is cut -----------------------------------------------------------------------------------
 */

static int64_t rest_bytes_of(const struct program *program, unsigned reduction, int axis)
{
    int64_t shape[ARRAY_MAX_NDIM];
    int64_t n_bytes = (int64_t)dtype_size((enum dtype)program->reductions[reduction].result);
    int ndim = program_reduction_shape(program, reduction, shape);
    int cut = result_axis(program, reduction, axis);

    for (int i = 0; i < ndim; i++)
        if (i != cut)
            n_bytes = mul_saturating_i64(n_bytes, shape[i]);
    return n_bytes;
}

/* Beside what is cut so far; false: then that is as it was. */
static bool cut(struct search *s, unsigned pass, int axis)
{
    const struct program *program = s->p->program;
    int8_t joined[PROGRAM_MAX_PASSES];

    if (program->passes[pass].shape[axis] != s->length)
        return false;
    const struct reach *reach = reach_of(s, pass, axis);
    memcpy(joined, s->axes, sizeof(joined));
    if (!reach->is_possible || !join(s, joined, reach->axes))
        return false;
    for (unsigned i = 0; i < program->n_reductions; i++) {
        unsigned maker = program->reductions[i].pass;
        if (s->axes[maker] == NOT_CUT && joined[maker] != NOT_CUT)
            s->rest_bytes[i] = rest_bytes_of(program, i, joined[maker]);
    }
    memcpy(s->axes, joined, sizeof(joined));
    return true;
}

/* The largest result of which the pass is not cut, and may be; n_reductions: there is none. */
static unsigned largest_whole(const struct search *s)
{
    const struct program *program = s->p->program;
    unsigned best = program->n_reductions;
    uint64_t most = 0;

    for (unsigned i = 0; i < program->n_reductions; i++) {
        unsigned pass = program->reductions[i].pass;
        if (s->axes[pass] == NOT_CUT && s->whole_bytes[i] > most && !s->has_table[pass]) {
            best = i;
            most = s->whole_bytes[i];
        }
    }
    return best;
}

/* Cuts one pass more along some axis of this length, and whatever follows. */
static bool cut_one_more(struct search *s)
{
    const struct program *program = s->p->program;
    unsigned which = largest_whole(s);

    if (which == program->n_reductions)
        return false;
    unsigned pass = program->reductions[which].pass;
    for (int axis = 0; axis < program->passes[pass].ndim; axis++)
        if (cut(s, pass, axis))
            return true;
    return false;
}

static bool try_axis(struct search *s, unsigned pass, int axis, uint64_t max_bytes)
{
    s->length = s->p->program->passes[pass].shape[axis];
    memset(s->axes, NOT_CUT, sizeof(s->axes));
    if (s->length < 2 || !cut(s, pass, axis))
        return false;
    do {
        if (choose_length(s, max_bytes))
            return true;
    } while (!planner_is_out_of_steps(s->p) && cut_one_more(s));
    return false;
}

static void search_init(struct search *s, struct planner *p)
{
    s->p = p;
    p->round_length = 0;
    for (unsigned i = 0; i < p->program->n_passes; i++)
        for (int axis = 0; axis < p->program->passes[i].ndim; axis++)
            s->reaches[i][axis].is_known = false;
    for (unsigned i = 0; i < p->program->n_reductions; i++)
        s->whole_bytes[i] = planner_one_result_bytes(p, i);
    memset(s->axes, NOT_CUT, sizeof(s->axes));
    find_tables(s);
    planner_set_lives(p->program, s->lives);
}

bool planner_choose_rounds(struct planner *p, uint64_t max_bytes)
{
    struct search s; /* large: what is not of the program is never written */
    bool is_found = false;

    search_init(&s, p);
    unsigned which = largest_whole(&s);
    if (which == p->program->n_reductions)
        return false;
    unsigned pass = p->program->reductions[which].pass;
    for (int i = 0; i < p->program->passes[pass].ndim && !is_found && !planner_is_out_of_steps(p);
         i++)
        is_found = try_axis(&s, pass, p->plan->passes[pass].geometry.axis_order[i], max_bytes);
    if (!is_found)
        p->round_length = 0;
    for (unsigned i = 0; i < p->program->n_passes; i++)
        p->round_axes[i] = is_found ? s.axes[i] : NOT_CUT;
    return is_found;
}
