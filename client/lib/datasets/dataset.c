/* Datasets: arrays of one length, and what their files were when they were opened.
 *
 * The fingerprint is of what batches are, not of where rows come from: an epoch that began with one
 * format goes on with another. Files are marked by device, inode, size and time; that is compared
 * after rows were read, before anybody sees them. Arrays of many files, and stores, compare theirs
 * themselves (array.h: watch).
 */
#include "client/lib/datasets/dataset.h"
#include "client/lib/scans/shared_rows.h"
#include "client/array.h"
#include "client/lib/connection/client.h"
#include "client/meaning.h"
#include "proto/util.h"

#include <inttypes.h>
#include <string.h>

#define FNV_PRIME  UINT64_C(0x100000001b3)
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)

static void hash(uint8_t *fingerprint, const void *bytes, size_t n_bytes)
{
    uint64_t sums[2];
    memcpy(sums, fingerprint, sizeof(sums));
    for (size_t i = 0; i < n_bytes; i++)
        for (unsigned k = 0; k < 2; k++)
            sums[k] = (sums[k] ^ (((const uint8_t *)bytes)[i] + (k << 3))) * FNV_PRIME;
    memcpy(fingerprint, sums, sizeof(sums));
}

static void take_fingerprint(struct gad_dataset *dataset)
{
    const uint64_t offsets[2] = {FNV_OFFSET, ~FNV_OFFSET};
    memcpy(dataset->fingerprint, offsets, sizeof(offsets));
    for (unsigned i = 0; i < dataset->n_parts; i++) {
        const struct dataset_part *part = &dataset->parts[i];
        const struct gad_array_info *info = &part->source.array->info;
        const char *dtype = gad_dtype_name(info->dtype);
        hash(dataset->fingerprint, part->name, strlen(part->name) + 1);
        hash(dataset->fingerprint, dtype, strlen(dtype) + 1);
        if (meaning_unpacking(part->source.array))
            hash(dataset->fingerprint, "unpacked", sizeof("unpacked"));
        hash(dataset->fingerprint, info->shape, (size_t)info->ndim * sizeof(info->shape[0]));
    }
}

/* Files ---------------------------------------------------------------------------------------- */

static int mark_files(struct dataset_part *part, const struct gad_array *array,
                      struct gad_error *error)
{
    struct own_file *file = &part->file;
    struct stat st;
    if (array->info.path)
        file->path = realpath(array->info.path, NULL);
    file->is_marked = array->fd >= 0 ? fstat(array->fd, &st) == 0
                      : file->path   ? stat(file->path, &st) == 0
                                     : false;
    if (file->is_marked) {
        file_mark_of(&st, &file->mark);
        file->is_folder = S_ISDIR(st.st_mode);
    }
    if (file->path)
        file_sums_name(&part->sums, file->path);
    if (file->is_marked && !file->is_folder)
        file_sums_content(&part->sums, &file->mark);
    return row_source_watch(&part->source, part->name, &part->sums, error);
}

static int check_file(const struct dataset_part *part, struct gad_error *error)
{
    const struct own_file *file = &part->file;
    const struct file_mark *was = &file->mark;
    struct file_mark now;
    struct stat st;
    if (!file->is_marked)
        return 0;
    int r = file->path ? stat(file->path, &st) : fstat(part->source.array->fd, &st);
    if (r == 0)
        file_mark_of(&st, &now);
    if (r == 0 &&
        (file->is_folder ? file_mark_is_same_file(&now, was) : file_mark_is_same(&now, was)))
        return 0;
    error_set(error, GAD_DATASET_CHANGED, part->name, "%.200s was %s since it was opened",
              file->path ? file->path : part->name,
              r                                    ? "removed"
              : !file_mark_is_same_file(&now, was) ? "replaced"
              : now.size != was->size              ? "resized"
                                                   : "written to");
    error_expected(error, "%" PRIu64 " bytes of time %" PRId64 ".%09ld", (uint64_t)was->size,
                   (int64_t)was->written.tv_sec, was->written.tv_nsec);
    if (r)
        error_found(error, "no file");
    else
        error_found(error, "%" PRIu64 " bytes of time %" PRId64 ".%09ld", (uint64_t)now.size,
                    (int64_t)now.written.tv_sec, now.written.tv_nsec);
    return GAD_DATASET_CHANGED;
}

int dataset_check(struct gad_dataset *dataset, struct gad_error *error)
{
    int r = 0;
    for (unsigned i = 0; i < dataset->n_parts && r == 0; i++) {
        struct dataset_part *part = &dataset->parts[i];
        r = check_file(part, error);
        if (r == 0)
            r = row_source_verify(&part->source, part->name, error);
    }
    return r;
}

/* Datasets ------------------------------------------------------------------------------------- */

static int check_name(const struct gad_dataset *dataset, const char *name, struct gad_error *error)
{
    if (!name || !*name || strlen(name) >= sizeof(dataset->parts->name))
        return error_set(error, GAD_BAD_ARGUMENT, "parts",
                         "part %u has no name of 1 to 63 characters", dataset->n_parts);
    for (unsigned i = 0; i < dataset->n_parts; i++)
        if (strcmp(dataset->parts[i].name, name) == 0)
            return error_set(error, GAD_BAD_ARGUMENT, "parts", "two parts are named '%s'", name);
    return 0;
}

static int add_part(struct gad_dataset *dataset, const struct gad_dataset_part *wanted,
                    struct gad_error *error)
{
    struct dataset_part *part = &dataset->parts[dataset->n_parts];
    int r = check_name(dataset, wanted->name, error);
    if (r)
        return r;
    if (!wanted->array)
        return error_set(error, GAD_BAD_ARGUMENT, wanted->name, "the array of '%s' is NULL",
                         wanted->name);
    const struct meaning_packing *packing = meaning_unpacking(wanted->array);
    if (packing && !dataset->client) { /* that unpacks them */
        error_set(error, GAD_BAD_DTYPE, wanted->name, "'%s' is packed, by its attributes %s",
                  wanted->name, packing->names);
        error_expected(error, "an array that is opened as stored");
        error_found(error, "%s", packing->names);
        return GAD_BAD_DTYPE;
    }
    r = row_source_init(&part->source, wanted->array, wanted->name, error);
    if (r)
        return r;
    strcpy(part->name, wanted->name);
    dataset->n_parts++;
    r = mark_files(part, wanted->array, error);
    if (r)
        return r;
    if (dataset->n_parts == 1)
        dataset->n_rows = part->source.n_rows;
    if (part->source.n_rows == dataset->n_rows)
        return 0;
    error_set(error, GAD_BAD_SHAPE, part->name, "'%s' has another number of rows than '%s'",
              part->name, dataset->parts[0].name);
    error_expected(error, "%" PRId64 " rows", dataset->n_rows);
    error_found(error, "%" PRId64 " rows", part->source.n_rows);
    return GAD_BAD_SHAPE;
}

enum gad_status gad_dataset_new(struct gad_client *client, unsigned n_parts,
                                const struct gad_dataset_part *parts,
                                struct gad_dataset **ret_dataset, struct gad_error *error)
{
    if (!parts || !ret_dataset)
        return error_set(error, GAD_BAD_ARGUMENT, parts ? "ret_dataset" : "parts", "is NULL");
    if (n_parts == 0 || n_parts > GAD_MAX_PARTS)
        return error_set(error, GAD_BAD_ARGUMENT, "n_parts", "%u parts: 1 to %d are possible",
                         n_parts, GAD_MAX_PARTS);
    struct gad_dataset *dataset = calloc(1, sizeof(*dataset));
    if (!dataset)
        return client_status(-ENOMEM, error);
    dataset->n_refs = 1;
    dataset->client = client;
    pthread_mutex_init(&dataset->reading, NULL);
    dataset->parts = calloc(n_parts, sizeof(*dataset->parts));
    int r = dataset->parts ? 0 : -ENOMEM;
    for (unsigned i = 0; i < n_parts && r == 0; i++)
        r = add_part(dataset, &parts[i], error);
    if (r) {
        gad_dataset_free(dataset);
        return client_status(r, error);
    }
    take_fingerprint(dataset);
    *ret_dataset = dataset;
    return GAD_OK;
}

struct gad_dataset *dataset_ref(struct gad_dataset *dataset)
{
    dataset->n_refs++;
    return dataset;
}

void gad_dataset_free(struct gad_dataset *dataset)
{
    if (!dataset || --dataset->n_refs > 0)
        return;
    for (unsigned i = 0; i < dataset->n_parts; i++) {
        shared_rows_free(dataset->parts[i].shared);
        row_source_deinit(&dataset->parts[i].source);
        free(dataset->parts[i].file.path);
    }
    free(dataset->parts);
    pthread_mutex_destroy(&dataset->reading);
    free(dataset);
}

int64_t gad_dataset_length(const struct gad_dataset *dataset)
{
    return dataset ? dataset->n_rows : 0;
}

const uint8_t *gad_dataset_fingerprint(const struct gad_dataset *dataset)
{
    return dataset->fingerprint;
}
