/* Loaders whose rows are copied by a process that may map their files.
 *
 * While all that is wanted is in memory there is nothing to be gained by reading much at a time:
 * few batches are made together, and few ahead, so that the same few are used again and again and
 * stay in the processor's caches.
 *
 * Called by loader.c, and by the maker.
 */
#include "client/lib/datasets/loader.h"
#include "client/lib/scans/row_copier.h"
#include "proto/util.h"

#include <stdio.h>
#include <unistd.h>

#define LEAST_PART_BYTES (UINT64_C(32) << 20) /* less is read before a process has started */
#define LEAST_ROW_BYTES  64u /* the time of a row is hardly that of its bytes any more */
#define MEMORY_SHARE     2   /* of the machine's: a file that takes more will not stay there */
#define TOGETHER_BYTES   (UINT64_C(8) << 20)

static bool is_copying(const struct gad_loader *loader)
{
    return loader->copier && row_copier_is_in_use(loader->copier);
}

static bool is_large(const struct row_source *source)
{
    return (uint64_t)source->n_rows * source->row_bytes >= LEAST_PART_BYTES;
}

static bool is_worth(const struct loader_part *part)
{
    const struct row_source *source = part->source;
    return part->kept == KEPT_NOT && source->unit_rows == 1 && !source->bring && is_large(source) &&
           row_copier_can_copy(source);
}

bool loader_may_copy(const struct row_source *source)
{
    uint64_t there = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return source->unit_rows == 1 && source->row_bytes >= LEAST_ROW_BYTES && is_large(source) &&
           row_copier_can_copy(source) &&
           (uint64_t)source->n_rows * source->row_bytes <= there / MEMORY_SHARE &&
           row_copier_is_in_memory(source);
}

/* Files may leave the memory, when others need it, and reading a window brings them back. */
void loader_review_plan(struct gad_loader *loader)
{
    if (!loader->needs_copier)
        return;
    if (loader->plan == PLAN_DIRECT && !is_copying(loader)) {
        loader->plan = PLAN_SCAN;
        snprintf(loader->note, sizeof(loader->note), "rows can not be copied from memory now");
    } else if (loader->plan == PLAN_SCAN && loader->to_make >= loader->filled.end &&
               row_copier_can_go_on(loader->copier)) {
        loader->plan = PLAN_DIRECT;
        loader->note[0] = '\0';
    }
}

static int add(struct gad_loader *loader, unsigned i, struct gad_error *error)
{
    struct loader_part *part = &loader->parts[i];
    const struct region *region = batches_region(loader);
    const struct copied_memory memory = {region->fd, region->map, region->size_bytes};
    if (!loader->copier)
        loader->copier = row_copier_new(&memory);
    if (!loader->copier)
        return -ENOMEM;
    int r = row_source_init(&part->own, part->source->array, loader->dataset->parts[i].name, error);
    if (r == 0 && row_copier_add(loader->copier, &part->own))
        part->source = &part->own;
    return r;
}

int loader_copy_rows(struct gad_loader *loader, struct gad_error *error)
{
    int r = 0;
    if (loader->plan != PLAN_DIRECT || loader->shuffle == ROW_SHUFFLE_NONE)
        return 0;
    for (unsigned i = 0; i < loader->n_parts && r == 0; i++)
        if (is_worth(&loader->parts[i]))
            r = add(loader, i, error);
    return r;
}

static uint64_t few(const struct gad_loader *loader)
{
    return max_u64(TOGETHER_BYTES / loader->batch_bytes, 1);
}

uint64_t loader_group(const struct gad_loader *loader)
{
    if (loader->plan == PLAN_SCAN)
        return 1;
    return is_copying(loader) ? min_u64(few(loader), loader->group) : loader->group;
}

uint64_t loader_most_ready(const struct gad_loader *loader)
{
    return is_copying(loader) ? max_u64(few(loader), loader->ahead) : UINT64_MAX;
}
