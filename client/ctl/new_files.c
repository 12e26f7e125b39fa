/* --chunks, --compress and their kin: how new files are stored. What they mean is the library's
 * (struct gad_storage); here they are read.
 */
#include "client/ctl/ctl.h"

#include <stdlib.h>
#include <string.h>

/* "100x100": sizes of 1 or more. */
static int read_sizes(const char *text, int64_t *ret_sizes, int *ret_n, struct argp_state *state)
{
    const char *at = text;
    int n = 0;
    for (;; at++) {
        char *end;
        long long size = strtoll(at, &end, 10);
        if (end == at || size < 1 || n == GAD_MAX_NDIM)
            return ctl_usage_error(state, "sizes are numbers joined by x, as 100x100, not '%s'",
                                   text);
        ret_sizes[n++] = size;
        at = end;
        if (*at == '\0')
            break;
        if (*at != 'x')
            return ctl_usage_error(state, "sizes are numbers joined by x, as 100x100, not '%s'",
                                   text);
    }
    *ret_n = n;
    return 0;
}

/* Once more: the shards in those. */
static int read_shards(const char *text, struct ctl_storage *storage, struct argp_state *state)
{
    struct gad_storage *asked = &storage->asked;
    int n, n_before = asked->n_shard_axes;
    if (asked->n_shard_levels == GAD_MAX_SHARD_LEVELS)
        return ctl_usage_error(state, "at most %d levels of shards", GAD_MAX_SHARD_LEVELS);
    int64_t *sizes = storage->shards + asked->n_shard_levels * (unsigned)n_before;
    int r = read_sizes(text, sizes, &n, state);
    if (r)
        return r;
    if (asked->n_shard_levels++ > 0 && n != n_before)
        return ctl_usage_error(state, "shards in shards have as many dimensions, not %d and %d",
                               n_before, n);
    asked->n_shard_axes = n;
    asked->shard_shape = storage->shards;
    return 0;
}

error_t ctl_parse_storage(int key, char *arg, struct ctl_storage *storage, struct argp_state *state)
{
    struct gad_storage *asked = &storage->asked;
    switch (key) {
    case CTL_OPTION_CHUNKS:
        asked->n_chunk_axes = GAD_CONTIGUOUS;
        if (strcmp(arg, "none") == 0)
            return 0;
        asked->chunk_shape = storage->chunks;
        return read_sizes(arg, storage->chunks, &asked->n_chunk_axes, state);
    case CTL_OPTION_SHARDS: return read_shards(arg, storage, state);
    case CTL_OPTION_COMPRESS: asked->compress = arg; return 0;
    case CTL_OPTION_SHUFFLE: asked->shuffle = true; return 0;
    case CTL_OPTION_FLETCHER32: asked->fletcher32 = true; return 0;
    case CTL_OPTION_SYNC: asked->sync = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}
