/* Zarr stores as sources: directories `x.zarr` whose root is an array, or a group with arrays in
 * it, `x.zarr:/group/array`; versions 2 and 3.
 *
 *     store, node   zarr_store.c       which directory, and its metadata
 *     metadata      zarr_v2.c, _v3.c   checked: dtype, grid, codecs, shards
 *     chunks        zarr_chunks.c      stored bytes
 *     blocks        chunked/           decoded on all processors
 *
 * An array without elements is handed over as one that lies in its metadata file, of which nothing
 * is read.
 *
 * Called by format.c.
 */
#include "client/formats/chunk_pick.h"
#include "client/formats/dataset_path.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/format_impl.h"
#include "client/formats/near_names.h"
#include "client/formats/zarr/zarr_attributes.h"
#include "client/formats/zarr/zarr_chunks.h"
#include "client/formats/zarr/zarr_list.h"
#include "client/formats/zarr/writing/zarr_output.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>

/* What is open while an array is described. */
struct source {
    struct gad_array *array;
    const struct spec *spec;
    const char *name;
    struct zarr_store store;
    struct zarr_node node;
    struct zarr_meta meta;
    struct selection selection;
};

static void format_free(struct gad_array *array)
{
    array->format_state = chunk_source_free(array->format_state);
}

/* What is named is no array: a group, or nothing. */
static int no_array_error(const struct source *source, struct gad_error *error)
{
    const char *dataset = source->spec->dataset, *path = source->store.path;
    bool is_group = source->node.kind == ZARR_GROUP;
    char list[NEAR_TEXT_BYTES];
    if (!is_group && !*dataset) {
        error_set(error, GAD_BAD_FORMAT, source->name, "there are no Zarr metadata in '%.200s'",
                  path);
        error_expected(error, "zarr.json, .zgroup or .zarray");
        error_found(error, "none of them");
        return GAD_BAD_FORMAT;
    }
    struct near_names *names = calloc(1, sizeof(*names));
    if (!names)
        return error_from_errno(error, ENOMEM, source->name, path);
    names->wanted = dataset;
    zarr_collect_names(&source->store, is_group ? dataset : "", names);
    if (is_group) {
        near_names_text(names, list, sizeof(list));
        error_set(error, GAD_NOT_FOUND, source->name, "'%.100s%.80s' is a group%s%s", path, dataset,
                  *list ? "; it has " : " without arrays", list);
        error_expected(error, "%s", *list ? list : "an array");
        error_found(error, "'%.100s'", *dataset ? dataset : "/");
    } else {
        (void)near_names_error(names, "array", source->name, error);
    }
    free(names);
    return GAD_NOT_FOUND;
}

static int describe(struct source *source, struct gad_error *error)
{
    const struct zarr_doc doc = {source->node.file, source->name, error};
    struct gad_array *array = source->array;
    const struct zarr_meta *meta = &source->meta;
    int r = source->node.version == 2 ? zarr_v2_parse(&doc, source->node.metadata, &source->meta)
                                      : zarr_v3_parse(&doc, source->node.metadata, &source->meta);
    if (r)
        return r;
    struct file_layout layout = {
        .dtype = meta->dtype,
        .is_swapped = meta->is_swapped,
        .ndim = meta->ndim,
        .shape = meta->shape,
    };
    r = file_array_describe(array, &layout, source->name, error);
    if (r == 0 && source->spec->selection_at)
        r = selection_read(source->name, source->spec->selection_at, meta->ndim, meta->shape,
                           &source->selection, error);
    else if (r == 0)
        selection_whole(meta->ndim, meta->shape, &source->selection);
    if (r == 0 && zarr_attributes_take(array, source->spec->dataset, &source->node, meta,
                                       &source->selection) < 0)
        r = error_from_errno(error, ENOMEM, source->name, source->store.path);
    return r;
}

/* No elements: nothing is read, but there is a descriptor to hand over. */
static int set_empty(struct source *source, struct gad_error *error)
{
    struct stat st;
    int r =
        file_source_open(source->node.file, false, source->name, &source->array->fd, &st, error);
    return r ? r : file_array_select(source->array, source->spec, source->name, error);
}

/* The grid of innermost chunks. An array without axes is a line of one element. */
static void lay_grid(struct source *source, struct chunk_grid *ret_grid, int64_t *ret_shape)
{
    static const int64_t one[1] = {1};
    const struct zarr_meta *meta = &source->meta;
    int64_t item_bytes = (int64_t)dtype_size(meta->dtype);
    memcpy(ret_shape, meta->ndim > 0 ? meta->shape : one,
           (size_t)(meta->ndim > 0 ? meta->ndim : 1) * sizeof(*ret_shape));
    (void)chunk_grid_init(ret_grid, meta->ndim > 0 ? meta->ndim : 1, ret_shape,
                          meta->ndim > 0 ? zarr_inner_shape(meta) : one, item_bytes);
    if (meta->ndim > 0)
        return;
    source->selection.source_ndim = 1;
    source->selection.axes[0] =
        (struct selection_axis){.start = 0, .step = 1, .count = 1, .is_dropped = true};
}

static int open_chunks(struct source *source, struct zarr_chunks **ret_chunks,
                       struct gad_error *error)
{
    int fd = openat(source->store.fd, zarr_directory(source->spec->dataset),
                    O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return file_path_error(error, errno, source->node.file, source->name);
    *ret_chunks = zarr_chunks_new(&source->meta, fd);
    return *ret_chunks ? 0 : error_from_errno(error, ENOMEM, source->name, source->store.path);
}

static void tell_chunks(struct source *source, const struct chunk_grid *grid)
{
    struct gad_array *array = source->array;
    struct chunk_pick pick;
    if (source->meta.ndim > 0 &&
        chunk_pick_init(&pick, grid, &source->selection, (int64_t)dtype_size(source->meta.dtype))) {
        memcpy(array->chunk_shape, pick.grid.chunk_shape, sizeof(array->chunk_shape));
        array->n_chunks = pick.grid.n_chunks;
    }
    array->info.ndim = source->selection.ndim;
    memset(array->info.shape, 0, sizeof(array->info.shape));
    memset(array->info.strides, 0, sizeof(array->info.strides));
    for (int i = 0; i < array->info.ndim; i++)
        array->info.shape[i] = selection_size(&source->selection, i);
}

static int set_chunks(struct source *source, struct gad_error *error)
{
    static const int one_axis[1] = {0};
    const struct zarr_meta *meta = &source->meta;
    int64_t shape[ARRAY_MAX_NDIM];
    struct chunk_grid grid;
    struct zarr_chunks *chunks;
    struct chunk_source *made;
    lay_grid(source, &grid, shape);
    int r = open_chunks(source, &chunks, error);
    if (r)
        return r;
    const char *dataset = source->spec->dataset;
    const struct chunk_layout layout = {
        .grid = grid,
        .shape = shape,
        .item_bytes = dtype_size(meta->dtype),
        .order = meta->ndim > 0 ? meta->order : one_axis,
        .fill = meta->fill,
        .selection = &source->selection,
        .pipeline = &meta->pipeline,
        .fetch = zarr_chunks_fetch,
        .where = zarr_chunks_where,
        .watch = zarr_chunks_watch,
        .locate = zarr_chunks_locate,
        .free_state = zarr_chunks_free,
        .state = chunks,
        .path = source->store.path,
        .dataset = *dataset ? dataset : NULL,
    };
    r = chunk_source_new(&layout, source->name, &made, error);
    if (r) {
        zarr_chunks_free(chunks);
        return r;
    }
    struct gad_array *array = source->array;
    array->access = ACCESS_PROVIDER;
    array->info.access = "provider";
    array->format_state = made;
    array->maker_free = format_free;
    array->provider = &chunk_source_provider;
    array->provider_state = made;
    tell_chunks(source, &grid);
    return 0;
}

static int open_array(struct source *source, struct gad_error *error)
{
    const char *dataset = source->spec->dataset;
    int r = zarr_store_open(source->spec->path, source->name, &source->store, error);
    if (r == 0)
        r = zarr_store_node(&source->store, dataset, source->name, &source->node, error);
    if (r == 0 && source->node.kind != ZARR_ARRAY)
        r = no_array_error(source, error);
    if (r == 0)
        r = describe(source, error);
    if (r == 0 && source->array->is_writable)
        r = error_set(error, GAD_READ_ONLY, source->name,
                      "arrays of Zarr cannot be written in place; '%.160s' can be replaced",
                      source->name);
    if (r == 0)
        r = selection_is_empty(&source->selection) ? set_empty(source, error)
                                                   : set_chunks(source, error);
    zarr_node_deinit(&source->node);
    zarr_store_deinit(&source->store);
    return r;
}

static int zarr_open(struct gad_client *client, const struct spec *spec, const char *name,
                     bool for_writing, struct gad_array **ret_array, struct gad_error *error)
{
    struct source source = {.spec = spec, .name = name, .store = {.fd = -1}};
    source.array = array_new(client, spec->format->name, ACCESS_FILE, spec->path);
    if (!source.array)
        return error_from_errno(error, ENOMEM, name, "array");
    source.array->is_writable = for_writing;
    return array_settle(source.array, open_array(&source, error), ret_array);
}

static bool has_dataset(const char *path, const char *dataset)
{
    struct zarr_store store;
    struct zarr_node node;
    if (zarr_leads_out(dataset) || zarr_store_open(path, NULL, &store, NULL))
        return false;
    bool is_array = false;
    if (zarr_store_node(&store, dataset, NULL, &node, NULL) == 0) {
        is_array = node.kind == ZARR_ARRAY;
        zarr_node_deinit(&node);
    }
    zarr_store_deinit(&store);
    return is_array;
}

/* A name is a path on the disk: none may lead out of its store. The root needs none. */
static int parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                      struct gad_error *error)
{
    if (strspn(rest, ":/.") == strlen(rest) && !zarr_leads_out(rest)) {
        spec->dataset = strdup("");
        return spec->dataset ? 0 : error_from_errno(error, ENOMEM, whole, "spec");
    }
    int r = dataset_path_parse(rest, whole, is_output, spec, error);
    if (r || !zarr_leads_out(spec->dataset))
        return r;
    error_set(error, GAD_BAD_ARGUMENT, whole, "'%.200s' leads out of its store", spec->dataset);
    error_expected(error, "the path of an array in %.100s", spec->path);
    error_found(error, "'..' in it");
    return GAD_BAD_ARGUMENT;
}

const struct format format_zarr = {
    .name = "zarr",
    .extensions = ".zarr",
    .written = "DIRECTORY.zarr[:/ARRAY]",
    .has_chunks = true,
    .has_shards = true,
    .has_numcodecs = true,
    .is_directory = true,
    .takes_brackets = true,
    .normalise = dataset_path_normalise,
    .parse_rest = parse_rest,
    .has_dataset = has_dataset,
    .open = zarr_open,
    .create = zarr_create,
    .list = zarr_list,
};
