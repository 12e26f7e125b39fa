/* Things in files, as text and as JSON.
 *
 * Names and texts are whatever a file has: on a terminal they are shown without what would control
 * it, and long texts whole, as in ncdump.
 *
 * Called by info_file.c and info_table.c.
 */
#include "client/ctl/files/listed.h"

#include "proto/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

char *listed_sizes(int ndim, const int64_t *sizes)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *file = open_memstream(&text, &n_bytes);
    if (!file)
        return NULL;
    fputc('(', file);
    for (int i = 0; i < ndim; i++)
        if (sizes[i] == GAD_UNKNOWN_LENGTH)
            fprintf(file, "%sunlimited", i ? ", " : "");
        else
            fprintf(file, "%s%" PRId64, i ? ", " : "", sizes[i]);
    fputs(ndim == 1 ? ",)" : ")", file);
    return fclose(file) == 0 ? text : NULL;
}

char *listed_dimensions(const struct gad_listed *entry)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *file = open_memstream(&text, &n_bytes);
    if (!file)
        return NULL;
    for (int i = 0; i < entry->ndim; i++)
        fprintf(file, "%s%s", i ? ", " : "", entry->dimensions[i] ? entry->dimensions[i] : "-");
    if (fclose(file) != 0)
        return NULL;
    text_make_printable(text);
    return text;
}

const struct gad_attribute *listed_attribute(const struct gad_listed *entry, const char *name)
{
    for (size_t i = 0; i < entry->n_attributes; i++)
        if (strcmp(entry->attributes[i].name, name) == 0)
            return &entry->attributes[i];
    return NULL;
}

/* Between quotation marks; what is not printable as C writes it, or as '?'. */
static void print_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (size_t left = strlen(text); left > 0;) {
        size_t n = text_character_bytes(text, left);
        if (*text == '"' || *text == '\\')
            fprintf(file, "\\%c", *text);
        else if (*text == '\n' || *text == '\t')
            fputs(*text == '\n' ? "\\n" : "\\t", file);
        else if (n > 0 && text_is_printable(text, n))
            fwrite(text, 1, n, file);
        else
            fputc('?', file);
        text += n ? n : 1;
        left -= n ? n : 1;
    }
    fputc('"', file);
}

static void print_value(FILE *file, const struct gad_scalar *value)
{
    char text[CTL_SCALAR_SIZE];
    if (value->kind == GAD_SCALAR_BOOL)
        fputs(value->int_value ? "True" : "False", file);
    else /* what was a float32 has as few digits as that one */
        fputs(ctl_format_scalar(GAD_FLOAT32, value, text), file);
}

static void print_attribute(FILE *file, const struct gad_attribute *attribute)
{
    if (attribute->text)
        print_text(file, attribute->text);
    for (size_t i = 0; i < attribute->n_texts; i++) {
        fputs(i ? ", " : "", file);
        print_text(file, attribute->texts[i]);
    }
    for (size_t i = 0; i < attribute->n_values; i++) {
        fputs(i ? ", " : "", file);
        print_value(file, &attribute->values[i]);
    }
    if (!attribute->text && attribute->n_texts == 0 && attribute->n_values == 0)
        fputs("(not shown)", file);
}

void listed_print_attributes(FILE *file, const struct gad_listed *entry, int indent)
{
    for (size_t i = 0; i < entry->n_attributes; i++) {
        char *name = strdup(entry->attributes[i].name);
        if (name)
            text_make_printable(name);
        fprintf(file, "%*s%s = ", indent, "", name ? name : "?");
        free(name);
        print_attribute(file, &entry->attributes[i]);
        fputc('\n', file);
    }
}

/* ---- JSON ---- */

static void add_text(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, text ? json_object_new_string(text) : NULL);
}

static void add_sizes(struct json_object *object, const char *key, int ndim, const int64_t *sizes)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < ndim; i++)
        json_object_array_add(
            list, sizes[i] == GAD_UNKNOWN_LENGTH ? NULL : json_object_new_int64(sizes[i]));
    json_object_object_add(object, key, list);
}

/* null: of a type that is not shown. */
static struct json_object *attribute_json(const struct gad_attribute *attribute)
{
    if (attribute->text)
        return json_object_new_string(attribute->text);
    if (attribute->n_values == 1)
        return ctl_scalar_json(&attribute->values[0]);
    if (attribute->n_values + attribute->n_texts == 0)
        return NULL;
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < attribute->n_values; i++)
        json_object_array_add(list, ctl_scalar_json(&attribute->values[i]));
    for (size_t i = 0; i < attribute->n_texts; i++)
        json_object_array_add(list, json_object_new_string(attribute->texts[i]));
    return list;
}

static void add_array(struct json_object *object, const struct gad_listed *entry)
{
    if (entry->max_shape)
        add_sizes(object, "maxshape", entry->ndim, entry->max_shape);
    if (entry->chunk_shape)
        add_sizes(object, "chunks", entry->ndim, entry->chunk_shape);
    if (entry->dimensions) {
        struct json_object *names = json_object_new_array();
        for (int i = 0; i < entry->ndim; i++)
            json_object_array_add(
                names, entry->dimensions[i] ? json_object_new_string(entry->dimensions[i]) : NULL);
        json_object_object_add(object, "dimensions", names);
    }
    if (entry->filters && *entry->filters)
        add_text(object, "filters", entry->filters);
}

void listed_add_json(struct json_object *object, const struct gad_listed *entry)
{
    if (entry->kind == GAD_LISTED_ARRAY)
        add_array(object, entry);
    if (entry->n_attributes == 0)
        return;
    struct json_object *attributes = json_object_new_object();
    for (size_t i = 0; i < entry->n_attributes; i++)
        json_object_object_add(attributes, entry->attributes[i].name,
                               attribute_json(&entry->attributes[i]));
    json_object_object_add(object, "attributes", attributes);
}
