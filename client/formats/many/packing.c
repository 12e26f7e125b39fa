/* Comparing what attributes say of packing: scale, offset, values that stand for nothing measured.
 *
 * Files of one array are unpacked by one rule, so all must have the same; else one of them would
 * come out wrong, and look right.
 *
 * Called by many_look.c.
 */
#include "client/formats/many/packing.h"

#include <inttypes.h>
#include <stdio.h>

int packing_read(const struct gad_array *array, struct meaning_packing *ret)
{
    *ret = (struct meaning_packing){.stored = array->info.dtype, .meant = array->info.dtype};
    return array->meaning ? meaning_read_packing(array->meaning, array->info.dtype, ret) : 0;
}

static bool is_same_number(const struct gad_scalar *a, const struct gad_scalar *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case GAD_SCALAR_NONE: return true;
    case GAD_SCALAR_FLOAT:
        return a->float_value == b->float_value ||
               (a->float_value != a->float_value && b->float_value != b->float_value);
    default: return a->uint_value == b->uint_value;
    }
}

static void write_number(const struct gad_scalar *number, char *to, size_t n_bytes)
{
    switch (number->kind) {
    case GAD_SCALAR_NONE: snprintf(to, n_bytes, "none"); break;
    case GAD_SCALAR_FLOAT: snprintf(to, n_bytes, "%.17g", number->float_value); break;
    case GAD_SCALAR_UINT: snprintf(to, n_bytes, "%" PRIu64, number->uint_value); break;
    default: snprintf(to, n_bytes, "%" PRId64, number->int_value); break;
    }
}

static bool is_same(const char *name, const struct gad_scalar *wanted,
                    const struct gad_scalar *found, struct packing_difference *ret)
{
    if (is_same_number(wanted, found))
        return true;
    ret->name = name;
    write_number(wanted, ret->wanted, sizeof(ret->wanted));
    write_number(found, ret->found, sizeof(ret->found));
    return false;
}

static bool has_same_fills(const struct meaning_packing *wanted,
                           const struct meaning_packing *found, struct packing_difference *ret)
{
    static const struct gad_scalar none;
    size_t n = wanted->n_fills > found->n_fills ? wanted->n_fills : found->n_fills;
    for (size_t i = 0; i < n; i++)
        if (!is_same("fill value", i < wanted->n_fills ? &wanted->fills[i] : &none,
                     i < found->n_fills ? &found->fills[i] : &none, ret))
            return false;
    return true;
}

/* Integers are unsigned or not, which may differ where nothing else does. */
static bool has_same_stored(const struct meaning_packing *wanted,
                            const struct meaning_packing *found, struct packing_difference *ret)
{
    if (wanted->stored == found->stored && wanted->bad == found->bad)
        return true;
    ret->name = found->bad ? found->bad : wanted->bad ? wanted->bad : "_Unsigned, which makes it";
    snprintf(ret->wanted, sizeof(ret->wanted), "%s",
             wanted->bad ? "unusable" : gad_dtype_name(wanted->stored));
    snprintf(ret->found, sizeof(ret->found), "%s",
             found->bad ? "unusable" : gad_dtype_name(found->stored));
    return false;
}

bool packing_is_same(const struct meaning_packing *wanted, const struct meaning_packing *found,
                     struct packing_difference *ret_difference)
{
    return has_same_fills(wanted, found, ret_difference) &&
           is_same("scale_factor", &wanted->scale, &found->scale, ret_difference) &&
           is_same("add_offset", &wanted->offset, &found->offset, ret_difference) &&
           is_same("valid_min", &wanted->valid_min, &found->valid_min, ret_difference) &&
           is_same("valid_max", &wanted->valid_max, &found->valid_max, ret_difference) &&
           has_same_stored(wanted, found, ret_difference);
}
