/* What the attributes of an array's file mean: keeping it, views, and the public question.
 *
 * An array has a struct meaning only where there is something to say. It is answered once: what the
 * attributes say of packing is read when it is first wanted.
 *
 * Formats fill it (formats/attributes.c); the library asks when it builds requests, makes views and
 * creates outputs.
 */
#include "client/meaning.h"
#include "client/array.h"
#include "proto/util.h"

#include <math.h>
#include <string.h>

struct meaning *meaning_of(struct gad_array *array)
{
    if (array->meaning)
        return array->meaning;
    struct meaning *meaning = calloc(1, sizeof(*meaning));
    if (!meaning)
        return NULL;
    meaning->attributes = calloc(1, sizeof(*meaning->attributes));
    if (!meaning->attributes) {
        free(meaning);
        return NULL;
    }
    meaning->attributes->n_refs = 1;
    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        meaning->steps[i] = 1;
    array->meaning = meaning;
    return meaning;
}

void meaning_attributes_unref(struct meaning_attributes *attributes)
{
    if (--attributes->n_refs > 0)
        return;
    meaning_attributes_drop(attributes, UINT32_MAX);
    free(attributes->list);
    free(attributes->members);
    free(attributes);
}

void meaning_attributes_drop(struct meaning_attributes *attributes, uint32_t which)
{
    unsigned n = 0;
    for (unsigned i = 0; i < attributes->n; i++) {
        struct meaning_attribute *attribute = &attributes->list[i];
        if (!(which >> i & 1)) {
            attributes->list[n++] = *attribute;
            continue;
        }
        free(attribute->name);
        free(attribute->text);
        free(attribute->values);
    }
    attributes->n = n;
}

void meaning_free(struct meaning *meaning)
{
    if (!meaning)
        return;
    meaning_attributes_unref(meaning->attributes);
    for (int i = 0; i < ARRAY_MAX_NDIM; i++) {
        free(meaning->dimensions[i]);
        free(meaning->coordinates[i]);
    }
    free(meaning->packing.fills);
    free(meaning);
}

static const struct meaning_attribute *find_in(const struct meaning_attributes *attributes,
                                               const char *name)
{
    for (unsigned i = 0; attributes && i < attributes->n; i++)
        if (strcmp(attributes->list[i].name, name) == 0)
            return &attributes->list[i];
    return NULL;
}

const struct meaning_attribute *meaning_find(const struct meaning *meaning, const char *name)
{
    return find_in(meaning ? meaning->attributes : NULL, name);
}

const char *meaning_text(const struct meaning *meaning, const char *name)
{
    const struct meaning_attribute *found = meaning_find(meaning, name);
    return found ? found->text : NULL;
}

static bool is_equal_number(const struct gad_scalar *a, const struct gad_scalar *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind != GAD_SCALAR_FLOAT)
        return a->uint_value == b->uint_value;
    return a->float_value == b->float_value || (isnan(a->float_value) && isnan(b->float_value));
}

bool meaning_attribute_is_equal(const struct meaning_attribute *a,
                                const struct meaning_attribute *b)
{
    if (strcmp(a->name, b->name) != 0 || !a->text != !b->text || a->n_values != b->n_values)
        return false;
    if (a->text)
        return strcmp(a->text, b->text) == 0;
    for (size_t i = 0; i < a->n_values; i++)
        if (!is_equal_number(&a->values[i], &b->values[i]))
            return false;
    return true;
}

bool meaning_is_packing(const char *name)
{
    static const char *const names[] = {"_FillValue", "missing_value", "valid_range", "valid_min",
                                        "valid_max",  "scale_factor",  "add_offset",  "_Unsigned"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

bool meaning_attributes_have_same_units(const struct meaning_attributes *a,
                                        const struct meaning_attributes *b)
{
    static const char *const names[] = {"units", "calendar"};
    for (size_t i = 0; i < ARRAY_LENGTH(names); i++) {
        const struct meaning_attribute *of_a = find_in(a, names[i]), *of_b = find_in(b, names[i]);
        const char *text_a = of_a ? of_a->text : NULL, *text_b = of_b ? of_b->text : NULL;
        if (!text_a != !text_b || (text_a && strcmp(text_a, text_b) != 0))
            return false;
    }
    return true;
}

bool meaning_has_same_units(const struct meaning *a, const struct meaning *b)
{
    return meaning_attributes_have_same_units(a ? a->attributes : NULL, b ? b->attributes : NULL);
}

static bool has_dimensions(const struct meaning *meaning)
{
    for (int i = 0; i < ARRAY_MAX_NDIM; i++)
        if (meaning->dimensions[i])
            return true;
    return false;
}

static int answer(struct meaning *meaning, enum gad_dtype dtype)
{
    struct meaning_packing *packing = &meaning->packing;
    if (meaning->is_answered)
        return 0;
    int r = meaning_read_packing(meaning, dtype, packing);
    if (r)
        return r;
    bool is_unpacked = packing->is_packed && meaning->masking == GAD_MASK_AND_SCALE;
    meaning->answer = (struct gad_meaning){
        .packing = packing->names,
        .is_unsaid = packing->is_packed && meaning->masking == GAD_MASK_UNSAID,
        .is_unpacked = is_unpacked,
        .dtype = is_unpacked ? packing->meant : dtype,
        .n_fills = packing->n_fills,
        .fills = packing->fills,
        .valid_min = packing->valid_min,
        .valid_max = packing->valid_max,
        .scale_factor = packing->scale,
        .add_offset = packing->offset,
        .units = meaning_text(meaning, "units"),
        .long_name = meaning_text(meaning, "long_name"),
        .standard_name = meaning_text(meaning, "standard_name"),
        .dimensions = has_dimensions(meaning) ? (const char *const *)meaning->dimensions : NULL,
    };
    meaning->is_answered = true;
    return 0;
}

int meaning_copy_to_view(const struct gad_array *array, struct gad_array *view, int ndim,
                         const int *axes, const int64_t *starts, const int64_t *steps)
{
    const struct meaning *base = array->meaning;
    if (!base)
        return 0;
    struct meaning *meaning = meaning_of(view);
    if (!meaning)
        return -ENOMEM;
    meaning_attributes_unref(meaning->attributes);
    meaning->attributes = base->attributes;
    meaning->attributes->n_refs++;
    meaning->masking = base->masking;
    for (int i = 0; i < ndim; i++) {
        int k = axes[i];
        if (k < 0 || !base->dimensions[k])
            continue;
        meaning->dimensions[i] = strdup(base->dimensions[k]);
        if (base->coordinates[k])
            meaning->coordinates[i] = strdup(base->coordinates[k]);
        if (!meaning->dimensions[i] || (base->coordinates[k] && !meaning->coordinates[i]))
            return -ENOMEM;
        meaning->limits.is_unlimited[i] = base->limits.is_unlimited[k];
        meaning->limits.chunks[i] = base->limits.chunks[k];
        meaning->member_axes[i] = base->member_axes[k];
        meaning->starts[i] = base->starts[k] + starts[i] * base->steps[k];
        meaning->steps[i] = steps[i] * base->steps[k];
    }
    /* Jobs ask arrays that cannot be changed any more. */
    return meaning->masking == GAD_MASK_AND_SCALE ? answer(meaning, view->info.dtype) : 0;
}

/* Of the many arrays that have no attributes. */
static const struct gad_meaning *plain_answer(enum gad_dtype dtype)
{
#define PLAIN(d) [d] = {.packing = "", .dtype = (d) }
    static const struct gad_meaning answers[] = {
        PLAIN(GAD_BOOL),   PLAIN(GAD_INT8),    PLAIN(GAD_INT16),   PLAIN(GAD_INT32),
        PLAIN(GAD_INT64),  PLAIN(GAD_UINT8),   PLAIN(GAD_UINT16),  PLAIN(GAD_UINT32),
        PLAIN(GAD_UINT64), PLAIN(GAD_FLOAT32), PLAIN(GAD_FLOAT64),
    };
#undef PLAIN
    return &answers[dtype];
}

const struct gad_meaning *gad_array_meaning(struct gad_array *array)
{
    if (!array || !array->meaning)
        return array ? plain_answer(array->info.dtype) : NULL;
    return answer(array->meaning, array->info.dtype) == 0 ? &array->meaning->answer : NULL;
}

const struct meaning_packing *meaning_unpacking(const struct gad_array *array)
{
    const struct meaning *meaning = array->meaning;
    return meaning && meaning->is_answered && meaning->answer.is_unpacked ? &meaning->packing
                                                                          : NULL;
}

enum gad_dtype meaning_dtype(const struct gad_array *array)
{
    const struct meaning_packing *packing = meaning_unpacking(array);
    return packing ? packing->meant : array->info.dtype;
}
