/* Whether two files mean the same by the same stored elements. */
#pragma once

#include "client/array.h"
#include "client/meaning.h"

/* What an array's attributes say of its packing. Its fills are the caller's. -ENOMEM. */
int packing_read(const struct gad_array *array, struct meaning_packing *ret) GAD_MUST_CHECK;

struct packing_difference {
    const char *name; /* of an attribute */
    char wanted[32], found[32];
};
/* ret_difference is set where they are not the same. */
bool packing_is_same(const struct meaning_packing *wanted, const struct meaning_packing *found,
                     struct packing_difference *ret_difference);
