/* What results have beside their elements, by the text of their expression. */
#include "client/formats/attributes.h"
#include "client/lib/jobs/carry.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct gad_array *array_of(enum gad_dtype dtype, int ndim, const int64_t *shape)
{
    struct gad_array *array = array_new(NULL, "hdf5", ACCESS_MEMORY, NULL);
    array->info.dtype = dtype;
    array->info.ndim = ndim;
    memcpy(array->info.shape, shape, (size_t)ndim * sizeof(*shape));
    return array;
}

static void name_axes(struct gad_array *array, const char *const *names)
{
    struct selection selection;
    selection_whole(array->info.ndim, array->info.shape, &selection);
    attribute_take_dimensions(array, &selection, names);
}

static void take(struct gad_array *array, const char *name, enum gad_dtype dtype, double value)
{
    const struct gad_scalar scalar = {.kind = GAD_SCALAR_FLOAT, .float_value = value};
    const struct gad_attribute attribute = {
        .name = name, .n_values = 1, .values = &scalar, .is_dtype_known = true, .dtype = dtype};
    attribute_take(array, &attribute);
}

static void take_text(struct gad_array *array, const char *name, const char *text)
{
    const struct gad_attribute attribute = {.name = name, .text = text};
    attribute_take(array, &attribute);
}

/* t: packed int16 (3, 4, 5) in K. w: float32 of the same axes in m s-1. s: of the same shape, other
 * axes. n: of the same shape, no names. v: (4, 5). q: (4, 4). */
static struct fixture {
    struct gad_array *t, *w, *s, *n, *v, *q, *to;
    struct gad_argument args[6];
} f;

static void make(void)
{
    static const int64_t shape[] = {3, 4, 5}, square[] = {4, 4};
    static const char *const names[] = {"time", "lat", "lon"}, *const others[] = {"x", "y", "z"};
    f.t = array_of(GAD_INT16, 3, shape);
    f.w = array_of(GAD_FLOAT32, 3, shape);
    f.s = array_of(GAD_FLOAT32, 3, shape);
    f.n = array_of(GAD_FLOAT32, 3, shape);
    f.v = array_of(GAD_FLOAT32, 2, shape + 1);
    f.q = array_of(GAD_FLOAT32, 2, square);
    name_axes(f.t, names);
    name_axes(f.w, names);
    name_axes(f.s, others);
    name_axes(f.v, names + 1);
    name_axes(f.q, others);
    take(f.t, "scale_factor", GAD_FLOAT32, 0.5);
    take(f.t, "_FillValue", GAD_INT16, -9);
    take_text(f.t, "units", "K");
    take_text(f.w, "units", "m s-1");
    take_text(f.w, "long_name", "wind");
    take(f.w, "missing_value", GAD_FLOAT32, -99);
    struct gad_array *arrays[] = {f.t, f.w, f.s, f.n, f.v, f.q};
    static const char *const letters[] = {"t", "w", "s", "n", "v", "q"};
    for (int i = 0; i < 6; i++)
        f.args[i] = (struct gad_argument){.name = letters[i], .array = arrays[i]};
}

static void end(void)
{
    for (int i = 0; i < 6; i++)
        gad_array_release(f.args[i].array);
    gad_array_release(f.to);
}

TestSuite(carry, .init = make, .fini = end);

/* Carries to a result of this dtype and shape; "time lat lon" where its axes have names, else "".
 */
static const char *names_of(const char *expr, enum gad_dtype dtype, int ndim, const int64_t *shape)
{
    static char text[128];
    const struct gad_output output = {.expr = expr};
    const struct gad_job_options options = {
        .n_args = 6, .args = f.args, .n_outputs = 1, .outputs = &output};
    gad_array_release(f.to);
    f.to = array_of(dtype, ndim, shape);
    const struct array what = array_described(f.to);
    f.to->carried = carry_expression(&options, 0, &what);
    text[0] = '\0';
    for (int i = 0; i < ndim && f.to->carried->has_dimensions; i++) {
        strcat(text, i ? " " : "");
        strcat(text, f.to->carried->dimensions[i]);
    }
    return text;
}

#define NAMES(expr, ...)                                                                           \
    names_of(expr, GAD_FLOAT32, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                \
             (const int64_t[]){__VA_ARGS__})
#define HAS_NAMES(names, expr, ...) cr_assert(eq(str, (char *)NAMES(expr, __VA_ARGS__), names))

static const struct meaning_attribute *attribute(const char *name)
{
    for (unsigned i = 0; i < f.to->carried->n_attributes; i++)
        if (strcmp(f.to->carried->attributes[i].name, name) == 0)
            return &f.to->carried->attributes[i];
    return NULL;
}

static void has_units(const char *want)
{
    const struct meaning_attribute *units = attribute("units");
    cr_assert(eq(str, units ? units->text : (char *)"", (char *)want));
}

Test(carry, keeps_axes_of_elementwise_texts)
{
    HAS_NAMES("time lat lon", "w", 3, 4, 5);
    HAS_NAMES("time lat lon", " np.float64( t ) ", 3, 4, 5);
    HAS_NAMES("time lat lon", "sqrt(w*w + 1e-5) / mean(w)", 3, 4, 5);
    HAS_NAMES("time lat lon", "d = w - mean(w, axis=0); np.where(d > 0, d, 0.5)", 3, 4, 5);
    HAS_NAMES("time lat lon", "w * n + v", 3, 4, 5);
    HAS_NAMES("time lat lon", "cumsum(w, axis=0)", 3, 4, 5);
    HAS_NAMES("time lat lon", "select([w > 0], [t])", 3, 4, 5);
    HAS_NAMES("", "w + s", 3, 4, 5); /* they do not agree */
    HAS_NAMES("", "n * 2", 3, 4, 5); /* s is not in it */
    HAS_NAMES("", "v + 1", 3, 4, 5); /* of another shape */
    has_units("");
}

Test(carry, says_nothing_of_axes_that_a_text_makes)
{
    HAS_NAMES("", "q @ q", 4, 4);
    HAS_NAMES("", "matmul(q, q)", 4, 4);
    HAS_NAMES("", "permutation(q, seed=1)", 4, 4);
    HAS_NAMES("", "take(q, q)", 4, 4);
    HAS_NAMES("", "quantile(w, [0.1, 0.5, 0.9], axis=0)", 3, 4, 5);
    HAS_NAMES("", "histogram(q, bins=4)[0] + q", 4, 4);
    HAS_NAMES("x y", "q + q", 4, 4);
}

Test(carry, drops_axes_that_are_reduced)
{
    HAS_NAMES("lat lon", "mean(w, axis=0)", 4, 5);
    HAS_NAMES("time lat", "np.max( w , -1 )", 3, 4);
    HAS_NAMES("lat", "median(w, axis=(0, 2,))", 4);
    HAS_NAMES("time lat lon", "sum(w, axis=())", 3, 4, 5);
    HAS_NAMES("", "mean(w)", );
    HAS_NAMES("time lat lon", "mean(w, axis=0, keepdims=True)", 1, 4, 5);
    cr_assert(eq(ptr, f.to->carried->coordinates[0], NULL));
    HAS_NAMES("time lat lon", "std(w, keepdims=True)", 1, 1, 1);
    HAS_NAMES("time lat", "sqrt(sum(w, axis=2)) / std(w, ddof=1) + max(w, axis=None)", 3, 4);
    HAS_NAMES("time lat lon", "2 * var(w, axis=1, ddof=1, keepdims=True)", 3, 1, 5);
    HAS_NAMES("", "max(w, axis=1, keepdims=True) + max(w, axis=1)", 3, 3, 5);
    HAS_NAMES("", "mean(w, axis=3)", 4, 5);
    HAS_NAMES("", "mean(w, axis=k)", 4, 5);
    HAS_NAMES("", "norm(w, 0)", 4, 5); /* that is no axis */
    HAS_NAMES("", "mean(w, axis=0", 4, 5);
    HAS_NAMES("", "mean(", 4, 5);
}

Test(carry, keeps_units_where_they_are_true)
{
    NAMES("w", 3, 4, 5);
    has_units("m s-1");
    cr_assert(eq(str, attribute("long_name")->text, "wind"));
    cr_assert(attribute("missing_value") != NULL);
    NAMES("mean(w, axis=0)", 4, 5);
    has_units("m s-1");
    cr_assert(attribute("long_name") == NULL);
    NAMES("var(w, axis=0)", 4, 5);
    has_units("");
    NAMES("w * 2", 3, 4, 5);
    has_units("");
    NAMES("mean(t, axis=0)", 4, 5); /* of what is stored */
    has_units("");
    cr_assert(eq(int, attributes_apply(f.t, GAD_MASK_AND_SCALE, "t", NULL), 0));
    NAMES("mean(t, axis=0)", 4, 5);
    has_units("K");
}

Test(carry, keeps_packing_as_a_whole_or_not_at_all)
{
    static const int64_t shape[] = {3, 4, 5};
    names_of("t", GAD_INT16, 3, shape);
    has_units("K");
    cr_assert(attribute("scale_factor") && attribute("_FillValue"));
    names_of("float32(t)", GAD_FLOAT32, 3, shape);
    has_units("");
    cr_assert(eq(ptr, (void *)attribute("scale_factor"), NULL));
    cr_assert(eq(ptr, (void *)attribute("_FillValue"), NULL));
    cr_assert(eq(int, attributes_apply(f.t, GAD_MASK_AND_SCALE, "t", NULL), 0));
    names_of("t", GAD_FLOAT32, 3, shape);
    has_units("K");
    cr_assert(eq(ptr, (void *)attribute("scale_factor"), NULL));
    cr_assert(isnan(attribute("_FillValue")->values[0].float_value));
}

Test(carry, is_for_formats_that_write_it)
{
    cr_assert(carry_is_written("hdf5"));
    cr_assert(carry_is_written("zarr"));
    cr_assert(not(carry_is_written("npy")));
    cr_assert(not(carry_is_written(NULL)));
}

static void grow(struct gad_array *array, int axis, int64_t chunk)
{
    array->meaning->limits.is_unlimited[axis] = true;
    for (int i = 0; i < array->info.ndim; i++)
        array->meaning->limits.chunks[i] = chunk;
}

/* "*  " where the first of three axes has no limit. */
static const char *unlimited(const char *expr, int ndim, const int64_t *shape)
{
    static char text[ARRAY_MAX_NDIM + 1];
    names_of(expr, GAD_FLOAT32, ndim, shape);
    for (int i = 0; i < ndim; i++)
        text[i] = f.to->carried->limits.is_unlimited[i] ? '*' : ' ';
    text[ndim] = '\0';
    return text;
}

Test(carry, says_which_axes_have_no_limit)
{
    static const int64_t shape[] = {3, 4, 5}, over_lat[] = {3, 5}, one[] = {1, 4, 5};
    grow(f.w, 0, 7);
    grow(f.s, 1, 7);
    cr_assert(eq(str, (char *)unlimited("w", 3, shape), "*  "));
    cr_assert(eq(i64, f.to->carried->limits.chunks[2], 7));
    cr_assert(eq(str, (char *)unlimited("mean(w, axis=1)", 2, over_lat), "* "));
    cr_assert(eq(str, (char *)unlimited("max(w, axis=0)", 2, shape + 1), "  "));
    cr_assert(eq(str, (char *)unlimited("max(w, axis=0, keepdims=True)", 3, one), "   "));
    cr_assert(eq(str, (char *)unlimited("t - w", 3, shape), "*  "));
    cr_assert(eq(str, (char *)unlimited("t", 3, shape), "   "));
    cr_assert(eq(str, (char *)unlimited("w + s", 3, shape), "   ")); /* they have no names */
}

Test(carry, joins_attributes_of_several_sources)
{
    struct carried *carried = carried_new();
    struct gad_array *same[] = {f.w, f.w}, *mixed[] = {f.w, f.s}, *packed[] = {f.t, f.w};
    carried_take_attributes(carried, 2, same, GAD_FLOAT32);
    cr_assert(eq(u32, carried->n_attributes, 3));
    carried = carried_free(carried);
    carried = carried_new();
    take_text(f.s, "long_name", "wind");
    carried_take_attributes(carried, 2, mixed, GAD_FLOAT32);
    cr_assert(eq(u32, carried->n_attributes, 1));
    cr_assert(eq(str, carried->attributes[0].name, "long_name"));
    carried_free(carried);
    carried = carried_new();
    carried_take_attributes(carried, 2, packed, GAD_FLOAT32);
    cr_assert(eq(u32, carried->n_attributes, 0));
    carried_free(carried);
}
