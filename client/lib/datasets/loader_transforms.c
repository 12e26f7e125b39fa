/* A loader's transforms: where their results are in a batch, and when they are run.
 *
 * A batch's memory has all parts as they are read, then the results that cannot take a part's
 * place. It is made with the transforms' client, whose jobs work in it.
 */
#include "client/lib/datasets/loader.h"
#include "client/meaning.h"
#include "proto/request.h"
#include "proto/util.h"

#include <string.h>

#define BATCH_ALIGNMENT 64u

static uint64_t result_bytes(const struct transforms_result *result)
{
    uint64_t n_bytes = gad_dtype_size(result->dtype);
    for (int i = 0; i < result->ndim; i++)
        if (__builtin_mul_overflow(n_bytes, (uint64_t)result->shape[i], &n_bytes))
            return UINT64_MAX;
    return n_bytes;
}

/* What the caller gets of a part. */
static int lay_result(struct gad_loader *loader, unsigned i, struct gad_error *error)
{
    const struct transforms_result *result = transforms_result(loader->transforms, i);
    struct loader_part *part = &loader->parts[i];
    uint64_t n_bytes = result_bytes(result);
    part->layout = (struct gad_layout){.dtype = result->dtype, .ndim = result->ndim};
    memcpy(part->shape, result->shape, sizeof(part->shape));
    if (!result->is_apart)
        return 0;
    if (n_bytes > loader->memory_bytes) {
        error_set(error, GAD_BAD_ARGUMENT, "memory_bytes",
                  "the memory is less than a batch of what "
                  "'%s' becomes",
                  loader->dataset->parts[i].name);
        error_expected(error, "%llu bytes", (unsigned long long)n_bytes);
        error_found(error, "%llu bytes", (unsigned long long)loader->memory_bytes);
        return GAD_BAD_ARGUMENT;
    }
    part->result_offset_bytes = loader->batch_bytes;
    loader->batch_bytes += (size_t)round_up_u64(n_bytes, BATCH_ALIGNMENT);
    return 0;
}

static const struct gad_array *packed_part(const struct gad_loader *loader, unsigned i)
{
    const struct gad_array *array = loader->dataset->parts[i].source.array;
    return meaning_unpacking(array) ? array : NULL;
}

/* A packed part that has no transform becomes what it stands for: itself, to an expression. */
static unsigned add_unpacking(const struct gad_loader *loader,
                              const struct gad_loader_options *options, struct gad_transform *texts)
{
    unsigned n = options->n_transforms;
    for (unsigned k = 0; k < n; k++)
        texts[k] = options->transforms[k];
    for (unsigned i = 0; i < loader->n_parts; i++) {
        const char *name = loader->dataset->parts[i].name;
        bool has_own = false;
        for (unsigned k = 0; k < options->n_transforms; k++)
            has_own |= texts[k].part && strcmp(texts[k].part, name) == 0;
        if (packed_part(loader, i) && !has_own)
            texts[n++] = (struct gad_transform){name, name};
    }
    return n;
}

static int make(struct gad_loader *loader, const struct gad_loader_options *options,
                struct gad_error *error)
{
    struct transforms_part parts[GAD_MAX_PARTS];
    uint64_t size = (uint64_t)loader->batch_size, last = (uint64_t)loader->n_rows % size;
    for (unsigned i = 0; i < loader->n_parts; i++)
        parts[i] = (struct transforms_part){
            loader->dataset->parts[i].name, loader->parts[i].layout.dtype,
            loader->parts[i].layout.ndim, loader->parts[i].shape, packed_part(loader, i)};
    struct gad_transform texts[REQUEST_MAX_OUTPUTS + GAD_MAX_PARTS];
    if (options->n_transforms > REQUEST_MAX_OUTPUTS)
        return error_set(error, GAD_LIMIT_EXCEEDED, "transforms", "more than %d transforms",
                         REQUEST_MAX_OUTPUTS);
    const struct transforms_options wanted = {
        .n_parts = loader->n_parts,
        .n_texts = add_unpacking(loader, options, texts),
        .n_args = options->n_args,
        .parts = parts,
        .texts = texts,
        .args = options->args,
        .last_rows = loader->drop_last ? 0 : (int64_t)(last / loader->world),
        .is_shared = loader->world > 1,
        .engine = options->engine,
    };
    return transforms_new(loader->dataset->client, &wanted, &loader->transforms, error);
}

int loader_add_transforms(struct gad_loader *loader, const struct gad_loader_options *options,
                          struct gad_error *error)
{
    for (unsigned i = 0; i < loader->n_parts; i++) {
        struct loader_part *part = &loader->parts[i];
        memcpy(part->shape, loader->dataset->parts[i].source.array->info.shape,
               sizeof(part->shape));
        part->shape[0] = (int64_t)max_u64(loader->rank_rows, 1);
        part->result_offset_bytes = part->offset_bytes;
    }
    bool has_packed = false;
    for (unsigned i = 0; i < loader->n_parts; i++)
        has_packed |= packed_part(loader, i) != NULL;
    if (options->n_transforms == 0 && !has_packed)
        return 0;
    if ((options->n_transforms > 0 && !options->transforms) || !loader->dataset->client ||
        (options->n_args > 0 && !options->args))
        return error_set(error, GAD_BAD_ARGUMENT, "transforms",
                         "transforms need a dataset with a client, texts and arguments");
    int r = make(loader, options, error);
    for (unsigned i = 0; i < loader->n_parts && r == 0; i++)
        r = lay_result(loader, i, error);
    return r;
}

void loader_transform(struct gad_loader *loader, const struct epoch_order *order,
                      struct gad_batch *batch)
{
    size_t from[GAD_MAX_PARTS], to[GAD_MAX_PARTS];
    size_t start = (size_t)(batch->memory - (char *)loader->array->data);
    for (unsigned i = 0; i < loader->n_parts; i++) {
        from[i] = start + loader->parts[i].offset_bytes;
        to[i] = start + loader->parts[i].result_offset_bytes;
    }
    const struct transforms_batch wanted = {
        .n_rows = batch->n_rows,
        .rows = batch->rows,
        .seed = order->seed,
        .epoch = order->epoch,
        .array = loader->array,
        .from = from,
        .to = to,
    };
    struct gad_error error = {0};
    int r = transforms_run(loader->transforms, &wanted, &error);
    if (r < 0)
        error_from_errno(&error, -r, NULL, "a transform");
    if (r)
        batch->error = error;
}
