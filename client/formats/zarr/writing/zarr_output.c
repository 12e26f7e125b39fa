/* New arrays as outputs.
 *
 *     create   a place under a hidden name (zarr_place.h); chunks, shards and codecs are chosen
 *     write    blocks come in, chunks go out encoded (chunk_sink.h) into files (zarr_writer.h)
 *     commit   metadata of the array and of new groups, then the name
 *     discard  the hidden folder goes with all that is in it
 *
 * Two that make the same array both work beside it, and the last commit replaces the array whole.
 * Commits into one store come one after the other, by a lock on its folder, since consolidated
 * metadata are read and written anew.
 *
 * An array without axes has one chunk of one element: the sink, which knows no such arrays, is not
 * used for it. One without elements has no chunks at all.
 *
 * Called by format.c (create) and through the array (commit, discard, free).
 */
#include "client/formats/zarr/writing/zarr_output.h"
#include "client/formats/chunked/chunk_sink.h"
#include "client/formats/files/file_array.h"
#include "client/formats/files/file_source.h"
#include "client/formats/zarr/writing/zarr_consolidate.h"
#include "client/formats/zarr/writing/zarr_coordinates.h"
#include "client/formats/zarr/writing/zarr_place.h"
#include "client/formats/zarr/writing/zarr_write.h"
#include "client/formats/zarr/writing/zarr_writer.h"
#include "proto/util.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

struct zarr_output {
    struct zarr_place place;
    struct zarr_meta meta;
    struct zarr_writer *writer;
    struct chunk_sink *sink; /* NULL: no axes, or no elements */
    bool has_come;           /* of one without axes: its element */
    bool is_open;            /* its length is known at the commit */
    bool sync;
};

/* Metadata ------------------------------------------------------------------------------------- */

/* While the new folders get their metadata. */
struct nodes {
    const struct zarr_output *output;
    const struct carried *carried;
    unsigned n;
    struct zarr_new_node *list;
};

static int write_node(void *userdata, int folder_fd, unsigned part)
{
    struct nodes *nodes = userdata;
    const struct zarr_meta *meta = &nodes->output->meta;
    struct zarr_new_node *node = &nodes->list[nodes->n++];
    bool is_v2 = meta->version == 2;
    node->part = part;
    node->is_array = part + 1 == nodes->output->place.n_parts;
    node->metadata =
        node->is_array ? zarr_array_json(meta, nodes->carried) : zarr_group_json(meta->version);
    const char *file = !is_v2 ? "zarr.json" : node->is_array ? ".zarray" : ".zgroup";
    if (!node->metadata)
        return -ENOMEM;
    /* A commit that failed may be tried again. */
    if (unlinkat(folder_fd, file, 0) == 0 && is_v2)
        unlinkat(folder_fd, ".zattrs", 0);
    int r = zarr_json_write(folder_fd, file, node->metadata);
    if (r || !is_v2)
        return r;
    node->attributes = zarr_attributes_json(meta, node->is_array ? nodes->carried : NULL);
    return node->attributes ? zarr_json_write(folder_fd, ".zattrs", node->attributes) : -ENOMEM;
}

static void nodes_deinit(struct nodes *nodes)
{
    for (unsigned i = 0; nodes->list && i < nodes->n; i++) {
        json_put(&nodes->list[i].metadata);
        json_put(&nodes->list[i].attributes);
    }
    free_ptr(&nodes->list);
}

/* Commit --------------------------------------------------------------------------------------- */

/* Waits while another commit into the store goes on. -1: there is no such store yet, or no locks.
 */
static int lock_store(const struct zarr_place *place)
{
    _cleanup_fd_ int folder = place->n_there > 0 ? zarr_place_open(place, 1) : -1;
    int fd = folder < 0 ? -1 : openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) < 0 && errno == EINTR) {
    }
    return fd;
}

static int put_in_place(struct zarr_output *output, struct nodes *nodes, const char *name,
                        struct gad_error *error)
{
    unsigned n_new;
    _cleanup_fd_ int lock_fd = lock_store(&output->place);
    (void)lock_fd; /* held until the end */
    int r = zarr_place_commit(&output->place, name, &n_new, error);
    if (r)
        return r;
    unsigned n_before = nodes->n - n_new; /* groups that others had made meanwhile */
    r = zarr_consolidate(&output->place, n_new, nodes->list + n_before);
    if (r == 0)
        return 0;
    return error_set(error, GAD_IO_ERROR, name,
                     "the array is written, but the store's consolidated metadata cannot be: %s",
                     strerrordesc_np(-r));
}

static int finish_chunks(struct zarr_output *output, const struct gad_array *array,
                         struct gad_error *error)
{
    const char *name = array->info.path;
    if (output->is_open)
        output->meta.shape[0] = array->info.shape[0];
    if (output->sink) {
        int r = chunk_sink_complete(output->sink, array, error);
        if (r == 0 && (r = zarr_writer_finish(output->writer)))
            r = file_path_error(error, r, name, name);
        return r;
    }
    if (output->meta.ndim > 0 || output->has_come)
        return 0;
    return error_set(error, GAD_INTERNAL, name, "'%.160s' has no element", name);
}

static int commit(struct gad_array *array, struct gad_error *error)
{
    struct zarr_output *output = array->format_state;
    const char *name = array->info.path;
    struct nodes nodes = {.output = output, .carried = array->carried};
    int r = finish_chunks(output, array, error);
    if (r)
        return r;
    nodes.list = calloc(output->place.n_parts, sizeof(*nodes.list));
    if (!nodes.list)
        return error_from_errno(error, ENOMEM, name, "output");
    r = zarr_coordinates_name(array, &output->place);
    if (r == 0)
        r = zarr_place_each_new(&output->place, write_node, &nodes);
    if (r == 0 && output->sync && syncfs(output->place.array_fd) < 0)
        r = -errno;
    if (r)
        r = file_path_error(error, -r, name, name);
    else
        r = put_in_place(output, &nodes, name, error);
    if (r == 0)
        r = zarr_coordinates_write(array, &output->place, error);
    if (r == 0 && output->sync && syncfs(output->place.array_fd) < 0)
        r = error_from_errno(error, errno, name, "writing");
    nodes_deinit(&nodes);
    return r;
}

static void format_free(struct gad_array *array)
{
    struct zarr_output *output = steal_ptr(array->format_state);
    chunk_sink_free(output->sink);
    zarr_writer_free(output->writer);
    zarr_place_deinit(&output->place);
    free(output);
}

/* format_free() does it, which always comes. */
static void discard(struct gad_array *array)
{
    (void)array;
}

static bool is_same_target(const struct gad_array *array, const struct gad_array *other)
{
    const struct zarr_output *a = array->format_state, *b = other->format_state;
    return zarr_place_meets(&a->place, &b->place);
}

/* Elements ------------------------------------------------------------------------------------- */

static int drain_one(void *state, const int64_t *start, const int64_t *count, const void *block)
{
    struct zarr_output *output = state;
    char reason[8];
    const void *bytes;
    size_t n_bytes;
    uint32_t skipped;
    struct codec_scratch *scratch = codec_scratch_new();
    (void)count;
    if (!scratch)
        return ENOMEM;
    int r = codec_encode(&output->meta.pipeline, scratch, block, dtype_size(output->meta.dtype),
                         &bytes, &n_bytes, &skipped);
    r = r ? (r < 0 ? -r : EINVAL)
          : zarr_writer_store(output->writer, 0, start, bytes, n_bytes, 0, reason, sizeof(reason));
    codec_scratch_free(scratch);
    output->has_come |= r == 0;
    return r;
}

static const struct provider one_element = {.drain = drain_one};

/* What a chunk of zeros is encoded as. */
static int make_writer(struct zarr_output *output, const char *name, struct gad_error *error)
{
    const struct zarr_meta *meta = &output->meta;
    size_t n_elements = dtype_size(meta->dtype), n_bytes;
    const void *bytes;
    uint32_t skipped;
    for (int i = 0; i < meta->ndim; i++)
        n_elements *= (size_t)zarr_inner_shape(meta)[i];
    struct codec_scratch *scratch = codec_scratch_new();
    _cleanup_free_ void *zeros = calloc(1, n_elements);
    int r = -ENOMEM;
    if (scratch && zeros)
        r = codec_encode(&meta->pipeline, scratch, zeros, n_elements, &bytes, &n_bytes, &skipped);
    if (r == 0)
        output->writer =
            zarr_writer_new(meta, output->is_open, output->place.array_fd, bytes, n_bytes);
    codec_scratch_free(scratch);
    if (r > 0)
        return error_set(error, GAD_BAD_ARGUMENT, name, "chunks cannot be packed so: %s",
                         codec_fault_text(r));
    return output->writer ? 0 : error_from_errno(error, ENOMEM, name, "output");
}

/* Nothing comes: there is only a descriptor to hand over. */
static int use_nothing(struct gad_array *array, const struct zarr_output *output, const char *name,
                       struct gad_error *error)
{
    array->fd =
        openat(output->place.array_fd, ".empty", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (array->fd < 0)
        return file_path_error(error, errno, array->info.path, name);
    unlinkat(output->place.array_fd, ".empty", 0);
    return 0;
}

static int use_provider(struct gad_array *array, struct zarr_output *output,
                        const struct format_target *wanted, struct gad_error *error)
{
    int r = make_writer(output, wanted->name, error);
    if (r)
        return r;
    if (wanted->ndim == 0) {
        array_write_through(array, &one_element, output);
        return 0;
    }
    const int64_t *parts[ZARR_MAX_LEVELS];
    for (unsigned level = 0; level < output->meta.n_shards; level++)
        parts[level] = zarr_shape_at(&output->meta, level);
    const struct chunk_sink_format format = {
        .chunk_shape = zarr_inner_shape(&output->meta),
        .order = output->meta.order,
        .pipeline = &output->meta.pipeline,
        .parts = output->meta.n_shards > 0 ? PARTS_OF_SHAPE : PARTS_OF_CHUNKS,
        .n_part_levels = output->meta.n_shards,
        .part_shapes = parts,
        .store = zarr_writer_store,
        .state = output->writer,
        .dataset = wanted->spec->dataset,
    };
    return chunk_sink_serve(array, &format, wanted->name, &output->sink, error);
}

static int make(struct gad_array *array, const struct format_target *wanted,
                struct gad_error *error)
{
    const struct file_layout layout = {
        .dtype = wanted->dtype,
        .ndim = wanted->ndim,
        .shape = wanted->shape,
    };
    int r = file_array_describe(array, &layout, wanted->name, error);
    if (r)
        return r;
    struct zarr_output *output = calloc(1, sizeof(*output));
    if (!output)
        return error_from_errno(error, ENOMEM, wanted->name, "output");
    output->is_open = array_is_open(array);
    output->place.parent_fd = output->place.array_fd = -1;
    output->sync = wanted->storage->sync;
    array->format_state = output;
    array->maker_free = format_free;
    array->commit = commit;
    array->discard = discard;
    array->is_same_target = is_same_target;
    array->is_writable = true;
    r = zarr_place_init(&output->place, wanted->spec->path, wanted->spec->dataset, wanted->replace,
                        wanted->name, error);
    if (r == 0)
        r = zarr_meta_make(wanted->storage, wanted->dtype, wanted->ndim, wanted->shape,
                           output->place.version, wanted->name, &output->meta, error);
    if (r)
        return r;
    return output->is_open || file_array_n_bytes(array) > 0
               ? use_provider(array, output, wanted, error)
               : use_nothing(array, output, wanted->name, error);
}

int zarr_create(struct gad_client *client, const struct format_target *target,
                struct gad_array **ret_array, struct gad_error *error)
{
    return format_make(client, target, make, ret_array, error);
}
