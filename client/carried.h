/* What is written beside the elements of a new array, where its file can hold it: names of its
 * axes, coordinates along them, and attributes. Made by the library from what is known of the
 * sources, written by the formats when the array is committed. */
#pragma once

#include "client/meaning.h"

/* The values along an axis, in this machine's byte order. */
struct carried_coordinate {
    enum gad_dtype dtype;
    int64_t n;
    void *values;
    struct meaning_attributes *attributes; /* a reference */
};

struct carried {
    bool has_dimensions;                                    /* then every axis has a name */
    char *dimensions[ARRAY_MAX_NDIM];                       /* of the array's axes */
    struct carried_coordinate *coordinates[ARRAY_MAX_NDIM]; /* NULL: a name alone */
    struct axis_limits limits;                              /* of axes that have names */
    unsigned n_attributes;
    struct meaning_attribute *attributes;
};

/* Two axes may have one coordinate's values; these are copies. NULL: no memory. */
struct carried *carried_new(void);
struct carried *carried_free(struct carried *carried);                             /* NULL */
struct carried_coordinate *coordinate_free(struct carried_coordinate *coordinate); /* NULL */
/* n values, cleared; NULL: no memory. attributes: one more reference. */
struct carried_coordinate *coordinate_new(enum gad_dtype dtype, int64_t n,
                                          struct meaning_attributes *attributes);
/* The values. */
bool coordinates_are_equal(const struct carried_coordinate *a, const struct carried_coordinate *b);
/* Whether values of both may be in one: of one dtype, in the same units. */
bool coordinates_go_together(const struct carried_coordinate *a,
                             const struct carried_coordinate *b);
/* False: they do not go together, or no memory; `to` is as it was. */
bool coordinate_append(struct carried_coordinate *to, const struct carried_coordinate *more);
/* False: no memory, and nothing is added. */
bool carried_add_attribute(struct carried *carried, const struct meaning_attribute *attribute);

/* What is carried of the attributes of sources from which a result of this dtype is put together
 * without computing, all of which lie in it as they are seen by expressions. */
void carried_take_attributes(struct carried *carried, unsigned n, struct gad_array *const *sources,
                             enum gad_dtype dtype);
/* The attribute of this name alone, where it is true of what is computed in its units. */
void carried_take_units(struct carried *carried, struct gad_array *source);
