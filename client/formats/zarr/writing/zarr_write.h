/* Metadata of what is written. */
#pragma once

#include "client/carried.h"
#include "client/formats/storage.h"
#include "client/formats/zarr/zarr_meta.h"

/* What a new array is to be: chunks, shards and codecs as the user has said, else as zarr-python
 * does: chunks of about 1 MiB, zstd. bad-argument: a codec that Zarr has not. */
int zarr_meta_make(const struct storage *storage, enum dtype dtype, int ndim, const int64_t *shape,
                   int version, const char *name, struct zarr_meta *ret_meta,
                   struct gad_error *error) GAD_MUST_CHECK;

/* Of an array: .zarray, or zarr.json with attributes and names of axes. carried: may be NULL. NULL:
 * no memory. */
struct json_object *zarr_array_json(const struct zarr_meta *meta, const struct carried *carried);
/* .zattrs of an array of version 2, or of a group: carried NULL. */
struct json_object *zarr_attributes_json(const struct zarr_meta *meta,
                                         const struct carried *carried);
/* .zgroup, or zarr.json of a group. */
struct json_object *zarr_group_json(int version);

/* As a file of the folder, which must not be there. 0 or -errno. */
int zarr_json_write(int dir_fd, const char *file, struct json_object *object) GAD_MUST_CHECK;
