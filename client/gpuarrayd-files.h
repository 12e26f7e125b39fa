/** gpuarrayd: what is in a file, and how new ones are stored. Included by gpuarrayd.h.
 *
 * No daemon is asked: files are read by the library, with the rights of the calling user. The
 * library alone makes the structures that it lists, and later versions may have more members at
 * their ends: take them by pointer, do not copy them.
 */
#pragma once

#include "gpuarrayd.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GAD_MAX_SHARD_LEVELS 3

#define GAD_CONTIGUOUS (-2) /**< in the place of n_chunk_axes: no chunks */

/** How a new array is stored in its file. All zero: as the format does by itself. */
struct gad_storage {
    int n_chunk_axes;           /**< 0: chunks as `compress` and the format need them, and where
                                     an axis has no limit (HDF5); -1: chunks, of sizes that the
                                     library chooses; GAD_CONTIGUOUS: all elements in one piece,
                                     also where an axis of the source has no limit: the new one
                                     has */
    const int64_t *chunk_shape; /**< n_chunk_axes sizes, each 1 or more; as many as the array has */
    int n_shard_axes;           /**< Zarr: as for chunks; 0: no shards */
    unsigned n_shard_levels;    /**< of shards in shards, up to GAD_MAX_SHARD_LEVELS; 0: as 1 */
    const int64_t *shard_shape; /**< of each level, from the file inwards, n_shard_axes sizes:
                                     multiples of the next level's, and in the end of chunk_shape */
    /** NULL or "none", or what chunks are packed with and how hard: "gzip" "gzip:1" to "gzip:9",
     * "zlib:6", "zstd:3", "lzf", "lz4", "blosc", "blosc:lz4:5" (also blosclz lz4hc zlib zstd),
     * "bz2:9", "lzma:6", "szip", "bitshuffle". HDF5 and Zarr have not all of the same; npz has
     * "gzip" alone, without chunks. Zarr: before it, with a comma, how the axes of a chunk lie:
     * "transpose" (the last one slowest) or "transpose:1:0:2"; and what is done to the elements:
     * "delta,zstd:3", or "fixedscaleoffset:OFFSET:SCALE:DTYPE,zstd", which keeps
     * (x - OFFSET) * SCALE, rounded, as "i2" for example, and the end of its range for what that
     * has not. Behind it a checksum, "crc32c", "crc32" or "adler32": "transpose,delta,zstd,crc32c".
     */
    const char *compress;
    bool shuffle;    /**< bytes of items are sorted by their place first, which packs better */
    bool fletcher32; /**< HDF5: with a checksum of each chunk */
    bool sync;       /**< on the disk, with its name, before the job says done */
};

/** A format of files, as this library has it. */
struct gad_known_format {
    const char *name;       /**< as in gad_array_info: "hdf5" */
    const char *extensions; /**< a blank between two: ".h5 .hdf5" */
    const char *written;    /**< how a spec is written: "FILE.h5:/DATASET" */
    bool has_chunks;        /**< new arrays may be stored in chunks, packed (struct gad_storage) */
    bool has_shards;        /**< and chunks in shards, and shards in shards */
};

/** A codec that packs chunks, or a filter of HDF5 that this library does not decode. */
struct gad_known_codec {
    const char *name;      /**< "deflate" */
    uint32_t hdf5_id;      /**< in HDF5's registry of filters; 0: not there */
    const char *zarr_name; /**< in Zarr's metadata; NULL: not there */
    const char *package;   /**< what brings it; NULL: nothing but this library, or nobody knows */
    bool can_read, can_write;
};

/** The formats, one after the other.
 * i: from 0 on.
 * ret_format: gets the library's texts.
 * Returns false behind the last. */
bool gad_format_at(size_t i, struct gad_known_format *ret_format);

/** The codecs, those that are not here behind the others.
 * i: from 0 on.
 * ret_codec: gets the library's texts.
 * Returns false behind the last. */
bool gad_codec_at(size_t i, struct gad_known_codec *ret_codec);

/** A named note of a file, a group or an array, as HDF5, netCDF and Zarr have them. One that is of
 * another type than those below, damaged or very long (HDF5: over 1024 values or 1 MiB, or behind
 * 8 MiB of others) is there by its name alone. */
struct gad_attribute {
    const char *name;
    const char *text; /**< of one that is a text; NULL: numbers */
    size_t n_values;  /**< 0 where `text` is NULL: of a type that is not shown */
    const struct gad_scalar *values;
    bool is_dtype_known;
    enum gad_dtype dtype; /**< of numbers, where is_dtype_known: as the file has them */
    size_t n_texts;       /**< of one that is several texts; then `text` is NULL and n_values 0 */
    const char *const *texts;
};

enum gad_listed_kind {
    GAD_LISTED_ARRAY,
    GAD_LISTED_GROUP,
    GAD_LISTED_OTHER, /**< a named type, a link that leads nowhere, what cannot be read */
};

/** One thing in a file. */
struct gad_listed {
    enum gad_listed_kind kind;
    const char *name; /**< as a spec has it behind `FILE:`; of the file's root "/" */
    const char *type; /**< of an array a dtype's name, or what its elements are, as "a string of
                           8 bytes"; of a group NULL, or why what is in it is not listed, as "a soft
                           link to '/x'"; of others what they are */
    /* Of arrays: */
    bool is_served;                /**< whether gad_array_open() takes it */
    int ndim;                      /**< may be beyond GAD_MAX_NDIM: then it is not served */
    const int64_t *shape;          /**< ndim sizes; NULL: none is known */
    const int64_t *max_shape;      /**< how long each axis may grow, GAD_UNKNOWN_LENGTH: without a
                                        limit; NULL: none grows */
    const int64_t *chunk_shape;    /**< ndim sizes; NULL: it has no chunks */
    const char *const *dimensions; /**< names of the axes, each may be NULL; NULL: none has one */
    const char *filters; /**< in the order in which they were applied: "shuffle, deflate 4",
                              "" for none */
    /* Of all: */
    size_t n_attributes;
    const struct gad_attribute *attributes;
};

/** How a list goes on. */
enum gad_list_step {
    GAD_LIST_ON = 0,
    GAD_LIST_END,
    GAD_LIST_PAST, /**< without what is in this group */
};

/** Called for each thing, in the file's order, groups before what is in them. It may open arrays of
 * the file, which is open to be read meanwhile.
 * userdata: as given to gad_list().
 * entry: what is there; valid, with all that it points to, until the function returns.
 * Returns a gad_list_step; every other number ends the list. */
typedef int gad_list_function(void *userdata, const struct gad_listed *entry);

/** Lists what is in a file: groups, arrays, their shapes, dtypes and attributes; no elements are
 * read. What is damaged is listed as far as it can be read.
 * spec: a file; `FILE:/group` for that group and what is in it alone, `FILE:/array` for that array.
 * What is selected behind the name of an array in a file makes no difference.
 * function: called for each thing; not NULL.
 * userdata: handed to it; may be NULL.
 * Returns GAD_OK also where `function` has ended the list; GAD_NOT_FOUND, GAD_PERMISSION, GAD_BUSY,
 * GAD_BAD_FORMAT, GAD_SHORT_READ, GAD_NO_MEMORY, and GAD_BAD_ARGUMENT for a spec that cannot be
 * read. */
enum gad_status gad_list(const char *spec, gad_list_function *function, void *userdata,
                         struct gad_error *error);

#ifdef __cplusplus
}
#endif
