/* Attributes of netCDF classic files: numbers and texts.
 *
 * Before CDF-5 the format had no unsigned types, so that there is a convention: a variable of a
 * signed type with an attribute `_Unsigned = "true"` is of the unsigned type of that size, and so
 * are those of its attributes that name values of it; and the other way round with "false".
 *
 * Called by netcdf.c and netcdf_list.c.
 */
#include "client/formats/netcdf/netcdf_attributes.h"
#include "proto/util.h"

#include <string.h>
#include <strings.h>

#define MAX_VALUES 4096 /* more are not shown */

/* Where _Unsigned is set: of the elements' own type. */
static const char *const value_names[] = {"_FillValue", "missing_value", "valid_min", "valid_max",
                                          "valid_range"};

static bool says(const struct netcdf_attribute *attribute, const char *word)
{
    size_t n = strlen(word);
    return attribute->type == NETCDF_CHAR &&
           strnlen((const char *)attribute->values, attribute->n_values) == n &&
           strncasecmp((const char *)attribute->values, word, n) == 0;
}

/* Of each size the signed type and the unsigned one. */
static const enum netcdf_type signs[][2] = {{NETCDF_BYTE, NETCDF_UBYTE},
                                            {NETCDF_SHORT, NETCDF_USHORT},
                                            {NETCDF_INT, NETCDF_UINT},
                                            {NETCDF_INT64, NETCDF_UINT64}};

static enum netcdf_type with_sign(enum netcdf_type type, bool is_unsigned)
{
    for (size_t i = 0; i < ARRAY_LENGTH(signs); i++)
        if (signs[i][!is_unsigned] == type)
            return signs[i][is_unsigned];
    return type;
}

/* What the variable's elements are, its attribute _Unsigned considered. */
static enum netcdf_type meant_type(const struct netcdf_variable *variable)
{
    struct netcdf_attributes left = variable->attributes;
    struct netcdf_attribute attribute;
    while (netcdf_next_attribute(&left, &attribute))
        if (netcdf_text_is(&attribute.name, "_Unsigned"))
            return says(&attribute, "true")    ? with_sign(variable->type, true)
                   : says(&attribute, "false") ? with_sign(variable->type, false)
                                               : variable->type;
    return variable->type;
}

bool netcdf_variable_dtype(const struct netcdf_variable *variable, enum dtype *ret_dtype)
{
    return netcdf_type_to_dtype(meant_type(variable), ret_dtype);
}

static struct gad_scalar read_value(enum netcdf_type type, const uint8_t *bytes)
{
    size_t n_bytes = netcdf_type_size(type);
    uint64_t bits = 0;
    for (size_t i = 0; i < n_bytes; i++)
        bits = bits << 8 | bytes[i];
    if (type == NETCDF_FLOAT) {
        float value;
        uint32_t low = (uint32_t)bits;
        memcpy(&value, &low, sizeof(value));
        return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = (double)value};
    }
    if (type == NETCDF_DOUBLE) {
        double value;
        memcpy(&value, &bits, sizeof(value));
        return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = value};
    }
    if (with_sign(type, true) == type)
        return (struct gad_scalar){.kind = GAD_SCALAR_UINT, .uint_value = bits};
    unsigned shift = (unsigned)(64 - 8 * n_bytes);
    return (struct gad_scalar){.kind = GAD_SCALAR_INT,
                               .int_value = (int64_t)(bits << shift) >> shift};
}

static int read_values(const struct netcdf_attribute *attribute, enum netcdf_type type,
                       struct gad_attribute *ret)
{
    if (attribute->n_values > MAX_VALUES)
        return 0;
    struct gad_scalar *values = calloc(attribute->n_values + 1, sizeof(*values));
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < attribute->n_values; i++)
        values[i] = read_value(type, attribute->values + i * netcdf_type_size(type));
    enum dtype dtype;
    ret->is_dtype_known = netcdf_type_to_dtype(type, &dtype);
    ret->dtype = (enum gad_dtype)dtype;
    ret->values = values;
    ret->n_values = attribute->n_values;
    return 0;
}

static bool is_of_elements(const struct netcdf_attribute *attribute,
                           const struct netcdf_variable *variable)
{
    if (!variable || attribute->type != variable->type)
        return false;
    for (size_t i = 0; i < ARRAY_LENGTH(value_names); i++)
        if (netcdf_text_is(&attribute->name, value_names[i]))
            return true;
    return false;
}

static int read_one(const struct netcdf_attribute *attribute,
                    const struct netcdf_variable *variable, struct gad_attribute *ret)
{
    enum netcdf_type type = attribute->type;
    if (is_of_elements(attribute, variable))
        type = meant_type(variable);
    ret->name = strndup(attribute->name.chars, attribute->name.n_chars);
    if (!ret->name)
        return -ENOMEM;
    if (type != NETCDF_CHAR)
        return read_values(attribute, type, ret);
    ret->text = strndup((const char *)attribute->values, attribute->n_values);
    return ret->text ? 0 : -ENOMEM;
}

int netcdf_attributes_read(const struct netcdf_header *header,
                           const struct netcdf_variable *variable,
                           struct netcdf_attribute_list *ret_list)
{
    struct netcdf_attributes left = variable ? variable->attributes : header->attributes;
    struct netcdf_attribute attribute;
    struct netcdf_attribute_list list = {.n = 0};
    int r = 0;
    list.attributes = calloc(left.n + 1, sizeof(*list.attributes));
    if (!list.attributes)
        return -ENOMEM;
    while (r == 0 && netcdf_next_attribute(&left, &attribute))
        r = read_one(&attribute, variable, &list.attributes[list.n++]);
    if (r)
        netcdf_attributes_free(&list);
    else
        *ret_list = list;
    return r;
}

void netcdf_attributes_free(struct netcdf_attribute_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free((char *)list->attributes[i].name);
        free((char *)list->attributes[i].text);
        free((struct gad_scalar *)list->attributes[i].values);
    }
    free_ptr(&list->attributes);
    list->n = 0;
}
