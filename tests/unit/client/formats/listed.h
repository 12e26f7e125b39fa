/* What is in a file as a text, and HDF5 files with attributes and scales, for tests of lists. */
#pragma once

#include "support.h"

/* What a list told, and what its function does. */
struct told {
    char text[1 << 18];
    size_t n_chars, n_attributes, n_texts;
    unsigned n, end_at;    /* end_at: the entry that ends the list; 0: none */
    const char *past;      /* a group that is passed over */
    const char *attribute; /* whose value is told instead */
    bool opens;            /* arrays, meanwhile */
};
extern struct told told;

/* "ok" or the word of the failure; what was told is in `told`. */
const char *list_word(const char *spec);
/* Or stops the test: a line for each entry. */
char *list(const char *spec);
/* The values of an attribute, of all entries that have it; "?" where they are not shown. */
char *value(const char *spec, const char *attribute);

void make_group(hid_t file, const char *name);
hid_t text_type(size_t n_bytes, H5T_str_t padding);
/* n 0: a scalar. */
void put_attribute(hid_t object, const char *name, hid_t stored, hid_t memory, hsize_t n,
                   const void *values);
/* A dataset of 4 that is a dimension scale. */
void put_scale(hid_t file, const char *name, const char *own_name);
/* scales: of each axis its path, or NULL. */
void attach(hid_t file, const char *name, hsize_t ndim, const char *const *scales);
