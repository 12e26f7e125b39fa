/* gpuarrayctl info with a source.
 *
 * A source that is an array is described as a job would find it, and then as its file has it:
 * names of axes, chunks, filters, attributes. A file with several arrays, or a group of one, is
 * listed. No daemon is asked, so nothing has to run.
 *
 * Names alone are for the completion of shells: what is directly in a file or group, printed as it
 * is found, groups with a slash behind them.
 */
#include "client/ctl/files/info_file.h"
#include "client/ctl/files/info_table.h"

#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- One array ---- */

/* What the file says of it, as text or into the map; the array is `info`. */
struct details {
    const struct gad_array_info *info;
    struct json_object *object; /* NULL: text */
};

/* A selection of it may have other axes. */
static bool is_whole(const struct gad_listed *entry, const struct gad_array_info *info)
{
    return entry->ndim == info->ndim &&
           memcmp(entry->shape, info->shape, (size_t)info->ndim * sizeof(*info->shape)) == 0;
}

static void print_line(const char *key, char *text)
{
    if (text)
        printf("%-7s %s\n", key, text);
    free(text);
}

static int print_details(void *userdata, const struct gad_listed *entry)
{
    const struct details *details = userdata;
    if (entry->kind != GAD_LISTED_ARRAY)
        return GAD_LIST_END;
    if (details->object) {
        if (*entry->name)
            json_object_object_add(details->object, "name", json_object_new_string(entry->name));
        listed_add_json(details->object, entry);
        return GAD_LIST_END;
    }
    bool has_more = entry->dimensions || entry->chunk_shape || entry->max_shape;
    if (has_more && !is_whole(entry, details->info))
        print_line("of", listed_sizes(entry->ndim, entry->shape));
    if (entry->max_shape)
        print_line("maxshape", listed_sizes(entry->ndim, entry->max_shape));
    if (entry->dimensions)
        print_line("axes", listed_dimensions(entry));
    if (entry->chunk_shape)
        print_line("chunks", listed_sizes(entry->ndim, entry->chunk_shape));
    if (entry->filters && *entry->filters)
        printf("filters %s\n", entry->filters);
    if (entry->n_attributes > 0)
        printf("attributes\n");
    listed_print_attributes(stdout, entry, 2);
    return GAD_LIST_END;
}

static uint64_t count(const struct gad_array_info *info)
{
    uint64_t n = 1;
    for (int i = 0; i < info->ndim; i++)
        n *= (uint64_t)info->shape[i];
    return n;
}

static bool is_open(const struct gad_array_info *info)
{
    return info->ndim > 0 && info->shape[0] == GAD_UNKNOWN_LENGTH;
}

static struct json_object *array_json(const struct gad_array_info *info)
{
    struct gad_plan_output what = {.dtype = info->dtype, .ndim = info->ndim};
    memcpy(what.shape, info->shape, sizeof(what.shape));
    uint64_t n = count(info);
    struct json_object *object = ctl_array_json(&what, NULL);
    json_object_object_add(object, "format", json_object_new_string(info->format));
    json_object_object_add(object, "access", json_object_new_string(info->access));
    json_object_object_add(object, "swapped", json_object_new_boolean(info->is_swapped));
    if (!is_open(info)) {
        json_object_object_add(object, "elements", json_object_new_uint64(n));
        json_object_object_add(object, "bytes",
                               json_object_new_uint64(n * gad_dtype_size(info->dtype)));
    }
    if (info->n_files)
        json_object_object_add(object, "files", json_object_new_uint64(info->n_files));
    if (info->has_fill)
        json_object_object_add(object, "fill", ctl_scalar_json(&info->exact_fill));
    return object;
}

static void print_array(const struct gad_array_info *info)
{
    char shape[256], size[32], fill[CTL_SCALAR_SIZE];
    uint64_t n = count(info);
    printf("format  %s\naccess  %s\ndtype   %s%s\nshape   %s\n", info->format, info->access,
           gad_dtype_name(info->dtype), info->is_swapped ? ", byte-swapped" : "",
           ctl_format_shape(info->ndim, info->shape, shape, sizeof(shape)));
    if (!is_open(info))
        printf("size    %s, %llu elements\n",
               ctl_format_bytes((double)(n * gad_dtype_size(info->dtype)), size),
               (unsigned long long)n);
    if (info->n_files)
        printf("files   %llu\n", (unsigned long long)info->n_files);
    if (info->has_fill)
        printf("fill    %s\n", ctl_format_scalar(info->dtype, &info->exact_fill, fill));
}

/* What cannot be listed can still be an array. */
static void describe(const struct info_file_options *options, const struct gad_array *array)
{
    struct details details = {.info = gad_array_info(array)};
    if (options->json)
        details.object = array_json(details.info);
    else
        print_array(details.info);
    if (!ctl_is_pipe(options->source))
        (void)gad_list(options->source, print_details, &details, NULL);
    if (details.object)
        ctl_put_json(details.object);
}

/* ---- A file or a group ---- */

struct contents {
    const struct info_file_options *options;
    struct json_object *list; /* NULL: the table */
    struct info_table table;
    size_t n;
    bool is_named_array, is_short; /* is_short: of memory */
};

/* The group that is listed, or the file itself. */
static bool is_asked_for(const char *source, const struct gad_listed *entry)
{
    size_t n = strlen(source), n_name = strlen(entry->name);
    if (strcmp(entry->name, "/") == 0)
        return true;
    while (n > 0 && source[n - 1] == '/')
        n--;
    return n > n_name && source[n - n_name - 1] == ':' &&
           strncmp(source + n - n_name, entry->name, n_name) == 0;
}

static struct json_object *entry_json(const struct gad_listed *entry)
{
    static const char *const kinds[] = {"array", "group", "other"};
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "name", json_object_new_string(entry->name));
    json_object_object_add(object, "kind", json_object_new_string(kinds[entry->kind]));
    if (entry->type)
        json_object_object_add(object, entry->kind == GAD_LISTED_ARRAY ? "dtype" : "type",
                               json_object_new_string(entry->type));
    if (entry->kind == GAD_LISTED_ARRAY) {
        struct json_object *shape = json_object_new_array();
        for (int i = 0; i < entry->ndim; i++)
            json_object_array_add(shape, json_object_new_int64(entry->shape[i]));
        json_object_object_add(object, "shape", shape);
        json_object_object_add(object, "served", json_object_new_boolean(entry->is_served));
    }
    listed_add_json(object, entry);
    return object;
}

static int take(void *userdata, const struct gad_listed *entry)
{
    struct contents *contents = userdata;
    const struct info_file_options *options = contents->options;
    contents->is_named_array = contents->n++ == 0 && entry->kind == GAD_LISTED_ARRAY &&
                               *entry->name && strstr(options->source, entry->name);
    bool is_line = options->has_attributes || entry->kind != GAD_LISTED_GROUP ||
                   !is_asked_for(options->source, entry);
    if (contents->list)
        json_object_array_add(contents->list, entry_json(entry));
    else if (is_line && !info_table_add(&contents->table, entry))
        contents->is_short = true;
    return contents->is_short ? GAD_LIST_END : GAD_LIST_ON;
}

static void print_contents(const struct contents *contents)
{
    if (contents->list) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "source", json_object_new_string(contents->options->source));
        json_object_object_add(object, "contents", json_object_get(contents->list));
        ctl_put_json(object);
    } else if (contents->table.n_rows == 0) {
        puts("there is nothing in it");
    } else {
        info_table_print(&contents->table);
    }
}

/* refused: why the source is no array. */
static int list(const struct info_file_options *options, const struct gad_error *refused,
                struct gad_error *error)
{
    struct contents contents = {.options = options,
                                .list = options->json ? json_object_new_array() : NULL,
                                .table.has_attributes = options->has_attributes};
    int r = (int)gad_list(options->source, take, &contents, error);
    bool is_array = contents.is_named_array && contents.n == 1;
    if (contents.is_short)
        r = error_set(error, GAD_NO_MEMORY, options->source, "the table is too long");
    if (r == 0 && !is_array)
        print_contents(&contents);
    json_object_put(contents.list);
    info_table_deinit(&contents.table);
    if (!is_array && (r == 0 || refused->status == GAD_BAD_ARGUMENT))
        return r;
    *error = *refused;
    return (int)error->status;
}

/* ---- Names ---- */

static int print_name(void *userdata, const struct gad_listed *entry)
{
    const char *source = userdata;
    bool is_group = entry->kind == GAD_LISTED_GROUP;
    if (is_group && is_asked_for(source, entry))
        return GAD_LIST_ON;
    bool is_wanted = is_group || (entry->kind == GAD_LISTED_ARRAY && entry->is_served);
    if (is_wanted && text_is_printable(entry->name, strlen(entry->name))) {
        printf("%s%s\n", entry->name, is_group ? "/" : "");
        fflush(stdout); /* whoever waits for it may give up */
    }
    return is_group ? GAD_LIST_PAST : GAD_LIST_ON;
}

/* What its header says: nothing behind it is read. */
static int info_pipe(const struct info_file_options *options, struct gad_error *error)
{
    struct gad_stream *stream;
    int r = ctl_open_pipe(NULL, options->source, &stream, error);
    if (r)
        return r;
    describe(options, gad_stream_array(stream));
    gad_stream_free(stream);
    return 0;
}

int info_file(const struct info_file_options *options, struct gad_error *error)
{
    if (ctl_is_pipe(options->source) && !options->names_alone)
        return info_pipe(options, error);
    struct gad_array *array;
    struct gad_error refused;
    if (options->names_alone)
        return (int)gad_list(options->source, print_name, (char *)options->source, error);
    if (gad_array_open(NULL, options->source, &array, &refused))
        return list(options, &refused, error);
    describe(options, array);
    gad_array_release(array);
    return 0;
}
