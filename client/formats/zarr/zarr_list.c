/* Listing a store.
 *
 * An array is listed whatever it is; whether it is served says the parser that opens it, so that
 * both always agree. What cannot be read from its metadata is left out of its entry.
 *
 * Called by zarr.c and through its row.
 */
#include "client/formats/zarr/zarr_list.h"
#include "client/formats/dataset_path.h"
#include "client/formats/zarr/zarr_attributes.h"
#include "proto/util.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_COLLECTED 500u
#define MAX_AXES      256

bool zarr_leads_out(const char *dataset)
{
    for (const char *at = dataset; *at; at += strspn(at, "/:")) {
        size_t n = strcspn(at, "/:");
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return true;
        at += n;
    }
    return false;
}

/* Codecs as text ------------------------------------------------------------------------------- */

struct text {
    char buffer[256];
    size_t used;
};

static void add_text(struct text *text, const char *separator, const char *word)
{
    size_t room = sizeof(text->buffer) - text->used;
    int n = snprintf(text->buffer + text->used, room, "%s%.60s", text->used ? separator : "", word);
    text->used = min_u64(text->used + (size_t)n, sizeof(text->buffer) - 1);
}

static void add_codec(struct text *text, const char *name, struct json_object *values)
{
    char number[24];
    const char *inner = zarr_text(values, "cname");
    struct json_object *level = zarr_member(values, "level");
    if (!level)
        level = zarr_member(values, "clevel");
    add_text(text, ", ", strncmp(name, "numcodecs.", 10) == 0 ? name + 10 : name);
    if (inner)
        add_text(text, " ", inner);
    if (json_object_is_type(level, json_type_int)) {
        snprintf(number, sizeof(number), "%" PRId64, json_object_get_int64(level));
        add_text(text, " ", number);
    }
}

/* Inner ones first, since they were applied first; `bytes` says nothing to a reader. */
static void add_v3_codecs(struct text *text, struct json_object *codecs, int depth)
{
    size_t n = json_object_is_type(codecs, json_type_array) ? json_object_array_length(codecs) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *codec = json_object_array_get_idx(codecs, i);
        struct json_object *values = zarr_configuration(codec);
        const char *name = zarr_name(codec);
        if (!name || strcmp(name, "bytes") == 0)
            continue;
        if (strcmp(name, "sharding_indexed") == 0 && depth > 0)
            add_v3_codecs(text, zarr_member(values, "codecs"), depth - 1);
        add_codec(text, name, values);
    }
}

static void add_v2_codecs(struct text *text, struct json_object *metadata)
{
    struct json_object *filters = zarr_member(metadata, "filters");
    struct json_object *compressor = zarr_member(metadata, "compressor");
    size_t n =
        json_object_is_type(filters, json_type_array) ? json_object_array_length(filters) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *filter = json_object_array_get_idx(filters, i);
        if (zarr_text(filter, "id"))
            add_codec(text, zarr_text(filter, "id"), filter);
    }
    if (zarr_text(compressor, "id"))
        add_codec(text, zarr_text(compressor, "id"), compressor);
}

/* Shapes --------------------------------------------------------------------------------------- */

static int read_sizes(struct json_object *list, int64_t *ret_sizes)
{
    size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < n && i < MAX_AXES; i++)
        ret_sizes[i] = json_object_get_int64(json_object_array_get_idx(list, i));
    return (int)min_u64(n, MAX_AXES);
}

/* Of the chunks that are packed one by one. */
static struct json_object *chunks_of(const struct zarr_node *node)
{
    if (node->version == 2)
        return zarr_member(node->metadata, "chunks");
    struct json_object *grid = zarr_member(node->metadata, "chunk_grid");
    struct json_object *codecs = zarr_member(node->metadata, "codecs");
    struct json_object *shape = zarr_member(zarr_configuration(grid), "chunk_shape");
    for (int depth = 0; depth < ZARR_MAX_LEVELS; depth++) {
        size_t n =
            json_object_is_type(codecs, json_type_array) ? json_object_array_length(codecs) : 0;
        struct json_object *values = NULL;
        for (size_t i = 0; i < n; i++) {
            struct json_object *codec = json_object_array_get_idx(codecs, i);
            const char *name = zarr_name(codec);
            if (name && strcmp(name, "sharding_indexed") == 0)
                values = zarr_configuration(codec);
        }
        if (!zarr_member(values, "chunk_shape"))
            break;
        shape = zarr_member(values, "chunk_shape");
        codecs = zarr_member(values, "codecs");
    }
    return shape;
}

/* Entries -------------------------------------------------------------------------------------- */

static const char *type_text(const struct zarr_node *node, char *buffer, size_t n_bytes)
{
    struct json_object *type =
        zarr_member(node->metadata, node->version == 2 ? "dtype" : "data_type");
    const char *name = zarr_name(type);
    if (!name && type)
        name = json_object_to_json_string_ext(type, JSON_C_TO_STRING_PLAIN);
    snprintf(buffer, n_bytes, "%s", name ? name : "of no type");
    return buffer;
}

struct entry {
    char type[128];
    int64_t shape[MAX_AXES], chunk_shape[MAX_AXES];
    const char *dimensions[MAX_AXES];
    struct text filters;
    struct zarr_meta meta;
};

static void describe_array(const struct zarr_node *node, struct entry *entry,
                           struct gad_listed *listed)
{
    const struct zarr_doc doc = {node->file, NULL, NULL};
    int r = node->version == 2 ? zarr_v2_parse(&doc, node->metadata, &entry->meta)
                               : zarr_v3_parse(&doc, node->metadata, &entry->meta);
    listed->kind = GAD_LISTED_ARRAY;
    listed->is_served = r == 0;
    listed->type =
        r == 0 ? dtype_name(entry->meta.dtype) : type_text(node, entry->type, sizeof(entry->type));
    listed->ndim = read_sizes(zarr_member(node->metadata, "shape"), entry->shape);
    listed->shape = entry->shape;
    if (read_sizes(chunks_of(node), entry->chunk_shape) == listed->ndim)
        listed->chunk_shape = entry->chunk_shape;
    if (zarr_dimensions(node, listed->ndim, entry->dimensions))
        listed->dimensions = entry->dimensions;
    if (node->version == 2)
        add_v2_codecs(&entry->filters, node->metadata);
    else
        add_v3_codecs(&entry->filters, zarr_member(node->metadata, "codecs"), ZARR_MAX_LEVELS);
    listed->filters = entry->filters.buffer;
}

struct lister {
    gad_list_function *function;
    void *userdata;
};

static int list_node(void *userdata, const char *dataset, const struct zarr_node *node)
{
    const struct lister *lister = userdata;
    struct gad_listed listed = {
        .kind = GAD_LISTED_GROUP,
        .name = *dataset ? dataset : "/",
        .filters = "",
    };
    struct zarr_attributes attributes;
    struct entry *entry = calloc(1, sizeof(*entry));
    if (!entry || zarr_attributes_init(node->attributes, &attributes)) {
        free(entry);
        return -ENOMEM;
    }
    if (node->kind == ZARR_ARRAY)
        describe_array(node, entry, &listed);
    if (node->kind == ZARR_DAMAGED) {
        listed.kind = GAD_LISTED_OTHER;
        listed.type = "metadata that cannot be read";
    }
    listed.n_attributes = attributes.n;
    listed.attributes = attributes.list;
    int step = lister->function(lister->userdata, &listed);
    zarr_attributes_deinit(&attributes);
    free(entry);
    return step == GAD_LIST_ON ? 0 : step == GAD_LIST_PAST ? ZARR_WALK_PAST : 1;
}

/* Without such a node there is nothing to list. */
static int check_node(const struct zarr_store *store, const char *dataset, const char *name,
                      struct gad_error *error)
{
    struct zarr_node node;
    int r = zarr_store_node(store, dataset, name, &node, error);
    if (r)
        return r;
    enum zarr_kind kind = node.kind;
    zarr_node_deinit(&node);
    if (kind != ZARR_NOTHING)
        return 0;
    if (*dataset)
        return error_set(error, GAD_NOT_FOUND, name, "there is no '%.120s' in '%.120s'", dataset,
                         store->path);
    error_set(error, GAD_BAD_FORMAT, name, "there are no Zarr metadata in '%.200s'", store->path);
    error_expected(error, "zarr.json, .zgroup or .zarray");
    error_found(error, "none of them");
    return GAD_BAD_FORMAT;
}

int zarr_list(const char *path, const char *text, const char *name, gad_list_function *function,
              void *userdata, struct gad_error *error)
{
    struct lister lister = {function, userdata};
    struct zarr_store store;
    _cleanup_free_ char *rest = NULL, *dataset = NULL;
    if (asprintf(&rest, ":%s", text) < 0 || !(dataset = dataset_path_normalise(rest)))
        return error_from_errno(error, ENOMEM, name, path);
    if (zarr_leads_out(dataset))
        return error_set(error, GAD_BAD_ARGUMENT, name, "'%.200s' leads out of its store", dataset);
    int r = zarr_store_open(path, name, &store, error);
    if (r)
        return r;
    r = check_node(&store, dataset, name, error);
    if (r == 0 && zarr_walk(&store, dataset, list_node, &lister) == -ENOMEM)
        r = error_from_errno(error, ENOMEM, name, path);
    zarr_store_deinit(&store);
    return r;
}

struct collector {
    struct near_names *names;
    unsigned n;
};

static int collect(void *userdata, const char *dataset, const struct zarr_node *node)
{
    struct collector *collector = userdata;
    if (collector->n++ == MAX_COLLECTED) {
        collector->names->is_cut = true;
        return 1;
    }
    if (node->kind == ZARR_ARRAY && *dataset)
        near_names_add(collector->names, dataset);
    return 0;
}

void zarr_collect_names(const struct zarr_store *store, const char *dataset,
                        struct near_names *names)
{
    struct collector collector = {names, 0};
    (void)zarr_walk(store, dataset, collect, &collector);
}
