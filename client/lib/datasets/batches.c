/* The memory of batches, and batches as the caller has them.
 *
 * All are in one piece of shared memory: of the client's arena, so that jobs use them where they
 * are, or of a region without a client. Neither has a name: a process that is killed leaves
 * nothing.
 */
#include "client/array.h"
#include "client/lib/connection/client.h"
#include "client/lib/datasets/loader.h"
#include "client/lib/memory/memory.h"
#include "proto/util.h"

#include <string.h>

static int new_memory(struct gad_loader *loader, char **ret_memory, struct gad_error *error)
{
    const int64_t shape[] = {(int64_t)(loader->n_batches * loader->batch_bytes)};
    const struct gad_layout layout = {.dtype = GAD_UINT8, .ndim = 1, .shape = shape};
    struct gad_client *client =
        loader->transforms ? transforms_client(loader->transforms) : loader->dataset->client;
    struct array described;
    int r;
    if (client) {
        r = memory_describe(&layout, &described, error);
        if (r == 0)
            r = memory_new_array(client, &described, false, &loader->array, error);
        if (r == 0)
            *ret_memory = loader->array->data;
        return r;
    }
    r = region_new((uint64_t)shape[0], &loader->region, error);
    if (r == 0)
        *ret_memory = loader->region->map;
    return r;
}

static int init_batch(struct gad_loader *loader, struct gad_batch *batch, char *memory)
{
    batch->loader = loader;
    batch->memory = memory;
    batch->rows = malloc((loader->rank_rows + 1) * sizeof(*batch->rows));
    batch->shapes = calloc(loader->n_parts, sizeof(*batch->shapes));
    if (!batch->rows || !batch->shapes)
        return -ENOMEM;
    for (unsigned i = 0; i < loader->n_parts; i++)
        memcpy(batch->shapes[i], loader->parts[i].shape, sizeof(batch->shapes[i]));
    batches_give(loader, batch);
    return 0;
}

int batches_new(struct gad_loader *loader, struct gad_error *error)
{
    char *memory;
    loader->batches = calloc(loader->n_batches, sizeof(*loader->batches));
    int r = loader->batches ? new_memory(loader, &memory, error) : -ENOMEM;
    for (unsigned i = 0; i < loader->n_batches && r == 0; i++)
        r = init_batch(loader, &loader->batches[i], memory + i * loader->batch_bytes);
    return r;
}

void batches_free(struct gad_loader *loader)
{
    for (unsigned i = 0; loader->batches && i < loader->n_batches; i++) {
        free(loader->batches[i].rows);
        free(loader->batches[i].shapes);
    }
    free(loader->batches);
    if (loader->transforms && loader->process != getpid()) { /* the connection is the parent's */
        gad_forget(transforms_client(loader->transforms));
        return;
    }
    gad_array_release(loader->array);
    region_free(loader->region);
    transforms_free(loader->transforms);
}

const struct region *batches_region(const struct gad_loader *loader)
{
    return loader->array ? loader->array->region : loader->region;
}

struct gad_batch *batches_take(struct gad_loader *loader)
{
    struct gad_batch *batch = loader->free;
    if (!batch)
        return NULL;
    loader->free = batch->next;
    loader->n_free--;
    batch->next = NULL;
    batch->error.status = GAD_OK;
    return batch;
}

void batches_give(struct gad_loader *loader, struct gad_batch *batch)
{
    batch->next = loader->free;
    loader->free = batch;
    loader->n_free++;
}

char *batches_rows(const struct gad_batch *batch, unsigned part)
{
    return batch->memory + batch->loader->parts[part].offset_bytes;
}

/* The caller's ----------------------------------------------------------------------------------
 */

uint64_t gad_batch_index(const struct gad_batch *batch)
{
    return batch->k;
}

uint64_t gad_batch_epoch(const struct gad_batch *batch)
{
    return batch->epoch;
}

int64_t gad_batch_length(const struct gad_batch *batch)
{
    return batch->n_rows;
}

const int64_t *gad_batch_rows(const struct gad_batch *batch)
{
    return batch->rows;
}

void *gad_batch_data(const struct gad_batch *batch, unsigned part)
{
    const struct gad_loader *loader = batch->loader;
    return part < loader->n_parts ? batch->memory + loader->parts[part].result_offset_bytes : NULL;
}
