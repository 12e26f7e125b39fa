/* What gad_list() says of a thing in a file, as text and as JSON. */
#pragma once

#include "client/ctl/ctl.h"

/* "(2, 3)"; a heap string. NULL: no memory. */
char *listed_sizes(int ndim, const int64_t *sizes);
/* "time, -, lon"; the same. */
char *listed_dimensions(const struct gad_listed *entry);

/* NULL: it has no such attribute. */
const struct gad_attribute *listed_attribute(const struct gad_listed *entry, const char *name);
/* A line for each: "name = value". */
void listed_print_attributes(FILE *file, const struct gad_listed *entry, int indent);

/* Adds what the entry has to a map. */
void listed_add_json(struct json_object *object, const struct gad_listed *entry);
