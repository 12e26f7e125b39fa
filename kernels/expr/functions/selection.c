/* Elements by their ranks: by KTHs where a slice is short, else by radix selection, a digit of the
 * sorted order at a time.
 *
 * Every element has a key, an unsigned integer in the same order (floats by ORDERED_KEY, signed
 * integers by an offset). KTHs take one pass; where NaNs are left out, they find the ranks, too.
 *
 * Radix selection takes more. From the highest digit down, a pass over the elements counts how many
 * have each value of the digit among those whose higher digits are the wanted element's; with
 * several ranks, for each of them, in ascending order:
 *
 *     bins    below | 0 1 ... of the first's | between | 0 1 ... of the second's | ...
 *
 * where an element that shares its higher digits with several ranks is in the first one's bins.
 * Counts are running sums along the bins, so the bins up to which there are no more than `rank`
 * elements are those before the wanted one. A small pass over them gives its digit: a sum of
 * weights that are the digit's unit, and what takes back a whole row of digits where one is passed.
 * A single slice's sum also has the digits above; of several slices digits are added up where
 * they are used, because sums have no axis of bins beside which they could be read; when they
 * become more results than a pass can read, a small pass makes one of them. In the last
 * digit the sum's upper half says whether the next element is another one: a bin ends with it
 * (its count is rank + 1). Then that is the least of the larger keys, in one more pass.
 *
 * Few slices get digits of 11 bits, many fewer, so that counts stay in cache and in the pool.
 *
 * Slices of very few elements need no digits: the least key, the least of those larger, and so on,
 * each in a pass that also counts the elements up to the one before. The wanted element is the
 * first with more than `rank` elements up to it.
 *
 *     least     v0 = min(key)
 *     pass i    n[i] = elements with key <= v[i]     v[i+1] = the least key > v[i]
 *
 * Called by quantiles.c.
 */
#include "kernels/expr/functions/quantiles.h"
#include "kernels/expr/rules/lower.h"
#include "kernels/expr/rules/rules.h"
#include "kernels/expr/schedule/build.h"
#include "proto/util.h"

#define FEW_ELEMENTS 8
#define BITS_A_PASS  4 /* with fewer bits than that for each element, digits take fewer passes */

struct digits {
    struct selection *s;
    struct lower *l;
    enum dtype dtype;       /* of the source */
    enum dtype wide;        /* of keys: uint32 or uint64 */
    unsigned n_bits;        /* of keys */
    unsigned shift;         /* below the digit at hand */
    uint64_t n_values;      /* of it */
    bool is_first, is_last; /* digit */
    bool is_single;         /* slice */
    uint16_t key;
    uint16_t counts; /* of the digit at hand */
    uint16_t rank[QUANTILES_MAX];
    uint16_t prefix[QUANTILES_MAX]; /* keys whose lower digits are 0 */
    unsigned n_parts;               /* results that each of them is the sum of */
    uint16_t differs[QUANTILES_MAX];
};

static struct compiler *compiler_of(const struct digits *d)
{
    return d->l->c;
}

static uint16_t integer(struct digits *d, enum dtype dtype, uint64_t value)
{
    uint16_t node = 0;
    if (dtype == DTYPE_UINT32)
        value &= UINT32_MAX;
    if (d->l->r == 0)
        d->l->r = graph_const(compiler_of(d), dtype, (union scalar){.u64 = value}, 0, &node);
    return node;
}

/* ---- keys ---- */

static void begin_keys(struct digits *d)
{
    d->dtype = types_of_node(compiler_of(d), d->s->k->src);
    d->n_bits = d->dtype == DTYPE_BOOL ? 1 : 8 * (unsigned)dtype_size(d->dtype);
    d->wide = d->n_bits > 32 ? DTYPE_UINT64 : DTYPE_UINT32;
    if (dtype_is_float(d->dtype)) {
        d->key = lower_ordered_key(d->l, d->s->k->src);
        return;
    }
    d->key = lower_cast(d->l, d->s->k->src, d->wide);
    if (dtype_is_signed(d->dtype))
        d->key = lower_binary(d->l, OP_ADD, d->key, integer(d, d->wide, 1ull << (d->n_bits - 1)));
}

static uint16_t from_key(struct digits *d, uint16_t key)
{
    if (dtype_is_float(d->dtype))
        return lower_from_ordered_key(d->l, key);
    if (dtype_is_signed(d->dtype))
        key = lower_binary(d->l, OP_SUBTRACT, key, integer(d, d->wide, 1ull << (d->n_bits - 1)));
    return lower_cast(d->l, key, d->dtype);
}

/* ---- counts ---- */

static uint16_t first_bins(struct digits *d)
{
    uint16_t bins = lower_binary(d->l, OP_RIGHT_SHIFT, d->key, integer(d, d->wide, d->shift));
    if (!d->s->ignores_nan)
        return bins;
    uint16_t is_number = lower_binary(d->l, OP_EQUAL, d->s->k->src, d->s->k->src);
    return lower_where(d->l, is_number, bins, integer(d, d->wide, d->n_values));
}

/* From the last rank, whose bins are behind all others', to the first one, which has precedence. */
static uint16_t later_bins(struct digits *d)
{
    struct lower *l = d->l;
    uint16_t limit = integer(d, d->wide, d->n_values), bins = NODE_NONE;
    for (unsigned i = d->s->n; i-- > 0;) {
        uint64_t first = i * (d->n_values + 1);
        uint16_t digit = lower_binary(l, OP_SUBTRACT, d->key, d->prefix[i]);
        digit = lower_binary(l, OP_RIGHT_SHIFT, digit, integer(d, d->wide, d->shift));
        uint16_t is_in = lower_binary(l, OP_LESS, digit, limit);
        if (bins == NODE_NONE && d->is_last) /* else the next step could wrap */
            digit = lower_binary(l, OP_MINIMUM, digit, limit);
        digit = lower_binary(l, OP_ADD, digit, integer(d, d->wide, first + 1));
        bins = bins == NODE_NONE ? digit : lower_where(l, is_in, digit, bins);
        bins = lower_where(l, lower_binary(l, OP_LESS, d->key, d->prefix[i]),
                           integer(d, d->wide, first), bins);
    }
    return bins;
}

static void count_digit(struct digits *d)
{
    uint64_t n_bins = d->is_first ? d->n_values : d->s->n * (d->n_values + 1);
    uint16_t bins = d->is_first ? first_bins(d) : later_bins(d);
    bins = lower_cast(d->l, bins, DTYPE_INT64);
    d->counts = 0;
    if (d->l->r == 0)
        d->counts = reduce_bincount(d->s->k, bins, NODE_NONE, (uint32_t)n_bins, true);
}

/* Over the bins. */
static uint16_t reduce_bins(struct digits *d, enum op op, uint16_t src, bool keeps_dims)
{
    struct compiler *c = compiler_of(d);
    uint16_t node = 0;
    if (d->l->r != 0)
        return node;
    int ndim = c->graph.shapes[c->graph.nodes[d->counts].shape].ndim;
    d->l->r = graph_reduce(c, op, types_of_node(c, src), src, 1u << (ndim - 1), keeps_dims, &node);
    return node;
}

/* ---- ranks ---- */

/* A rank as int64. Constants of any size: those that are larger are not folded by casts. */
static uint16_t whole(struct digits *d, uint16_t rank)
{
    const struct graph_node *n = &compiler_of(d)->graph.nodes[rank];
    if (d->l->r == 0 && n->kind == NODE_CONST)
        return integer(d, DTYPE_INT64, (uint64_t)(int64_t)n->value.f64);
    return lower_cast(d->l, rank, DTYPE_INT64);
}

static void set_ranks(struct digits *d, uint16_t n_elements)
{
    for (unsigned i = 0; i < d->s->n; i++) {
        struct quantile_place place;
        places_find(d->l, d->s->method, n_elements, d->s->q[i], &place);
        d->rank[i] = whole(d, place.rank);
    }
}

/* Known, or from how many elements the first digit's counts are of; to be read beside counts. */
static void find_ranks(struct digits *d)
{
    struct selection *s = d->s;
    uint16_t n = s->n_elements;
    if (s->ignores_nan) {
        s->n_elements = lower_cast(d->l, reduce_bins(d, OP_MAX, d->counts, false), DTYPE_FLOAT64);
        n = s->n_elements;
    }
    if (s->ignores_nan && !d->is_single)
        n = lower_cast(d->l, reduce_bins(d, OP_MAX, d->counts, true), DTYPE_FLOAT64);
    set_ranks(d, n);
}

/* ---- digits ---- */

/* What passing each bin adds. base: the digits above, or 0. */
static uint16_t weights(struct digits *d, uint16_t base)
{
    struct lower *l = d->l;
    uint16_t index = 0, zero = integer(d, DTYPE_INT64, 0);
    uint16_t unit = integer(d, DTYPE_UINT64, 1ull << d->shift), weight = unit;
    if (d->is_first)
        return unit;
    if (l->r == 0)
        l->r = graph_index(compiler_of(d), l->n->column, -1, &index);
    if (d->s->n > 1) {
        uint16_t row = integer(d, DTYPE_INT64, d->n_values + 1);
        uint16_t in_row = lower_binary(l, OP_REMAINDER, index, row);
        weight = lower_where(l, lower_binary(l, OP_EQUAL, in_row, zero),
                             integer(d, DTYPE_UINT64, 0 - (d->n_values << d->shift)), unit);
    }
    return lower_where(l, lower_binary(l, OP_EQUAL, index, zero), base, weight);
}

static void find_digit(struct digits *d, unsigned i)
{
    struct lower *l = d->l;
    bool is_joined = d->is_single && !d->is_first && !d->is_last;
    uint16_t zero = integer(d, DTYPE_UINT64, 0), other = zero;
    uint16_t base = is_joined ? lower_cast(l, d->prefix[i], DTYPE_UINT64) : zero;
    if (d->is_last && d->s->needs_next) {
        uint16_t end = lower_binary(l, OP_ADD, d->rank[i], integer(d, DTYPE_INT64, 1));
        other = lower_where(l, lower_binary(l, OP_EQUAL, d->counts, end),
                            integer(d, DTYPE_UINT64, 1ull << 32), zero);
    }
    uint16_t is_before = lower_binary(l, OP_LESS_EQUAL, d->counts, d->rank[i]);
    uint16_t sum = lower_where(l, is_before, weights(d, base), other);
    sum = reduce_bins(d, OP_SUM, sum, false);
    if (d->is_last && d->s->needs_next) {
        d->differs[i] =
            lower_binary(l, OP_GREATER_EQUAL, sum, integer(d, DTYPE_UINT64, 1ull << 32));
        sum = lower_binary(l, OP_BITWISE_AND, sum, integer(d, DTYPE_UINT64, UINT32_MAX));
    }
    sum = lower_cast(l, sum, d->wide);
    d->prefix[i] = d->is_first || is_joined ? sum : lower_binary(l, OP_ADD, d->prefix[i], sum);
}

/* A key for each slice, as one result of all that it is made of. */
static uint16_t join_key(struct digits *d, uint16_t key)
{
    uint16_t node = key;
    if (d->l->r == 0)
        d->l->r = graph_reduce(compiler_of(d), OP_MIN, d->wide, key, d->s->k->axes, true, &node);
    return node;
}

/* Where the next pass, or the one behind it, could not read all the parts: one result of them. */
static void join_parts(struct digits *d, bool is_next_last)
{
    unsigned n = d->s->n, n_read = (d->n_parts + 1) * n + (is_next_last ? n + 2 : 0);
    if (n_read <= PASS_MAX_RESULTS || d->n_parts == 1)
        return;
    for (unsigned i = 0; i < n; i++)
        d->prefix[i] = join_key(d, d->prefix[i]);
    d->n_parts = 1;
}

static void find_digits(struct digits *d, unsigned n_digits)
{
    d->shift = d->n_bits;
    for (unsigned i = 0; d->l->r == 0 && i < n_digits; i++) {
        unsigned n_bits = d->n_bits / n_digits + (i < d->n_bits % n_digits);
        d->shift -= n_bits;
        d->n_values = 1ull << n_bits;
        d->is_first = i == 0;
        d->is_last = i + 1 == n_digits;
        count_digit(d);
        if (d->is_first)
            find_ranks(d);
        for (unsigned j = 0; j < d->s->n; j++)
            find_digit(d, j);
        d->n_parts = d->is_single && !d->is_last ? 1 : d->n_parts + 1;
        if (!d->is_last)
            join_parts(d, i + 2 == n_digits);
    }
}

/* ---- few elements ---- */

/* Of a slice: its different keys in ascending order, behind the last one anything, and how many
 * elements are up to each. */
struct few {
    unsigned n;
    uint16_t key[FEW_ELEMENTS], n_up_to[FEW_ELEMENTS];
};

static void find_keys(struct digits *d, struct few *few)
{
    struct reduce *k = d->s->k;
    uint16_t most = integer(d, d->wide, UINT64_MAX);
    few->key[0] = reduce_beside(k, OP_MIN, d->key);
    for (unsigned i = 0; i + 1 < few->n; i++) {
        uint16_t is_larger = lower_binary(d->l, OP_GREATER, d->key, few->key[i]);
        uint16_t is_up_to = lower_binary(d->l, OP_LESS_EQUAL, d->key, few->key[i]);
        few->n_up_to[i] = reduce_beside(k, OP_COUNT_NONZERO, is_up_to);
        few->key[i + 1] = reduce_beside(k, OP_MIN, lower_where(d->l, is_larger, d->key, most));
    }
}

/* Behind the last rank: any. Of several ranks each is looked for once for each slice, not for each
 * element of the result. */
static uint16_t key_at(struct digits *d, const struct few *few, uint16_t rank)
{
    uint16_t node = few->key[few->n - 1];
    for (unsigned i = few->n - 1; i-- > 0;)
        node = lower_where(d->l, lower_binary(d->l, OP_GREATER, few->n_up_to[i], rank), few->key[i],
                           node);
    return d->s->n > 1 && few->n > 1 && !d->is_single ? join_key(d, node) : node;
}

static void find_among_few(struct digits *d)
{
    struct selection *s = d->s;
    struct few few = {.n = (unsigned)s->k->n_reduced};
    uint16_t one = integer(d, DTYPE_INT64, 1);
    find_keys(d, &few);
    if (s->ignores_nan) {
        uint16_t is_number = lower_binary(d->l, OP_EQUAL, s->k->src, s->k->src);
        uint16_t n = reduce_beside(s->k, OP_COUNT_NONZERO, is_number);
        s->n_elements = lower_cast(d->l, n, DTYPE_FLOAT64);
    }
    set_ranks(d, s->n_elements);
    for (unsigned i = 0; i < s->n && d->l->r == 0; i++) {
        s->at[i] = s->next[i] = from_key(d, key_at(d, &few, d->rank[i]));
        if (s->needs_next)
            s->next[i] = from_key(d, key_at(d, &few, lower_binary(d->l, OP_ADD, d->rank[i], one)));
    }
}

/* ---- short slices ---- */

static uint16_t element_at(struct digits *d, uint64_t rank)
{
    struct kth_rank place = {.by = KTH_AT, .at = (uint32_t)rank};
    return from_key(d, reduce_kth(d->s->k, d->key, &place));
}

/* Ranks are of the elements that each slice has without its NaNs. */
static void find_numbers_in_one_pass(struct digits *d)
{
    struct selection *s = d->s;
    struct kth_rank place = {.by = KTH_COUNT};
    s->largest = NODE_NONE;
    s->n_elements = lower_cast(d->l, reduce_kth(s->k, d->key, &place), DTYPE_FLOAT64);
    for (unsigned i = 0; i < s->n && d->l->r == 0; i++) {
        places_rule(s->method, s->q[i], &place);
        s->at[i] = s->next[i] = from_key(d, reduce_kth(s->k, d->key, &place));
        place.by = KTH_BEHIND;
        if (s->needs_next)
            s->next[i] = from_key(d, reduce_kth(s->k, d->key, &place));
    }
}

/* Ranks are constants. */
static void find_in_one_pass(struct digits *d)
{
    struct selection *s = d->s;
    uint64_t last = (uint64_t)s->k->n_reduced - 1;
    set_ranks(d, s->n_elements);
    s->largest = element_at(d, last);
    for (unsigned i = 0; i < s->n && d->l->r == 0; i++) {
        uint64_t rank = min_u64(compiler_of(d)->graph.nodes[d->rank[i]].value.u64, last);
        s->at[i] = s->next[i] = element_at(d, rank);
        if (s->needs_next)
            s->next[i] = element_at(d, min_u64(rank + 1, last));
    }
}

/* ---- all of it ---- */

/* The bits of a digit. Of many slices they bound the counts that are kept at a time; few elements
 * have few different digits; and a job has only so many passes and reductions. */
static unsigned digit_bits(const struct digits *d)
{
    const struct reduce *k = d->s->k;
    const struct graph *g = &d->l->c->graph;
    int64_t n_slices = g->shapes[g->nodes[k->src].shape].n_elements / k->n_reduced;
    bool is_wide = d->n_bits == 64 && !d->is_single;
    if (is_wide && d->s->n > 6)
        return 13;
    if (n_slices * d->s->n <= 64 || (is_wide && d->s->n == 6))
        return 11;
    return k->n_reduced <= 512 && d->s->n <= 3 ? 5 : 8;
}

static void find_next(struct digits *d, unsigned i)
{
    struct lower *l = d->l;
    uint16_t most = integer(d, d->wide, UINT64_MAX);
    uint16_t is_larger = lower_binary(l, OP_GREATER, d->key, d->prefix[i]);
    uint16_t next = reduce_beside(d->s->k, OP_MIN, lower_where(l, is_larger, d->key, most));
    next = lower_where(l, d->differs[i], next, d->prefix[i]);
    d->s->next[i] = from_key(d, next);
}

void selection_run(struct selection *s)
{
    struct digits d = {.s = s, .l = &s->k->l};
    begin_keys(&d);
    if (d.l->r != 0)
        return;
    const struct graph *g = &d.l->c->graph;
    if (reduce_has_kth(s->k)) {
        if (s->ignores_nan)
            find_numbers_in_one_pass(&d);
        else
            find_in_one_pass(&d);
        return;
    }
    s->largest = s->ignores_nan ? NODE_NONE : reduce_beside(s->k, OP_MAX, s->k->src);
    d.is_single = g->shapes[g->nodes[s->k->src].shape].n_elements == s->k->n_reduced;
    if (s->k->n_reduced <= (int64_t)min_u64(FEW_ELEMENTS, max_u64(d.n_bits / BITS_A_PASS, 1))) {
        find_among_few(&d);
        return;
    }
    unsigned most = digit_bits(&d);
    find_digits(&d, (d.n_bits + most - 1) / most);
    for (unsigned j = 0; j < s->n; j++) {
        s->at[j] = s->next[j] = from_key(&d, d.prefix[j]);
        if (s->needs_next)
            find_next(&d, j);
    }
}
