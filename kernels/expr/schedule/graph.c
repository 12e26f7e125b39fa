/* The graph of typed values: one node for each different one, whatever the text repeats.
 *
 * A node's key is what it computes: operation, dtypes, sources; for a constant its bits and shape
 * (`a < 300` over int8 is a constant with a's shape). Looking up before anything else is done
 * bounds the work by the number of different nodes, not by the length of the text. Shapes are
 * interned too; those of arguments are not copied.
 *
 * Invariants: sources have smaller indices than their users; a node's shape is the broadcast of
 * its sources' shapes but a table's. Reductions and scans are added by reducing.c.
 */
#include "kernels/expr/schedule/build.h"

#include <string.h>

static int too_many(struct compiler *c, uint32_t column, const char *what, unsigned limit)
{
    int r = compiler_fail(c, GAD_LIMIT_EXCEEDED, column, "too many different %s", what);
    error_expected(c->error, "at most %u", limit);
    return r;
}

int graph_init(struct compiler *c, size_t n_chars)
{
    struct graph *g = &c->graph;
    size_t capacity = n_chars * 6 + 64;
    if (capacity > EXPR_MAX_NODES)
        capacity = EXPR_MAX_NODES;
    size_t n_buckets = 64;
    while (n_buckets < capacity / 2)
        n_buckets *= 2;
    g->nodes = arena_take(&c->arena, capacity * sizeof(*g->nodes));
    g->shapes = arena_take(&c->arena, EXPR_MAX_SHAPES * sizeof(*g->shapes));
    g->buckets = arena_take(&c->arena, n_buckets * sizeof(*g->buckets));
    if (g->nodes == NULL || g->shapes == NULL || g->buckets == NULL)
        return compiler_no_memory(c);
    memset(g->buckets, 0xff, n_buckets * sizeof(*g->buckets));
    g->bucket_mask = (uint32_t)n_buckets - 1;
    g->capacity = (uint16_t)capacity;
    g->n_nodes = 0;
    g->shapes[0] = (struct shape){.ndim = 0, .n_elements = 1};
    g->n_shapes = 1;
    g->shifts = NULL;
    g->windows = NULL;
    g->n_shifts = g->n_windows = g->n_loops = 0;
    return 0;
}

/* ---- shapes ---- */

static bool is_shape(const struct shape *s, int ndim, const int64_t *dims)
{
    return s->ndim == ndim &&
           (ndim == 0 || memcmp(s->dims, dims, (size_t)ndim * sizeof(*dims)) == 0);
}

/* Elements, zeros taken as ones for the check: bytes must fit 63 bits. */
static bool count_elements(int ndim, const int64_t *dims, int64_t *ret)
{
    int64_t n = 1;
    bool is_empty = false;
    for (int i = 0; i < ndim; i++) {
        is_empty |= dims[i] == 0;
        if (dims[i] < 0 || mul_overflows_i64(n, dims[i] == 0 ? 1 : dims[i], &n))
            return false;
    }
    *ret = is_empty ? 0 : n;
    return n <= INT64_MAX / 8;
}

/* is_kept: dims outlive the compiler. */
static int shape_intern(struct compiler *c, uint32_t column, int ndim, const int64_t *dims,
                        bool is_kept, uint16_t *ret)
{
    struct graph *g = &c->graph;
    for (uint16_t i = 0; i < g->n_shapes; i++)
        if (is_shape(&g->shapes[i], ndim, dims)) {
            *ret = i;
            return 0;
        }
    if (g->n_shapes == EXPR_MAX_SHAPES)
        return too_many(c, column, "shapes", EXPR_MAX_SHAPES);
    struct shape *s = &g->shapes[g->n_shapes];
    if (!count_elements(ndim, dims, &s->n_elements)) {
        char text[96];
        array_format_shape(ndim, dims, text, sizeof(text));
        int r = compiler_fail(c, GAD_BAD_SHAPE, column, "an array of shape %s is too large", text);
        error_found(c->error, "%s", text);
        return r;
    }
    if (!is_kept) {
        size_t n_bytes = (size_t)ndim * sizeof(*dims);
        int64_t *copy = arena_take(&c->arena, n_bytes);
        if (copy == NULL)
            return compiler_no_memory(c);
        dims = memcpy(copy, dims, n_bytes);
    }
    s->ndim = ndim;
    s->dims = dims;
    *ret = g->n_shapes++;
    return 0;
}

int graph_shape(struct compiler *c, uint32_t column, int ndim, const int64_t *dims, bool is_kept,
                uint16_t *ret)
{
    return shape_intern(c, column, ndim, dims, is_kept, ret);
}

static int fail_broadcast(struct compiler *c, uint32_t column, const struct shape *a,
                          const struct shape *b)
{
    char a_text[96], b_text[96];
    array_format_shape(a->ndim, a->dims, a_text, sizeof(a_text));
    array_format_shape(b->ndim, b->dims, b_text, sizeof(b_text));
    int r = compiler_fail(c, GAD_BAD_SHAPE, column, "shapes %s and %s do not broadcast together",
                          a_text, b_text);
    error_expected(c->error, "shapes that broadcast");
    error_found(c->error, "%.50s and %.50s", a_text, b_text);
    return r;
}

static int shape_broadcast(struct compiler *c, uint32_t column, uint16_t a, uint16_t b,
                           uint16_t *ret)
{
    const struct shape *x = &c->graph.shapes[a], *y = &c->graph.shapes[b];
    if (a == b || y->ndim == 0) {
        *ret = a;
        return 0;
    }
    if (x->ndim == 0) {
        *ret = b;
        return 0;
    }
    int ndim = x->ndim;
    int64_t dims[ARRAY_MAX_NDIM];
    memcpy(dims, x->dims, (size_t)ndim * sizeof(*dims));
    if (array_broadcast(&ndim, dims, y->ndim, y->dims, NULL) != 0)
        return fail_broadcast(c, column, x, y);
    return shape_intern(c, column, ndim, dims, false, ret);
}

/* ---- nodes ---- */

static uint32_t hash_key(const struct graph_node *key)
{
    uint64_t h = key->kind | (uint64_t)key->dtype << 8 | (uint64_t)key->compute << 16 |
                 (uint64_t)key->op << 24 | (uint64_t)key->src[0] << 40;
    h = h * 0x9e3779b97f4a7c15u + (key->src[1] | (uint64_t)key->src[2] << 16);
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9u + key->value.u64;
    h = (h ^ h >> 32) * 0x94d049bb133111ebu;
    return (uint32_t)(h >> 32);
}

static bool is_same(const struct graph_node *a, const struct graph_node *b)
{
    return a->kind == b->kind && a->dtype == b->dtype && a->compute == b->compute &&
           a->op == b->op && a->src[0] == b->src[0] && a->src[1] == b->src[1] &&
           a->src[2] == b->src[2] && a->value.u64 == b->value.u64 && a->over == b->over &&
           a->n_bins == b->n_bins && memcmp(&a->kth, &b->kth, sizeof(a->kth)) == 0 &&
           ((a->kind != NODE_CONST && a->kind != NODE_INDEX) ||
            (a->shape == b->shape && a->sized == b->sized));
}

static bool find(struct compiler *c, const struct graph_node *key, uint32_t hash, uint16_t *ret)
{
    const struct graph *g = &c->graph;
    c->n_steps++;
    for (uint16_t i = g->buckets[hash & g->bucket_mask]; i != NODE_NONE;
         i = g->nodes[i].next, c->n_steps++)
        if (is_same(&g->nodes[i], key)) {
            *ret = i;
            return true;
        }
    return false;
}

/* Some operations are many nodes. The old ones stay where they are for who still reads them. */
static int grow(struct compiler *c)
{
    struct graph *g = &c->graph;
    size_t capacity = (size_t)g->capacity * 4;
    if (g->capacity == EXPR_MAX_NODES)
        return too_many(c, c->typed_column, "subexpressions", EXPR_MAX_NODES);
    if (capacity > EXPR_MAX_NODES)
        capacity = EXPR_MAX_NODES;
    struct graph_node *nodes = arena_take(&c->arena, capacity * sizeof(*nodes));
    if (nodes == NULL)
        return compiler_no_memory(c);
    g->nodes = memcpy(nodes, g->nodes, g->n_nodes * sizeof(*nodes));
    g->capacity = (uint16_t)capacity;
    return 0;
}

static int add(struct compiler *c, const struct graph_node *key, uint32_t hash, uint16_t *ret)
{
    struct graph *g = &c->graph;
    int r = g->n_nodes == g->capacity ? grow(c) : 0;
    if (r)
        return r;
    struct graph_node *n = &g->nodes[g->n_nodes];
    *n = *key;
    n->next = g->buckets[hash & g->bucket_mask];
    *ret = g->buckets[hash & g->bucket_mask] = g->n_nodes++;
    return 0;
}

struct graph_node graph_key(enum node_kind kind, enum dtype dtype)
{
    return (struct graph_node){.kind = (uint8_t)kind,
                               .dtype = (uint8_t)dtype,
                               .src = {NODE_NONE, NODE_NONE, NODE_NONE},
                               .mirror = NODE_NONE,
                               .sized = NODE_NONE};
}

int graph_input(struct compiler *c, uint16_t arg, bool is_transposed, uint16_t *ret)
{
    const struct array *array = &c->request->args[arg].array;
    int64_t dims[ARRAY_MAX_NDIM];
    int ndim = array->ndim;
    struct graph_node key = graph_key(NODE_INPUT, array->dtype);
    key.arg = arg;
    key.is_transposed = is_transposed;
    key.reads = 1ull << arg;
    uint32_t hash = hash_key(&key);
    if (find(c, &key, hash, ret))
        return 0;
    if (is_transposed && ndim == 2) {
        int r = graph_input(c, arg, false, &key.mirror);
        if (r)
            return r;
    }
    if (is_transposed) {
        memcpy(dims, array->shape, (size_t)ndim * sizeof(*dims));
        dims[ndim - 1] = array->shape[ndim - 2];
        dims[ndim - 2] = array->shape[ndim - 1];
    }
    int r =
        shape_intern(c, 0, ndim, is_transposed ? dims : array->shape, !is_transposed, &key.shape);
    return r ? r : add(c, &key, hash, ret);
}

int graph_stepped(struct compiler *c, uint32_t arg, enum dtype dtype, const struct graph_node *like,
                  uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_INPUT, dtype);
    key.arg = arg;
    key.shape = like->shape;
    key.level = like->level;
    key.reads = like->reads;
    key.is_near = graph_is_final(arg);
    return graph_find_or_add(c, &key, ret);
}

static uint32_t hash_shift(const struct near_shift *shift)
{
    _Static_assert(offsetof(struct near_shift, column) % sizeof(uint64_t) == 0, "of whole words");
    uint64_t hash = 0;
    for (size_t i = 0; i < offsetof(struct near_shift, column); i += sizeof(hash)) {
        uint64_t word;
        memcpy(&word, (const char *)shift + i, sizeof(word));
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return (uint32_t)hash;
}

static int shift_intern(struct compiler *c, const struct near_shift *shift, uint16_t *ret)
{
    struct graph *g = &c->graph;
    if (g->shifts == NULL) {
        g->shifts = arena_take(&c->arena, EXPR_MAX_SHIFTS * sizeof(struct near_shift *));
        g->shift_hashes = arena_take(&c->arena, EXPR_MAX_SHIFTS * sizeof(*g->shift_hashes));
    }
    if (g->shifts == NULL || g->shift_hashes == NULL)
        return compiler_no_memory(c);
    uint32_t hash = hash_shift(shift);
    c->n_steps += g->n_shifts / 8u;
    for (*ret = 0; *ret < g->n_shifts; (*ret)++)
        if (g->shift_hashes[*ret] == hash &&
            memcmp(g->shifts[*ret], shift, offsetof(struct near_shift, column)) == 0)
            return 0;
    if (g->n_shifts == EXPR_MAX_SHIFTS)
        return too_many(c, shift->column, "offsets of near()", EXPR_MAX_SHIFTS);
    struct near_shift *copy = arena_take(&c->arena, sizeof(*copy));
    if (copy == NULL)
        return compiler_no_memory(c);
    *copy = *shift;
    g->shift_hashes[g->n_shifts] = hash;
    g->shifts[g->n_shifts++] = copy;
    return 0;
}

int graph_near(struct compiler *c, uint16_t input, const struct near_shift *shift, uint16_t *ret)
{
    struct graph_node key = c->graph.nodes[input];
    bool is_near = false;
    uint16_t number = 0;
    for (int i = 0; i < c->graph.shapes[key.shape].ndim; i++)
        is_near |= shift->offsets[i] != 0 || shift->around[i] != 0;
    if (!is_near) { /* it is there */
        key.near = 0;
        return graph_find_or_add(c, &key, ret);
    }
    int r = shift_intern(c, shift, &number);
    key.near = number + 1u;
    key.is_near = true;
    return r ? r : graph_find_or_add(c, &key, ret);
}

static bool is_same_window(const struct window *a, const struct window *b)
{
    size_t n_bytes = a->program.n_weights * sizeof(*a->weights);
    return memcmp(&a->program, &b->program, sizeof(a->program)) == 0 &&
           (n_bytes == 0 || memcmp(a->weights, b->weights, n_bytes) == 0);
}

int graph_window(struct compiler *c, uint32_t column, const struct window *window, uint16_t src,
                 uint16_t *ret)
{
    struct graph *g = &c->graph;
    const struct graph_node *n = &g->nodes[src];
    struct graph_node key = graph_key(NODE_WINDOW, (enum dtype)n->dtype);
    uint16_t i = 0;
    if (g->windows == NULL)
        g->windows = arena_take(&c->arena, EXPR_MAX_WINDOWS * sizeof(struct window *));
    if (g->windows == NULL)
        return compiler_no_memory(c);
    for (; i < g->n_windows && !is_same_window(g->windows[i], window); i++)
        c->n_steps++;
    if (i == EXPR_MAX_WINDOWS)
        return too_many(c, column, "windows", EXPR_MAX_WINDOWS);
    if (i == g->n_windows) {
        g->windows[i] = arena_take(&c->arena, sizeof(*window));
        if (g->windows[i] == NULL)
            return compiler_no_memory(c);
        *g->windows[i] = *window;
        g->n_windows++;
    }
    key.op = window->program.op;
    key.n_src = 1;
    key.src[0] = src;
    key.shape = n->shape;
    key.level = n->level;
    key.reads = n->reads;
    key.is_near = true;
    key.window = i;
    return graph_find_or_add(c, &key, ret);
}

int graph_const(struct compiler *c, enum dtype dtype, union scalar value, uint16_t shape,
                uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_CONST, dtype);
    key.value = value;
    key.shape = shape;
    uint32_t hash = hash_key(&key);
    return find(c, &key, hash, ret) ? 0 : add(c, &key, hash, ret);
}

int graph_index(struct compiler *c, uint32_t column, int64_t axis, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_INDEX, DTYPE_INT64);
    c->axis_columns[axis + ARRAY_MAX_NDIM] = column;
    key.axis = axis;
    key.axes = 1ull << (axis + ARRAY_MAX_NDIM);
    key.is_free = true;
    uint32_t hash = hash_key(&key);
    return find(c, &key, hash, ret) ? 0 : add(c, &key, hash, ret);
}

int graph_flat_index(struct compiler *c, bool is_sized, uint16_t shape, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_INDEX, DTYPE_UINT64);
    key.axis = INDEX_FLAT;
    key.shape = shape;
    key.is_free = !is_sized;
    key.sized = is_sized ? shape : NODE_NONE;
    uint32_t hash = hash_key(&key);
    return find(c, &key, hash, ret) ? 0 : add(c, &key, hash, ret);
}

int graph_find_or_add(struct compiler *c, const struct graph_node *key, uint16_t *ret)
{
    uint32_t hash = hash_key(key);
    return find(c, key, hash, ret) ? 0 : add(c, key, hash, ret);
}

/* Sizes of as many elements are one: they count them alike. */
static uint16_t join_sizes(const struct graph *g, uint16_t a, uint16_t b)
{
    if (a == NODE_NONE || b == NODE_NONE || a == b)
        return a == NODE_NONE ? b : a;
    if (a == SIZED_DIFFERENTLY || b == SIZED_DIFFERENTLY ||
        g->shapes[a].n_elements != g->shapes[b].n_elements)
        return SIZED_DIFFERENTLY;
    return a;
}

/* Registers for evaluating the sources one after the other, the most demanding first. */
static uint16_t need_of(const struct graph *g, const struct graph_node *n)
{
    unsigned needs[3] = {0}, most = 1;
    for (unsigned i = 0; i < n->n_src; i++) {
        unsigned need = g->nodes[n->src[i]].need, at = i;
        for (unsigned k = 0; k < i; k++)
            if (n->src[k] == n->src[i])
                need = 0;
        for (; at > 0 && needs[at - 1] < need; at--)
            needs[at] = needs[at - 1];
        needs[at] = need;
    }
    for (unsigned i = 0; i < n->n_src; i++)
        if (needs[i] > 0 && needs[i] + i > most)
            most = needs[i] + i;
    return (uint16_t)most;
}

static int fold(struct compiler *c, const struct graph_node *key, bool *ret_is_folded,
                uint16_t *ret)
{
    const struct graph *g = &c->graph;
    union scalar src[3] = {{.u64 = 0}}, value;
    for (unsigned i = 0; i < key->n_src; i++) {
        const struct graph_node *n = &g->nodes[key->src[i]];
        if (n->kind != NODE_CONST)
            return 0;
        /* int64 against uint64 */
        if (key->op != OP_CAST && key->op != OP_WHERE && n->dtype != key->compute)
            return 0;
        src[i] = n->value;
    }
    if (key->op == OP_CAST)
        *ret_is_folded =
            fold_cast((enum dtype)key->compute, src[0], (enum dtype)key->dtype, &value);
    else
        *ret_is_folded = fold_op((enum op)key->op, (enum dtype)key->compute, src, &value);
    return *ret_is_folded ? graph_const(c, (enum dtype)key->dtype, value, key->shape, ret) : 0;
}

/* A node with its sources and what they make of it. */
static int add_computed(struct compiler *c, uint32_t column, struct graph_node key, uint16_t *ret)
{
    struct graph *g = &c->graph;
    uint32_t hash = hash_key(&key);
    if (find(c, &key, hash, ret))
        return 0;
    for (unsigned i = 0; i < key.n_src; i++) {
        const struct graph_node *n = &g->nodes[key.src[i]];
        if (n->kind == NODE_SCAN)
            return graph_used_scan(c, column, (enum op)n->op);
        bool is_table = i == 1 && key.kind == NODE_INSN && graph_is_lookup((enum op)key.op);
        int r = is_table ? 0 : shape_broadcast(c, column, key.shape, n->shape, &key.shape);
        if (r)
            return r;
        key.reads |= n->reads;
        key.axes |= n->axes;
        key.is_free |= n->is_free;
        key.is_near |= n->is_near;
        key.is_varying |= n->is_varying && key.kind != NODE_LOOP;
        key.sized = join_sizes(g, key.sized, n->sized);
        if (n->level > key.level)
            key.level = n->level;
    }
    bool is_folded = false;
    int r = key.kind == NODE_INSN ? fold(c, &key, &is_folded, ret) : 0;
    if (r != 0 || is_folded)
        return r;
    key.need = need_of(g, &key);
    return add(c, &key, hash, ret);
}

static int add_op(struct compiler *c, uint32_t column, enum op op, enum dtype compute,
                  enum dtype dtype, unsigned n_src, const uint16_t *src, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_INSN, dtype);
    key.op = (uint16_t)op;
    key.compute = (uint8_t)compute;
    key.n_src = (uint8_t)n_src;
    memcpy(key.src, src, n_src * sizeof(*src));
    return add_computed(c, column, key, ret);
}

int graph_state(struct compiler *c, uint32_t column, uint16_t first, unsigned number, uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_STATE, (enum dtype)c->graph.nodes[first].dtype);
    key.n_src = 1;
    key.src[0] = first;
    key.number = number;
    key.is_varying = true;
    return add_computed(c, column, key, ret);
}

int graph_step(struct compiler *c, uint32_t column, uint16_t state, uint16_t next, uint16_t before,
               uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_STEP, (enum dtype)c->graph.nodes[state].dtype);
    key.n_src = before == NODE_NONE ? 2 : 3;
    key.src[0] = state;
    key.src[1] = next;
    key.src[2] = before;
    return add_computed(c, column, key, ret);
}

int graph_loop(struct compiler *c, uint32_t column, uint16_t until, uint16_t last_step,
               uint32_t n_steps, uint16_t *ret)
{
    uint16_t n_nodes = c->graph.n_nodes;
    struct graph_node key = graph_key(NODE_LOOP, DTYPE_BOOL);
    key.n_src = 2;
    key.src[0] = until;
    key.src[1] = last_step;
    key.n_bins = n_steps;
    int r = add_computed(c, column, key, ret);
    if (r == 0 && c->graph.n_nodes > n_nodes && c->graph.n_loops++ == EXPR_MAX_LOOPS)
        r = too_many(c, column, "loops of iterate()", EXPR_MAX_LOOPS);
    return r;
}

int graph_result(struct compiler *c, uint16_t loop, unsigned number, enum dtype dtype,
                 uint16_t *ret)
{
    struct graph_node key = graph_key(NODE_RESULT, dtype);
    key.n_src = 1;
    key.src[0] = loop;
    key.number = number;
    return add_computed(c, 0, key, ret);
}

int graph_remake(struct compiler *c, uint32_t column, uint16_t node, const uint16_t *src,
                 uint16_t *ret)
{
    const struct graph_node n = c->graph.nodes[node];
    return add_op(c, column, (enum op)n.op, (enum dtype)n.compute, (enum dtype)n.dtype, n.n_src,
                  src, ret);
}

int graph_cast(struct compiler *c, uint16_t src, enum dtype dtype, uint16_t *ret)
{
    src = narrow_cast_source(&c->graph, src, dtype);
    enum dtype from = (enum dtype)c->graph.nodes[src].dtype;
    if (from == dtype) {
        *ret = src;
        return 0;
    }
    return add_op(c, 0, OP_CAST, from, dtype, 1, &src, ret);
}

int graph_op(struct compiler *c, uint32_t column, enum op op, enum dtype compute, enum dtype dtype,
             unsigned n_src, const uint16_t *src, uint16_t *ret)
{
    bool is_narrower;
    struct narrowed narrow;
    int r = narrow_op(c, op, compute, n_src, src, &is_narrower, &narrow);
    if (r)
        return r;
    if (!is_narrower)
        return add_op(c, column, op, compute, dtype, n_src, src, ret);
    bool is_compute = dtype == compute; /* else a comparison, whose result is bool */
    r = add_op(c, column, narrow.op, narrow.compute, is_compute ? narrow.compute : dtype, n_src,
               narrow.src, ret);
    return r == 0 && is_compute ? graph_cast(c, *ret, dtype, ret) : r;
}
