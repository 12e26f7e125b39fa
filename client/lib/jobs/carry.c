/* What a result of an expression has beside its elements.
 *
 *     t                           all that t has
 *     float32(t)                  the same, but for how its elements are stored
 *     mean(t, axis=0)             the axes that are left, and of some reductions the units
 *     sqrt(mean(t*t, axis=0))     the axes that are left, where all reductions take the same, or
 *                                 leave a number; those that are kept have a name alone
 *     (t - mean(t, axis=0)) / s   the axes, if all sources of the result's shape agree on them
 *
 * Axes keep their names where an expression has functions of elements and reductions alone, and the
 * result has the shape of a source: then it is that source's element by element, with others
 * broadcast to it. Products, look-ups, counts and random choices have axes of their own.
 *
 * Called by targets.c for each new output, before the job.
 */
#include "client/lib/jobs/carry.h"
#include "client/formats/formats.h"
#include "proto/dtype.h"
#include "proto/ops.h"
#include "proto/request.h"
#include "proto/util.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool carry_is_written(const char *format)
{
    return format && (strcmp(format, "hdf5") == 0 || strcmp(format, "zarr") == 0);
}

/* ---- Words ---- */

struct word {
    const char *at;
    size_t n;
};

static bool is_word_char(char ch)
{
    return isalnum((unsigned char)ch) || ch == '_';
}

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\n");
}

/* A name, `np.` in front of it left out; n is 0 where there is none. Returns what follows it. */
static const char *read_word(const char *at, struct word *ret)
{
    at = skip_blanks(at);
    if (strncmp(at, "np.", 3) == 0)
        at += 3;
    ret->at = at;
    ret->n = 0;
    while (is_word_char(at[ret->n]))
        ret->n++;
    if (isdigit((unsigned char)at[0]))
        ret->n = 0;
    return skip_blanks(at + ret->n);
}

static bool is(const struct word *word, const char *text)
{
    return word->n == strlen(text) && memcmp(word->at, text, word->n) == 0;
}

static const struct gad_argument *argument_named(const struct gad_job_options *options,
                                                 const struct word *word)
{
    for (unsigned i = 0; i < options->n_args; i++)
        if (is(word, options->args[i].name))
            return &options->args[i];
    return NULL;
}

static struct gad_array *source_named(const struct gad_job_options *options,
                                      const struct word *word)
{
    const struct gad_argument *argument = argument_named(options, word);
    return argument ? argument->array : NULL;
}

/* ---- Names of axes ---- */

/* Axes of a source that are not the result's: `out` are gone, `ones` are of length 1 and have a
 * name alone. */
struct reduced {
    uint32_t out, ones;
};

/* What is known of one source along one axis, of the array and in the result. */
static bool add_axis(struct carried *carried, int to_axis, const struct gad_array *source, int axis,
                     bool is_one)
{
    const char *name = source->meaning ? source->meaning->dimensions[axis] : NULL;
    if (!name || !(carried->dimensions[to_axis] = strdup(name)))
        return false;
    if (is_one)
        return true;
    carried->coordinates[to_axis] = format_coordinate(source, axis);
    carried->limits.is_unlimited[to_axis] = source->meaning->limits.is_unlimited[axis];
    carried->limits.chunks[to_axis] = source->meaning->limits.chunks[axis];
    return true;
}

/* Axes of the source in their order, but for those that are left out. */
static void add_axes(struct carried *carried, const struct array *to,
                     const struct gad_array *source, const struct reduced *reduced)
{
    int n = 0;
    for (int i = 0; i < source->info.ndim; i++) {
        bool is_one = reduced->ones >> i & 1;
        if (reduced->out >> i & 1)
            continue;
        if (n == to->ndim || to->shape[n] != (is_one ? 1 : source->info.shape[i]) ||
            !add_axis(carried, n, source, i, is_one))
            return;
        n++;
    }
    carried->has_dimensions = n == to->ndim && n > 0;
}

/* ---- A source as a whole ---- */

const struct gad_argument *carry_whole_source(const struct gad_job_options *options,
                                              const char *expr)
{
    struct word word, inner;
    enum dtype dtype;
    const char *at = read_word(expr, &word);
    if (word.n == 0)
        return NULL;
    if (*at == '\0')
        return argument_named(options, &word);
    if (*at != '(' || !dtype_from_name(word.at, word.n, &dtype))
        return NULL;
    at = read_word(at + 1, &inner);
    return *at == ')' && *skip_blanks(at + 1) == '\0' ? argument_named(options, &inner) : NULL;
}

/* ---- A reduction of a source ---- */

struct reduction {
    struct word name;
    bool takes_axis; /* behind its argument, without its name */
    struct gad_array *source;
    uint32_t axes;
    bool keeps_axes;
};

static uint32_t all_axes(int ndim)
{
    return ndim >= 32 ? UINT32_MAX : (UINT32_C(1) << ndim) - 1;
}

static struct reduced reduced_by(const struct reduction *reduction)
{
    if (reduction->keeps_axes)
        return (struct reduced){.ones = reduction->axes};
    return (struct reduced){.out = reduction->axes};
}

/* "0", "-1", "(0, 1)", "None": which axes. Returns what follows; NULL: it is none of these. */
static const char *read_axes(const char *at, int ndim, uint32_t *ret_axes)
{
    struct word word;
    const char *after = read_word(at, &word);
    *ret_axes = 0;
    if (is(&word, "None")) {
        *ret_axes = all_axes(ndim);
        return after;
    }
    at = skip_blanks(at);
    bool is_list = *at == '(';
    at += is_list;
    for (;;) {
        char *end;
        long axis = strtol(at, &end, 10);
        if (end == at || axis < -ndim || axis >= ndim)
            return NULL;
        *ret_axes |= UINT32_C(1) << (axis < 0 ? axis + ndim : axis);
        at = skip_blanks(end);
        if (!is_list)
            return at;
        at = skip_blanks(at + (*at == ','));
        if (*at == ')')
            return skip_blanks(at + 1);
    }
}

/* Behind an argument of a call: a comma, or the parenthesis. */
static const char *skip_argument(const char *at)
{
    for (int depth = 0; *at && (depth > 0 || (*at != ',' && *at != ')')); at++)
        depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    return at;
}

/* `, axis=0, keepdims=True` of an array of so many axes. Returns the parenthesis behind it; NULL:
 * it is something else. */
static const char *read_options(const char *at, int ndim, struct reduction *ret)
{
    ret->axes = all_axes(ndim);
    ret->keeps_axes = false;
    for (int place = 0; *at == ','; place++) {
        struct word name, value;
        const char *after = read_word(at + 1, &name);
        bool is_named = name.n > 0 && *after == '=' && after[1] != '=';
        if (place == 0 && !is_named && ret->takes_axis)
            at = read_axes(at + 1, ndim, &ret->axes);
        else if (is_named && is(&name, "axis"))
            at = read_axes(after + 1, ndim, &ret->axes);
        else if (is_named && is(&name, "keepdims")) {
            at = read_word(after + 1, &value);
            ret->keeps_axes = is(&value, "True");
        } else if (is_named) {
            at = skip_argument(after + 1);
        } else {
            return NULL;
        }
        if (!at)
            return NULL;
    }
    return *at == ')' ? at : NULL;
}

/* Of one argument, a median too. */
static bool reduces(const struct op_info *op)
{
    return op->n_args == 1 && (op_rule_reduces(op->rule) || op->rule == OP_RULE_QUANTILE);
}

/* Behind its argument, without its name. */
static bool takes_axis(const struct op_info *op)
{
    return op->keywords && strncmp(op->keywords, "axis", 4) == 0;
}

static bool read_reduction(const struct gad_job_options *options, const char *expr,
                           struct reduction *ret)
{
    struct word inner;
    const char *at = read_word(expr, &ret->name);
    unsigned row = ret->name.n > 0 ? op_row_find(ret->name.at, ret->name.n) : OP_N_ROWS;
    if (row == OP_N_ROWS || *at != '(' || !reduces(op_row_info(row)))
        return false;
    ret->takes_axis = takes_axis(op_row_info(row));
    at = read_word(at + 1, &inner);
    ret->source = inner.n > 0 ? source_named(options, &inner) : NULL;
    at = ret->source ? read_options(at, ret->source->info.ndim, ret) : NULL;
    return at && *skip_blanks(at + 1) == '\0';
}

/* Whether its results are in the units of its argument. */
static bool keeps_units(const struct word *name)
{
    static const char *const names[] = {"min",     "max",    "amin",   "amax",
                                        "mean",    "sum",    "nanmin", "nanmax",
                                        "nanmean", "nansum", "median", "nanmedian"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (is(name, names[i]))
            return true;
    return false;
}

/* ---- Element by element ---- */

static bool has_own_axes(enum op_rule rule)
{
    switch (rule) {
    case OP_RULE_RANDOM:
    case OP_RULE_RANDOM_INTEGERS:
    case OP_RULE_BINCOUNT:
    case OP_RULE_HISTOGRAM:
    case OP_RULE_TABLE:
    case OP_RULE_QUANTILE:
    case OP_RULE_MATMUL:
    case OP_RULE_TENSORDOT:
    case OP_RULE_QR:
    case OP_RULE_NEAR:
    case OP_RULE_WINDOW:
    case OP_RULE_NONE: return true;
    default: return false;
    }
}

/* Whether every function in the text is of elements, or reduces axes. */
static bool is_elementwise(const char *expr)
{
    enum dtype dtype;
    for (const char *at = expr; *at;) {
        struct word word;
        if (*at == '@' || *at == '\'' || *at == '"')
            return false;
        if (!is_word_char(*at)) {
            at++;
            continue;
        }
        const char *after = read_word(at, &word);
        if (word.n == 0) { /* a number */
            while (is_word_char(*at) || *at == '.')
                at++;
            continue;
        }
        unsigned row = *after == '(' ? op_row_find(word.at, word.n) : OP_N_ROWS;
        if (*after == '(' && !dtype_from_name(word.at, word.n, &dtype) && !is(&word, "astype") &&
            (row == OP_N_ROWS || has_own_axes(op_row_info(row)->rule)))
            return false;
        at = after;
    }
    return true;
}

static bool is_used(const char *expr, const char *name)
{
    for (const char *at = expr; *at;) {
        struct word word;
        const char *after = read_word(at, &word);
        if (word.n > 0 && is(&word, name))
            return true;
        at = word.n > 0 ? after : at + 1;
    }
    return false;
}

static bool has_shape(const struct gad_array *a, const struct array *b)
{
    return a->info.ndim == b->ndim &&
           memcmp(a->info.shape, b->shape, (size_t)b->ndim * sizeof(int64_t)) == 0;
}

static bool has_names(const struct gad_array *array)
{
    for (int i = 0; i < array->info.ndim; i++)
        if (array->meaning && array->meaning->dimensions[i])
            return true;
    return false;
}

/* Another source of the same shape: what it says otherwise is dropped. False: other names. */
static bool agrees(struct carried *carried, const struct gad_array *other,
                   const struct reduced *reduced)
{
    for (int i = 0, n = 0; i < other->info.ndim; i++) {
        const char *name = other->meaning->dimensions[i];
        if (reduced->out >> i & 1)
            continue;
        if (!name || strcmp(name, carried->dimensions[n]) != 0)
            return false;
        struct carried_coordinate *own = carried->coordinates[n];
        struct carried_coordinate *theirs = own ? format_coordinate(other, i) : NULL;
        if (own &&
            !(theirs && coordinates_are_equal(own, theirs) && coordinates_go_together(own, theirs)))
            carried->coordinates[n] = coordinate_free(own);
        coordinate_free(theirs);
        if (!(reduced->ones >> i & 1))
            carried->limits.is_unlimited[n] |= other->meaning->limits.is_unlimited[i];
        n++;
    }
    return true;
}

/* The axes of sources of this shape that are named in the expression, but for those left out, where
 * all agree. False: there is no such source. */
static bool add_common_axes(struct carried *carried, const struct gad_job_options *options,
                            const char *expr, const struct array *to, const struct array *shape,
                            const struct reduced *reduced)
{
    bool is_found = false, is_agreed = true;
    for (unsigned i = 0; i < options->n_args && is_agreed; i++) {
        const struct gad_array *source = options->args[i].array;
        if (!source || !has_shape(source, shape) || !has_names(source) ||
            !is_used(expr, options->args[i].name))
            continue;
        if (!is_found)
            add_axes(carried, to, source, reduced);
        is_agreed = is_found ? agrees(carried, source, reduced) : carried->has_dimensions;
        is_found = true;
    }
    carried->has_dimensions = carried->has_dimensions && is_agreed;
    return is_found;
}

/* ---- Element by element over reductions ---- */

/* The axes that all reductions in the text take of arrays of so many; those that leave a number are
 * passed over. False: they differ, or there are none. */
static bool read_common_axes(const char *expr, int ndim, struct reduced *ret_reduced)
{
    struct reduction reduction = {.source = NULL};
    bool is_found = false;
    for (const char *at = expr; *at;) {
        const char *after = read_word(at, &reduction.name);
        at = reduction.name.n > 0 ? after : at + 1;
        unsigned row = reduction.name.n > 0 && *after == '('
                           ? op_row_find(reduction.name.at, reduction.name.n)
                           : OP_N_ROWS;
        if (row == OP_N_ROWS || !reduces(op_row_info(row)))
            continue;
        reduction.takes_axis = takes_axis(op_row_info(row));
        if (!read_options(skip_argument(after + 1), ndim, &reduction))
            return false;
        if (reduction.axes == all_axes(ndim))
            continue;
        struct reduced reduced = reduced_by(&reduction);
        if (is_found && (ret_reduced->out != reduced.out || ret_reduced->ones != reduced.ones))
            return false;
        *ret_reduced = reduced;
        is_found = true;
    }
    return is_found;
}

/* The shape that all arrays in the expression have, numbers aside. False: there is none. */
static bool find_common_shape(const struct gad_job_options *options, const char *expr,
                              struct array *ret_shape)
{
    ret_shape->ndim = 0;
    for (unsigned i = 0; i < options->n_args; i++) {
        const struct gad_array *source = options->args[i].array;
        if (!source || source->info.ndim == 0 || !is_used(expr, options->args[i].name))
            continue;
        if (ret_shape->ndim > 0 && !has_shape(source, ret_shape))
            return false;
        ret_shape->ndim = source->info.ndim;
        memcpy(ret_shape->shape, source->info.shape,
               (size_t)source->info.ndim * sizeof(ret_shape->shape[0]));
    }
    return ret_shape->ndim > 0;
}

static void add_axes_left(struct carried *carried, const struct gad_job_options *options,
                          const char *expr, const struct array *to)
{
    struct array shape;
    struct reduced reduced;
    if (find_common_shape(options, expr, &shape) && read_common_axes(expr, shape.ndim, &reduced))
        (void)!add_common_axes(carried, options, expr, to, &shape, &reduced);
}

/* ---- All of it ---- */

/* None of the sources says anything: most jobs. */
static bool is_silent(const struct gad_job_options *options)
{
    for (unsigned i = 0; i < options->n_args; i++)
        if (options->args[i].array && options->args[i].array->meaning)
            return false;
    return true;
}

struct carried *carry_expression(const struct gad_job_options *options, unsigned i,
                                 const struct array *to)
{
    const char *expr = options->outputs[i].expr;
    struct reduction reduction = {.source = NULL};
    struct reduced reduced = {.out = 0};
    struct carried *carried = is_silent(options) ? NULL : carried_new();
    if (!carried)
        return NULL;
    const struct gad_argument *whole = carry_whole_source(options, expr);
    struct gad_array *source = whole ? whole->array : NULL;
    if (source) {
        carried_take_attributes(carried, 1, &source, (enum gad_dtype)to->dtype);
        add_axes(carried, to, source, &reduced);
    } else if (read_reduction(options, expr, &reduction)) {
        reduced = reduced_by(&reduction);
        add_axes(carried, to, reduction.source, &reduced);
        if (keeps_units(&reduction.name))
            carried_take_units(carried, reduction.source);
    } else if (is_elementwise(expr) && !add_common_axes(carried, options, expr, to, to, &reduced)) {
        add_axes_left(carried, options, expr, to);
    }
    if (!carried->has_dimensions)
        carried->limits = (struct axis_limits){.chunks = {0}};
    return carried;
}
