/* Lists as texts; see listed.h. */
#include "listed.h"

#include <inttypes.h>

static void say(struct told *into, const char *format, ...) GAD_PRINTF(2, 3);
static void say(struct told *into, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t room = sizeof(into->text) - into->n_chars;
    int n = vsnprintf(into->text + into->n_chars, room, format, arguments);
    va_end(arguments);
    cr_assert(n >= 0 && (size_t)n < room);
    into->n_chars += (size_t)n;
}

static void say_sizes(struct told *into, const char *before, int ndim, const int64_t *sizes)
{
    say(into, "%s", before);
    for (int i = 0; i < ndim; i++)
        say(into, "%s%" PRId64, i ? "x" : "", sizes[i]);
}

static void say_value(struct told *into, const struct gad_attribute *attribute)
{
    if (attribute->text)
        say(into, "'%s'", attribute->text);
    for (size_t i = 0; i < attribute->n_texts; i++)
        say(into, "%s'%s'", i ? " " : "", attribute->texts[i]);
    for (size_t i = 0; i < attribute->n_values; i++) {
        const struct gad_scalar *value = &attribute->values[i];
        say(into, "%s", i ? " " : "");
        switch (value->kind) {
        case GAD_SCALAR_FLOAT: say(into, "%.17g", value->float_value); break;
        case GAD_SCALAR_UINT: say(into, "%" PRIu64 "u", value->uint_value); break;
        case GAD_SCALAR_BOOL: say(into, value->int_value ? "True" : "False"); break;
        default: say(into, "%" PRId64, value->int_value); break;
        }
    }
    if (!attribute->text && attribute->n_texts + attribute->n_values == 0)
        say(into, "?");
}

static void say_array(struct told *into, const struct gad_listed *entry)
{
    say_sizes(into, " (", entry->ndim, entry->shape);
    say(into, ")");
    if (entry->chunk_shape)
        say_sizes(into, " by ", entry->ndim, entry->chunk_shape);
    if (*entry->filters)
        say(into, " [%s]", entry->filters);
    for (int i = 0; entry->dimensions && i < entry->ndim; i++)
        say(into, "%s%s", i ? "," : " ", entry->dimensions[i] ? entry->dimensions[i] : "-");
    say(into, entry->is_served ? "" : " unserved");
}

static int take(void *userdata, const struct gad_listed *entry)
{
    struct told *into = userdata;
    into->n++;
    into->n_attributes += entry->n_attributes;
    for (size_t i = 0; i < entry->n_attributes; i++)
        into->n_texts += entry->attributes[i].text != NULL;
    for (size_t i = 0; into->attribute && i < entry->n_attributes; i++)
        if (strcmp(entry->attributes[i].name, into->attribute) == 0)
            say_value(into, &entry->attributes[i]);
    if (!into->attribute) {
        say(into, "%c %s", "AGO"[entry->kind], entry -> name);
        if (entry->type)
            say(into, " %s", entry->type);
        if (entry->kind == GAD_LISTED_ARRAY)
            say_array(into, entry);
        say(into, "\n");
    }
    if (into->opens && entry->kind == GAD_LISTED_ARRAY) {
        char spec[300];
        snprintf(spec, sizeof(spec), "a.h5:%s", entry->name);
        gad_array_release(open_ok(spec));
    }
    if (into->past && strcmp(into->past, entry->name) == 0)
        return GAD_LIST_PAST;
    return into->n == into->end_at ? GAD_LIST_END : GAD_LIST_ON;
}

struct told told;

const char *list_word(const char *spec)
{
    int n = descriptor_count();
    told.n = 0;
    told.n_chars = 0;
    told.text[0] = '\0';
    int r = format_list(spec, take, &told, &last_error);
    cr_assert(eq(int, descriptor_count(), n), "%s", spec);
    if (r)
        cr_assert(last_error.status == (enum gad_status)r && last_error.message[0], "%s", spec);
    return error_word(r);
}

char *list(const char *spec)
{
    const char *word = list_word(spec);
    cr_assert(eq(str, (char *)word, "ok"), "%s: %s", spec, last_error.message);
    return told.text;
}

char *value(const char *spec, const char *attribute)
{
    told.attribute = attribute;
    char *text = list(spec);
    told.attribute = NULL;
    return text;
}

/* ---- Files ---- */

void make_group(hid_t file, const char *name)
{
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(group > 0);
    H5Gclose(group);
}

hid_t text_type(size_t n_bytes, H5T_str_t padding)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    cr_assert(H5Tset_size(type, n_bytes) >= 0 && H5Tset_strpad(type, padding) >= 0);
    return type;
}

void put_attribute(hid_t object, const char *name, hid_t stored, hid_t memory, hsize_t n,
                   const void *values)
{
    hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    cr_assert(attribute > 0 && H5Awrite(attribute, memory, values) >= 0, "%s", name);
    H5Aclose(attribute);
    H5Sclose(space);
}

void put_scale(hid_t file, const char *name, const char *own_name)
{
    const hsize_t size = 4;
    h5_put(file, name, H5T_IEEE_F64LE, 1, &size, NULL, 0);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), type = text_type(16, H5T_STR_NULLTERM);
    put_attribute(dataset, "CLASS", type, type, 0, "DIMENSION_SCALE");
    H5Tset_size(type, 64);
    char text[64] = "";
    snprintf(text, sizeof(text), "%s", own_name);
    put_attribute(dataset, "NAME", type, type, 0, text);
    H5Dclose(dataset);
}

void attach(hid_t file, const char *name, hsize_t ndim, const char *const *scales)
{
    hvl_t lists[4] = {{0, NULL}};
    hobj_ref_t references[4];
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), dataset = H5Dopen2(file, name, H5P_DEFAULT);
    for (hsize_t i = 0; i < ndim; i++)
        if (scales[i]) {
            cr_assert(H5Rcreate(&references[i], file, scales[i], H5R_OBJECT, -1) >= 0);
            lists[i] = (hvl_t){1, &references[i]};
        }
    put_attribute(dataset, "DIMENSION_LIST", type, type, ndim, lists);
    H5Dclose(dataset);
}
