/* The places of a request's arrays.
 *
 * For each location: is it the user's, is it of a kind that is served, is it large enough, may it
 * be written where it is an output? What is found out about identity (device and inode) goes to the
 * overlap check, which is pure. Inline arrays and outputs without `to` have no place.
 *
 * A source that is too short now is refused here with the numbers; one that shrinks later is the
 * worker's to find. An output may be too short: writing makes it longer, the client reserved it.
 *
 * Called by submit.c.
 */
#include "daemon/broker/sessions/places.h"
#include "daemon/broker/sessions/inspect.h"
#include "daemon/broker/sessions/region.h"
#include "proto/wire/ring.h"
#include "proto/util.h"

#include <fcntl.h>

struct visit { /* of one array */
    const struct broker *broker;
    uid_t uid;
    const struct frame *frame;
    const struct array *array;
    const char *name;
    bool is_output;
    struct places *places;
    struct overlap_identity *identity;
};

static int too_small(struct gad_error *error, enum gad_status status, const char *name,
                     const char *what, uint64_t needed, uint64_t there)
{
    error_set(error, status, name, "%s: %s holds %llu bytes, the array needs %llu", name, what,
              (unsigned long long)there, (unsigned long long)needed);
    error_expected(error, "%llu bytes", (unsigned long long)needed);
    error_found(error, "%llu bytes", (unsigned long long)there);
    return (int)status;
}

/* The end of the array's bytes, counted as its offset is; bad-extent if it begins before 0 or ends
 * beyond what an offset can be. */
static int extent_end(const struct visit *v, uint64_t offset, uint64_t *ret_end,
                      struct gad_error *error)
{
    int64_t low, high, begin, end;
    array_extent(v->array, &low, &high);
    if (offset > INT64_MAX || add_overflows_i64((int64_t)offset, low, &begin) || begin < 0 ||
        add_overflows_i64((int64_t)offset, high, &end)) {
        error_set(error, GAD_BAD_EXTENT, v->name,
                  "%s: the array's bytes [%lld, %lld) from offset %llu do not lie in any file",
                  v->name, (long long)low, (long long)high, (unsigned long long)offset);
        return GAD_BAD_EXTENT;
    }
    *ret_end = (uint64_t)end;
    return 0;
}

static void set_identity(const struct visit *v, uint64_t device, uint64_t inode)
{
    *v->identity = (struct overlap_identity){true, device, inode};
}

static int check_region(const struct visit *v, struct gad_error *error)
{
    struct region *region = region_find(v->broker, v->uid, v->array->at.region.id);
    uint64_t end;
    if (!region)
        return error_set(error, GAD_UNKNOWN_REGION, v->name, "%s: there is no region %llu", v->name,
                         (unsigned long long)v->array->at.region.id);
    if (region_is_broken(region))
        return error_set(error, GAD_BAD_REGION, v->name,
                         "%s: region %llu cannot be mapped any more", v->name,
                         (unsigned long long)region->id);
    if (v->is_output && !region->is_writable)
        return error_set(error, GAD_READ_ONLY, v->name,
                         "%s: region %llu was attached for reading only", v->name,
                         (unsigned long long)region->id);
    int r = extent_end(v, v->array->at.region.offset_bytes, &end, error);
    if (r)
        return r;
    if (end > region->size_bytes)
        return too_small(error, GAD_BAD_EXTENT, v->name, "the region", end, region->size_bytes);
    set_identity(v, region->device, region->inode);
    v->places->regions[v->places->n_regions++] = region;
    return 0;
}

static int n_chunks_of(const struct visit *v, uint64_t *ret_n, struct gad_error *error)
{
    const struct array *a = v->array;
    uint64_t n = 1;
    for (int i = 0; i < a->ndim; i++) {
        int64_t chunk = a->at.file.chunk_shape[i];
        uint64_t along =
            chunk > 0 ? ((uint64_t)a->shape[i] + (uint64_t)chunk - 1) / (uint64_t)chunk : 0;
        if (chunk <= 0 || __builtin_mul_overflow(n, along, &n))
            return error_set(error, GAD_BAD_CHUNK_TABLE, v->name,
                             "%s: chunks of %lld along axis %d", v->name, (long long)chunk, i);
    }
    *ret_n = n;
    return 0;
}

static int check_chunk_table(const struct visit *v, struct gad_error *error)
{
    const struct location *at = &v->array->at;
    uint64_t n = 0, n_bytes;
    struct inspected table;
    int r = n_chunks_of(v, &n, error);
    if (r)
        return r;
    if (n != at->file.n_chunks || __builtin_mul_overflow(n, sizeof(struct chunk_entry), &n_bytes)) {
        error_set(error, GAD_BAD_CHUNK_TABLE, v->name,
                  "%s: the shape has %llu chunks, the table %llu", v->name, (unsigned long long)n,
                  (unsigned long long)at->file.n_chunks);
        error_expected(error, "%llu chunks", (unsigned long long)n);
        error_found(error, "%llu chunks", (unsigned long long)at->file.n_chunks);
        return GAD_BAD_CHUNK_TABLE;
    }
    return inspect_memfd(v->frame->fds[at->file.table_fd_index],
                         F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, n_bytes, false,
                         GAD_BAD_CHUNK_TABLE, v->name, &table, error);
}

/* Pages that the worker's writing would allocate were memory of the daemon, which nobody is charged
 * for: the client reserves them, or writes by itself. */
static int check_reserved(const struct visit *v, const struct inspected *file, uint64_t end,
                          struct gad_error *error)
{
    if (!file->is_memory || array_n_elements(v->array) == 0 ||
        (!file->has_holes && end <= file->size_bytes))
        return 0;
    error_set(error, GAD_USE_PROVIDER, v->name, "%s: the file's memory is not reserved", v->name);
    error_expected(error, "%llu bytes without holes", (unsigned long long)end);
    error_found(error, "%llu bytes%s", (unsigned long long)file->size_bytes,
                file->has_holes ? " with holes" : "");
    return GAD_USE_PROVIDER;
}

static int check_file(const struct visit *v, struct gad_error *error)
{
    const struct location *at = &v->array->at;
    struct inspected file;
    uint64_t end;
    int r = inspect_file(v->broker->mounts, v->frame->fds[at->file.fd_index], v->is_output, v->name,
                         &file, error);
    if (r)
        return r;
    set_identity(v, file.device, file.inode);
    if (at->file.is_grid)
        return check_chunk_table(v, error);
    r = extent_end(v, at->file.offset_bytes, &end, error);
    if (r == 0 && !v->is_output && array_n_elements(v->array) > 0 && end > file.size_bytes)
        return too_small(error, GAD_SHORT_READ, v->name, "the file", end, file.size_bytes);
    return r == 0 && v->is_output ? check_reserved(v, &file, end, error) : r;
}

static int check_provider(const struct visit *v, struct gad_error *error)
{
    const struct location *at = &v->array->at;
    const int *fds = v->frame->fds;
    struct inspected ring;
    uint64_t n_bytes = ring_size_bytes(at->provider.n_slots, at->provider.slot_bytes);
    if (n_bytes == 0) {
        error_set(error, GAD_LIMIT_EXCEEDED, v->name, "%s: a ring of %u slots of %llu bytes",
                  v->name, at->provider.n_slots, (unsigned long long)at->provider.slot_bytes);
        error_expected(error, "1 to %u slots of %u to %u bytes, a multiple of 4096", RING_MAX_SLOTS,
                       RING_MIN_SLOT_BYTES, RING_MAX_SLOT_BYTES);
        return GAD_LIMIT_EXCEEDED;
    }
    v->places->has_provider = true;
    int r = inspect_memfd(fds[at->provider.ring_fd_index], F_SEAL_SHRINK | F_SEAL_GROW, n_bytes,
                          true, GAD_BAD_DESCRIPTOR, v->name, &ring, error);
    if (r == 0 && ring.has_holes)
        r = error_set(error, GAD_BAD_DESCRIPTOR, v->name, "the ring's memory is not reserved");
    if (r == 0)
        r = inspect_eventfd(fds[at->provider.request_fd_index], v->name, error);
    if (r == 0)
        r = inspect_eventfd(fds[at->provider.done_fd_index], v->name, error);
    return r;
}

static int visit_array(const struct visit *v, struct gad_error *error)
{
    switch (v->array->at.kind) {
    case LOCATION_REGION: return check_region(v, error);
    case LOCATION_FILE: return check_file(v, error);
    case LOCATION_PROVIDER: return check_provider(v, error);
    case LOCATION_NONE:
    case LOCATION_INLINE: break;
    }
    return 0;
}

static int visit_outputs(struct visit *v, const struct job_request *request, struct places *ret,
                         struct gad_error *error)
{
    int r = 0;
    for (unsigned i = 0; i < request->n_outputs && r == 0; i++) {
        const struct request_output *output = &request->outputs[i];
        char unnamed[REQUEST_UNNAMED_SIZE];
        ret->outputs[i] = (struct overlap_identity){0};
        v->array = &output->to;
        v->name = request_output_name(output, i, unnamed);
        v->identity = &ret->outputs[i];
        if (output->has_to)
            r = visit_array(v, error);
    }
    return r;
}

/* Threads write to it, which must not wait for a client's own file system. A plan has none. */
static int check_journal(const struct visit *v, const struct job_request *request,
                         struct gad_error *error)
{
    struct inspected file;
    if (request->journal_fd_index >= v->frame->n_fds)
        return 0;
    return inspect_file(v->broker->mounts, v->frame->fds[request->journal_fd_index], false,
                        "journal", &file, error);
}

int places_check(const struct broker *broker, uid_t uid, const struct job_request *request,
                 const struct frame *frame, struct places *ret, struct gad_error *error)
{
    struct visit v = {.broker = broker, .uid = uid, .frame = frame, .places = ret};
    int r = 0;
    ret->n_regions = 0;
    ret->has_provider = false;
    for (unsigned i = 0; i < request->n_args && r == 0; i++) {
        const struct request_arg *arg = &request->args[i];
        ret->args[i] = (struct overlap_identity){0};
        v.array = &arg->array;
        v.name = arg->name;
        v.identity = &ret->args[i];
        if (!arg->is_scalar)
            r = visit_array(&v, error);
    }
    v.is_output = true;
    if (r == 0)
        r = visit_outputs(&v, request, ret, error);
    return r == 0 && request->has_journal ? check_journal(&v, request, error) : r;
}
