/* What `--chunks`, `--compress` and their kin mean.
 *
 * A text such as "blosc:lz4:5" is a row of the table below: a codec, what may follow its name, and
 * how that becomes the values that HDF5's filter has. Other formats take the same pipeline; where
 * numcodecs frames the same bytes otherwise than HDF5's filter, the row names both. Before it, with
 * a comma, may be how a chunk's axes lie and what is done to its elements, behind it a checksum:
 * "transpose,delta,zstd,crc32c".
 *
 * Called by format.c.
 */
#include "client/formats/storage.h"
#include "client/formats/formats.h"
#include "proto/util.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TARGET_CHUNK_BYTES (INT64_C(1) << 20)
#define LEAST_SOURCE_BYTES (INT64_C(64) << 10) /* of chunks that are taken over */
#define MOST_SOURCE_BYTES  (INT64_C(16) << 20)
#define LEAST_GROWN_BYTES  4096 /* netCDF's own choice, for one axis */
#define LZF_FILTER_VERSION 4
#define LZF_VERSION        0x0105
#define BLOSC_VERSION      2
#define SZIP_OPTIONS       141 /* entropy coding, and the library's own flags */
#define SZIP_PIXELS        32
#define MAX_ELEMENT_STEPS  4

struct words {      /* of a text, apart */
    char name[16];  /* "blosc" */
    char inner[16]; /* "lz4"; "": none */
    bool has_level;
    int64_t level;
};

/* What is stored of. */
struct subject {
    int ndim;
    bool has_numcodecs; /* by the format */
    uint32_t item_bytes;
    uint64_t chunk_bytes, line_items;
};

static void gzip_values(const struct words *words, const struct subject *subject,
                        struct codec_step *step)
{
    step->n_values = 1;
    step->values[0] = words->has_level ? (uint32_t)words->level : 4;
}

static void bz2_values(const struct words *words, const struct subject *subject,
                       struct codec_step *step)
{
    step->n_values = 1;
    step->values[0] = words->has_level ? (uint32_t)words->level : 9;
}

static void lzma_values(const struct words *words, const struct subject *subject,
                        struct codec_step *step)
{
    step->n_values = 1;
    step->values[0] = words->has_level ? (uint32_t)words->level : 6;
}

static void zstd_values(const struct words *words, const struct subject *subject,
                        struct codec_step *step)
{
    step->n_values = 1;
    step->values[0] = words->has_level ? (uint32_t)words->level : 3;
}

static void lzf_values(const struct words *words, const struct subject *subject,
                       struct codec_step *step)
{
    step->n_values = 3;
    step->values[0] = LZF_FILTER_VERSION;
    step->values[1] = LZF_VERSION;
    step->values[2] = (uint32_t)subject->chunk_bytes;
}

static void lz4_values(const struct words *words, const struct subject *subject,
                       struct codec_step *step)
{
    step->n_values = 1;
    step->values[0] = 0;
}

static const char *const blosc_codecs[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};

static void blosc_values(const struct words *words, const struct subject *subject,
                         struct codec_step *step)
{
    const uint32_t values[] = {
        BLOSC_VERSION,
        BLOSC_VERSION,
        subject->item_bytes,
        (uint32_t)subject->chunk_bytes,
        words->has_level ? (uint32_t)words->level : 5,
        1, /* its own shuffle */
        1,
    };
    step->n_values = ARRAY_LENGTH(values);
    memcpy(step->values, values, sizeof(values));
    for (uint32_t i = 0; i < ARRAY_LENGTH(blosc_codecs); i++)
        if (strcmp(words->inner, blosc_codecs[i]) == 0)
            step->values[6] = i;
}

/* Blocks of 32 elements, or of as many as a chunk has, an even number. */
static void szip_values(const struct words *words, const struct subject *subject,
                        struct codec_step *step)
{
    uint64_t n = subject->chunk_bytes / subject->item_bytes;
    uint32_t pixels = n < SZIP_PIXELS ? (uint32_t)(n / 2 * 2) : SZIP_PIXELS;
    uint64_t line = subject->line_items < pixels ? pixels : subject->line_items;
    step->n_values = 4;
    step->values[0] = SZIP_OPTIONS;
    step->values[1] = pixels > 2 ? pixels : 2;
    step->values[2] = 8 * subject->item_bytes;
    step->values[3] = (uint32_t)(line > 4096 ? 4096 : line);
}

static void bitshuffle_values(const struct words *words, const struct subject *subject,
                              struct codec_step *step)
{
    const uint32_t values[] = {0, 3, subject->item_bytes, 0, 2, 0};
    step->n_values = 5;
    memcpy(step->values, values, sizeof(values));
    if (strcmp(words->inner, "zstd") == 0) {
        step->n_values = 6;
        step->values[4] = 3;
        step->values[5] = words->has_level ? (uint32_t)words->level : 3;
    }
}

static const char *const bitshuffle_codecs[] = {"lz4", "zstd"};

static const struct packer {
    const char *name, *filter, *numcodec; /* the codecs of HDF5 and npz, and of Zarr */
    int64_t least_level, most_level;      /* both 0: there is none */
    const char *const *inner;
    size_t n_inner;
    void (*values)(const struct words *words, const struct subject *subject,
                   struct codec_step *step);
} packers[] = {
    {"gzip", "deflate", "gzip", 0, 9, NULL, 0, gzip_values},
    {"zlib", "deflate", "deflate", 0, 9, NULL, 0, gzip_values},
    {"zstd", "zstd", "zstd", -7, 22, NULL, 0, zstd_values},
    {"bz2", "bz2", "bz2", 1, 9, NULL, 0, bz2_values},
    {"lzma", "lzma", "lzma", 0, 9, NULL, 0, lzma_values},
    {"lzf", "lzf", "lzf", 0, 0, NULL, 0, lzf_values},
    {"lz4", "lz4", "lz4-sized", 0, 0, NULL, 0, lz4_values},
    {"blosc", "blosc", "blosc", 0, 9, blosc_codecs, ARRAY_LENGTH(blosc_codecs), blosc_values},
    {"szip", "szip", "szip", 0, 0, NULL, 0, szip_values},
    {"bitshuffle", "bitshuffle", "bitshuffle", 1, 22, bitshuffle_codecs,
     ARRAY_LENGTH(bitshuffle_codecs), bitshuffle_values},
};

/* Texts ---------------------------------------------------------------------------------------- */

static int refuse_text(const char *text, const char *name, struct gad_error *error)
{
    error_set(error, GAD_BAD_ARGUMENT, name, "'%.60s' is no way to compress", text);
    error_expected(error, "none, gzip[:0-9], zlib, zstd, bz2, lzma, lzf, lz4, blosc[:CODEC], szip, "
                          "bitshuffle; delta, transpose, crc32c");
    error_found(error, "'%.60s'", text);
    return GAD_BAD_ARGUMENT;
}

static bool has_inner(const struct packer *packer, const char *word)
{
    for (size_t i = 0; i < packer->n_inner; i++)
        if (strcmp(packer->inner[i], word) == 0)
            return true;
    return false;
}

/* "name[:inner][:level]", n characters. */
static const struct packer *read_text(const char *text, size_t n_chars, struct words *ret)
{
    struct words words = {.has_level = false};
    size_t n_name = strcspn(text, ":,");
    const struct packer *packer = NULL;
    if (n_name == 0 || n_name >= sizeof(words.name))
        return NULL;
    memcpy(words.name, text, n_name);
    for (size_t i = 0; i < ARRAY_LENGTH(packers); i++)
        if (strcmp(packers[i].name, words.name) == 0)
            packer = &packers[i];
    for (const char *at = text + n_name; packer && at < text + n_chars;) {
        char word[16] = "", *end;
        size_t n = strcspn(++at, ":,");
        if (n == 0 || n >= sizeof(word))
            return NULL;
        memcpy(word, at, n);
        at += n;
        int64_t level = strtoll(word, &end, 10);
        if (*end == '\0' && !words.has_level && packer->least_level < packer->most_level) {
            words.has_level = true;
            words.level = level;
        } else if (!*words.inner && !words.has_level && has_inner(packer, word)) {
            memcpy(words.inner, word, sizeof(words.inner));
        } else {
            return NULL;
        }
    }
    if (words.has_level && packer &&
        (words.level < packer->least_level || words.level > packer->most_level))
        return NULL;
    *ret = words;
    return packer;
}

/* Chunks --------------------------------------------------------------------------------------- */

void storage_choose_chunks(enum dtype dtype, int ndim, const int64_t *shape, int64_t *ret_chunks)
{
    int64_t left = TARGET_CHUNK_BYTES / (int64_t)dtype_size(dtype); /* elements */
    for (int i = ndim - 1; i >= 0; i--) {
        int64_t size = shape[i] > 0 ? shape[i] : shape[i] == GAD_UNKNOWN_LENGTH ? INT64_MAX : 1;
        ret_chunks[i] = size < left ? size : left;
        left = left / ret_chunks[i];
        left = left > 0 ? left : 1;
    }
}

/* limits NULL: it does not. */
static bool storage_grows(int ndim, const struct axis_limits *limits)
{
    for (int i = 0; limits && i < ndim; i++)
        if (limits->is_unlimited[i])
            return true;
    return false;
}

static int64_t n_chunk_bytes(enum dtype dtype, int ndim, const int64_t *chunks)
{
    int64_t n_bytes = (int64_t)dtype_size(dtype);
    for (int i = 0; i < ndim; i++)
        if (mul_overflows_i64(n_bytes, chunks[i], &n_bytes))
            return INT64_MAX;
    return n_bytes;
}

void storage_choose_growing(enum dtype dtype, int ndim, const int64_t *shape,
                            const struct axis_limits *limits, int64_t *ret_chunks)
{
    int grown = 0;
    for (int i = ndim - 1; i >= 0; i--) {
        bool is_cut = !limits->is_unlimited[i] && shape[i] < limits->chunks[i] && shape[i] > 0;
        ret_chunks[i] = is_cut ? shape[i] : limits->chunks[i];
        grown = limits->is_unlimited[i] ? i : grown;
    }
    int64_t n_bytes = n_chunk_bytes(dtype, ndim, ret_chunks);
    if (n_bytes >= LEAST_SOURCE_BYTES && n_bytes <= MOST_SOURCE_BYTES)
        return;
    storage_choose_chunks(dtype, ndim, shape, ret_chunks);
    n_bytes = n_chunk_bytes(dtype, ndim, ret_chunks);
    if (n_bytes < LEAST_GROWN_BYTES)
        ret_chunks[grown] = LEAST_GROWN_BYTES / (n_bytes / ret_chunks[grown]);
}

static int read_shape(int n_axes, const int64_t *sizes, const char *what, int ndim,
                      const char *name, int64_t *ret_sizes, struct gad_error *error)
{
    bool is_right = n_axes == ndim;
    for (int i = 0; is_right && i < ndim; i++) {
        ret_sizes[i] = sizes[i];
        is_right = sizes[i] > 0;
    }
    if (is_right)
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, name, "the %s do not fit an array of %d dimensions", what,
              ndim);
    error_expected(error, "%d sizes of 1 or more", ndim);
    error_found(error, "%d sizes%s", n_axes, n_axes == ndim ? ", not all of them above 0" : "");
    return GAD_BAD_ARGUMENT;
}

/* From the innermost level outwards. */
static int read_shards(const struct gad_storage *asked, int ndim, const char *name,
                       struct storage *storage, struct gad_error *error)
{
    unsigned n = asked->n_shard_levels > 0 ? asked->n_shard_levels : 1;
    const int64_t *inner = storage->chunk_shape;
    if (n > GAD_MAX_SHARD_LEVELS) {
        error_set(error, GAD_BAD_ARGUMENT, name, "shards in shards in shards in shards");
        error_expected(error, "at most %d levels", GAD_MAX_SHARD_LEVELS);
        error_found(error, "%u levels", n);
        return GAD_BAD_ARGUMENT;
    }
    storage->n_shard_levels = n;
    while (n-- > 0) {
        int64_t *sizes = storage->shard_shapes[n];
        int r = read_shape(asked->n_shard_axes, asked->shard_shape + n * (unsigned)ndim, "shards",
                           ndim, name, sizes, error);
        for (int i = 0; i < ndim && r == 0; i++) {
            if (sizes[i] % inner[i] == 0)
                continue;
            error_set(error, GAD_BAD_ARGUMENT, name, "a shard is not of whole %s along axis %d",
                      inner == storage->chunk_shape ? "chunks" : "shards", i);
            error_expected(error, "a multiple of %" PRId64, inner[i]);
            error_found(error, "%" PRId64, sizes[i]);
            r = GAD_BAD_ARGUMENT;
        }
        if (r)
            return r;
        inner = sizes;
    }
    return 0;
}

static int read_shapes(const struct gad_storage *asked, enum dtype dtype, int ndim,
                       const int64_t *shape, const struct axis_limits *limits, const char *name,
                       struct storage *storage, struct gad_error *error)
{
    int r = 0;
    if (asked->n_chunk_axes > 0)
        r = read_shape(asked->n_chunk_axes, asked->chunk_shape, "chunks", ndim, name,
                       storage->chunk_shape, error);
    else if (storage_grows(ndim, limits))
        storage_choose_growing(dtype, ndim, shape, limits, storage->chunk_shape);
    else
        storage_choose_chunks(dtype, ndim, shape, storage->chunk_shape);
    for (int i = 0; i < ndim && asked->n_chunk_axes > 0; i++)
        if (shape[i] > 0 && storage->chunk_shape[i] > shape[i] &&
            !(limits && limits->is_unlimited[i]))
            storage->chunk_shape[i] = shape[i];
    return r || asked->n_shard_axes == 0 ? r : read_shards(asked, ndim, name, storage, error);
}

static void add_step(struct codec_pipeline *pipeline, const char *codec, uint32_t value,
                     unsigned n_values)
{
    struct codec_step *step = &pipeline->steps[pipeline->n_steps++];
    step->codec = codec_of_name(codec);
    step->n_values = n_values;
    step->values[0] = value;
    step->is_optional = true;
}

static bool is_word(const char *at, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(at, word, n) == 0;
}

/* "fixedscaleoffset:OFFSET:SCALE:DTYPE", n characters: numcodecs' parameters in their order. */
static bool read_scaling(const char *text, size_t n, struct codec_step *step)
{
    char *end;
    double numbers[2];
    const char *at = text + strlen("fixedscaleoffset");
    for (int i = 0; i < 2; i++) {
        if (*at != ':')
            return false;
        numbers[i] = strtod(at + 1, &end);
        if (end == at + 1 || end > text + n || !isfinite(numbers[i]))
            return false;
        at = end;
    }
    step->offset = numbers[0];
    step->scale = numbers[1];
    bool is_swapped = false;
    return *at == ':' && step->scale != 0 &&
           dtype_from_typestr(at + 1, (size_t)(text + n - at - 1), &step->stored, &is_swapped,
                              NULL) == 0 &&
           !is_swapped && step->stored != DTYPE_BOOL;
}

/* "transpose", or "transpose:AXIS:AXIS:..." with each axis once, n characters. */
static bool read_order(const char *text, size_t n, int ndim, struct storage *storage)
{
    const char *at = text + strlen("transpose");
    uint64_t seen = 0;
    int n_axes = 0;
    for (; at < text + n && n_axes < ndim; n_axes++) {
        char *end;
        long axis = strtol(at + 1, &end, 10);
        if (*at != ':' || end == at + 1 || axis < 0 || axis >= ndim || seen >> axis & 1)
            return false;
        seen |= UINT64_C(1) << axis;
        storage->order[n_axes] = (int)axis;
        at = end;
    }
    for (int i = 0; n_axes == 0 && i < ndim; i++)
        storage->order[i] = ndim - 1 - i;
    storage->is_transposed = true;
    return at == text + n && (n_axes == 0 || n_axes == ndim);
}

/* What is done to elements, up to the comma before what packs them. Returns that; NULL: a text that
 * is not understood. */
static const char *read_element_steps(const char *text, enum dtype dtype, struct subject *subject,
                                      struct storage *storage)
{
    struct codec_pipeline *pipeline = &storage->pipeline;
    for (;;) {
        size_t n = strcspn(text, ","), n_name = strcspn(text, ":,");
        if (is_word(text, n_name, "transpose") && !storage->is_transposed &&
            pipeline->n_steps == 0) {
            if (!read_order(text, n, subject->ndim, storage))
                return NULL;
            if (text[n] == '\0')
                return "none";
            text += n + 1;
            continue;
        }
        bool is_delta = is_word(text, n, "delta");
        if (!is_delta && !is_word(text, n_name, "fixedscaleoffset"))
            return text;
        struct codec_step step = {.n_values = 1, .dtype = dtype, .stored = dtype};
        step.codec = codec_of_name(is_delta ? "delta" : "fixedscaleoffset");
        if (dtype == DTYPE_BOOL || pipeline->n_steps == MAX_ELEMENT_STEPS ||
            (!is_delta && !read_scaling(text, n, &step)))
            return NULL;
        pipeline->steps[pipeline->n_steps++] = step;
        uint64_t n_elements = subject->chunk_bytes / subject->item_bytes;
        dtype = step.stored;
        subject->item_bytes = (uint32_t)dtype_size(dtype);
        subject->chunk_bytes = n_elements * subject->item_bytes;
        if (text[n] == '\0')
            return "none";
        text += n + 1;
    }
}

/* Where numcodecs has them if nothing is said. */
static const struct checksum {
    const char *name;
    bool is_before;
} checksums[] = {{"crc32c", false}, {"crc32", true}, {"adler32", true}};

static const struct checksum *find_checksum(const char *text)
{
    for (size_t i = 0; i < ARRAY_LENGTH(checksums); i++)
        if (strcmp(text, checksums[i].name) == 0)
            return &checksums[i];
    return NULL;
}

static int read_pipeline(const struct gad_storage *asked, enum dtype dtype, struct subject *subject,
                         const char *name, struct storage *storage, struct gad_error *error)
{
    struct codec_pipeline *pipeline = &storage->pipeline;
    struct words words;
    const struct packer *packer = NULL;
    const char *text = asked->compress ? asked->compress : "none";
    text = read_element_steps(text, dtype, subject, storage);
    size_t n = text ? strcspn(text, ",") : 0;
    const struct checksum *sum = text ? find_checksum(text + (text[n] ? n + 1 : 0)) : NULL;
    bool has_packer = text && !is_word(text, n, "none") && !(sum && !text[n]);
    if (has_packer)
        packer = read_text(text, n, &words);
    if (!text || (has_packer && !packer) || (text[n] && !sum))
        return refuse_text(asked->compress, name, error);
    if (asked->shuffle && subject->item_bytes > 1)
        add_step(pipeline, "shuffle", subject->item_bytes, 1);
    if (packer) {
        add_step(pipeline, subject->has_numcodecs ? packer->numcodec : packer->filter, 0, 0);
        packer->values(&words, subject, &pipeline->steps[pipeline->n_steps - 1]);
    }
    if (sum)
        add_step(pipeline, sum->name, sum->is_before, 1);
    if (asked->fletcher32)
        add_step(pipeline, "fletcher32", 0, 0);
    if (sum || asked->fletcher32)
        pipeline->steps[pipeline->n_steps - 1].is_optional = false;
    return 0;
}

int format_check_unstored(const struct gad_storage *storage, const char *name,
                          struct gad_error *error)
{
    if (!storage ||
        (storage->n_chunk_axes == 0 && storage->n_shard_axes == 0 && !storage->compress &&
         !storage->shuffle && !storage->fletcher32 && !storage->sync))
        return 0;
    error_set(error, GAD_BAD_ARGUMENT, name,
              "chunks, compression and sync are of new files, and this result goes into none");
    error_expected(error, "a path of a new file, or nothing about its storage");
    error_found(error, "an array that exists, or no destination");
    return GAD_BAD_ARGUMENT;
}

/* As the user has said, in one piece: nothing else can be said of it then. */
static int read_contiguous(const struct gad_storage *asked, const struct storage *storage,
                           const char *name, struct storage *ret_storage, struct gad_error *error)
{
    if (storage->has_chunks) {
        error_set(error, GAD_BAD_ARGUMENT, name, "without chunks nothing can be packed or sharded");
        error_expected(error, "chunks, or neither compression nor shards");
        error_found(error, "no chunks, and %s",
                    asked->n_shard_axes > 0 ? "shards" : "something that packs them");
        return GAD_BAD_ARGUMENT;
    }
    *ret_storage = *storage;
    ret_storage->is_contiguous = true;
    return 0;
}

int storage_read(const struct gad_storage *asked, enum dtype dtype, int ndim, const int64_t *shape,
                 const struct axis_limits *limits, bool has_numcodecs, const char *name,
                 struct storage *ret_storage, struct gad_error *error)
{
    struct storage storage = {.has_chunks = false};
    struct subject subject = {
        .ndim = ndim,
        .has_numcodecs = has_numcodecs,
        .item_bytes = (uint32_t)dtype_size(dtype),
    };
    static const struct gad_storage nothing = {.n_chunk_axes = 0};
    asked = asked ? asked : &nothing;
    *ret_storage = storage;
    storage.sync = asked->sync;
    storage.says_packing = asked->compress || asked->shuffle || asked->fletcher32;
    bool is_packed = (asked->compress && strcmp(asked->compress, "none") != 0) || asked->shuffle ||
                     asked->fletcher32;
    bool is_contiguous = asked->n_chunk_axes == GAD_CONTIGUOUS;
    storage.has_chunks =
        (asked->n_chunk_axes != 0 && !is_contiguous) || asked->n_shard_axes > 0 || is_packed;
    if (is_contiguous)
        return read_contiguous(asked, &storage, name, ret_storage, error);
    storage.has_chunks = storage.has_chunks || storage_grows(ndim, limits);
    if (!storage.has_chunks) {
        *ret_storage = storage;
        return 0;
    }
    if (ndim == 0) {
        error_set(error, GAD_BAD_ARGUMENT, name, "a single element has no chunks");
        error_expected(error, "an array, or neither chunks nor compression");
        error_found(error, "an array without dimensions");
        return GAD_BAD_ARGUMENT;
    }
    int r = read_shapes(asked, dtype, ndim, shape, limits, name, &storage, error);
    if (r)
        return r;
    subject.chunk_bytes = subject.item_bytes;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(subject.chunk_bytes, (uint64_t)storage.chunk_shape[i],
                                   &subject.chunk_bytes))
            return error_set(error, GAD_BAD_ARGUMENT, name, "a chunk has more than 2^64 bytes");
    subject.line_items = (uint64_t)storage.chunk_shape[ndim - 1];
    r = read_pipeline(asked, dtype, &subject, name, &storage, error);
    if (r == 0)
        *ret_storage = storage;
    return r;
}
