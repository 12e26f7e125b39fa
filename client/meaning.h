/* What the attributes of an array's file mean: filled by the formats, read by the library.
 *
 * The attributes are of the file's array and shared by all views of it; the names of dimensions are
 * those of an array's own axes. */
#pragma once

#include "client/gpuarrayd.h"
#include "proto/array.h"

/* A copy of an attribute as it stood in the file. */
struct meaning_attribute {
    char *name;
    char *text; /* NULL: numbers */
    size_t n_values;
    struct gad_scalar *values;
    enum gad_dtype dtype; /* of the values, where is_dtype_known */
    bool is_dtype_known;
};

struct meaning_attributes { /* shared, counted */
    unsigned n_refs;
    unsigned n;
    struct meaning_attribute *list;
    /* Of several arrays as one: their specs, behind each other and before an empty one, and along
     * which of their axes they are joined; -1: along a new one. NULL: it is one array. */
    char *members;
    int joined_axis;
};

/* How stored elements become what is meant. Numbers are of the unsigned or signed dtype `stored`,
 * which differs from the file's where _Unsigned says so. */
struct meaning_packing {
    enum gad_dtype stored;
    enum gad_dtype meant;
    size_t n_fills;
    struct gad_scalar *fills; /* those that an element can be equal to; owned */
    struct gad_scalar valid_min, valid_max, scale, offset;
    const char *bad; /* the attribute that is no single finite number; NULL: none */
    bool is_packed;
    char names[128]; /* of the attributes */
};

/* How axes may grow in their file, whose dimensions those are that have no limit. */
struct axis_limits {
    bool is_unlimited[ARRAY_MAX_NDIM];
    int64_t chunks[ARRAY_MAX_NDIM]; /* elements of a chunk; 0: not known */
};

struct meaning {
    struct meaning_attributes *attributes;
    char *dimensions[ARRAY_MAX_NDIM];  /* of this array's axes; NULL: no name */
    char *coordinates[ARRAY_MAX_NDIM]; /* specs of the arrays along them; NULL: none */
    int member_axes[ARRAY_MAX_NDIM];   /* of several arrays: theirs that goes along them */
    struct axis_limits limits;         /* of axes that have names */
    /* How this array's axes lie along those of the file's coordinates: element i of the axis is
     * element start + i * step of the dimension, or of what the members have along it. */
    int64_t starts[ARRAY_MAX_NDIM], steps[ARRAY_MAX_NDIM];
    enum gad_masking masking;
    bool is_answered;
    struct meaning_packing packing; /* once it is answered */
    struct gad_meaning answer;
};

/* Those of an array, made with the first call. NULL: no memory. */
struct meaning *meaning_of(struct gad_array *array);
void meaning_attributes_unref(struct meaning_attributes *attributes);
/* Without those whose bits are set. */
void meaning_attributes_drop(struct meaning_attributes *attributes, uint32_t which);
bool meaning_attribute_is_equal(const struct meaning_attribute *a,
                                const struct meaning_attribute *b);
/* NULL is allowed. */
void meaning_free(struct meaning *meaning);
/* A view, whose info is filled in, has its array's attributes. axes[i]: the array's axis along
 * which axis i goes, -1: none; starts and steps along it. -ENOMEM. */
int meaning_copy_to_view(const struct gad_array *array, struct gad_array *view, int ndim,
                         const int *axes, const int64_t *starts, const int64_t *steps);

const struct meaning_attribute *meaning_find(const struct meaning *meaning, const char *name);
/* The text of one that is a text; else NULL. */
const char *meaning_text(const struct meaning *meaning, const char *name);
/* Of how elements are stored: one of them is of no use without the others. */
bool meaning_is_packing(const char *name);
/* Whether numbers of both are in the same units, times of the same calendar. */
bool meaning_has_same_units(const struct meaning *a, const struct meaning *b);
bool meaning_attributes_have_same_units(const struct meaning_attributes *a,
                                        const struct meaning_attributes *b);
/* meaning_packing.c: from the attributes of an array of this dtype. -ENOMEM. */
int meaning_read_packing(const struct meaning *meaning, enum gad_dtype dtype,
                         struct meaning_packing *ret) GAD_MUST_CHECK;
/* Whether expressions see another thing than what is stored; NULL: not. */
const struct meaning_packing *meaning_unpacking(const struct gad_array *array);
/* Of elements as expressions see them. */
enum gad_dtype meaning_dtype(const struct gad_array *array);
