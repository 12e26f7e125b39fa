/* Shards of an array: files open for a while, with their indices. */
#pragma once

#include "client/formats/chunked/chunk_source.h"
#include "client/formats/zarr/zarr_meta.h"

struct zarr_shards;
struct zarr_index; /* of one shard, kept while somebody uses it */

/* meta, which has shards, and dir_fd stay the caller's, and valid. NULL: no memory. */
struct zarr_shards *zarr_shards_new(const struct zarr_meta *meta, int dir_fd);
/* NULL allowed; returns NULL. */
struct zarr_shards *zarr_shards_free(struct zarr_shards *shards);

/* Where a chunk is stored. */
struct zarr_part {
    bool is_absent;
    int fd; /* until it is released */
    uint64_t offset_bytes, n_bytes;
    struct zarr_index *index;
};
/* place: an element of the innermost chunk. Any thread. 0 or a positive errno: EBADMSG: an index is
 * damaged, or leads out of its shard. ret_reason: what is wrong, where that errno says too little.
 */
int zarr_shards_find(struct zarr_shards *shards, const int64_t *place, struct zarr_part *ret_part,
                     char ret_reason[CHUNK_REASON_BYTES]);
void zarr_shards_release(struct zarr_shards *shards, struct zarr_part *part);
