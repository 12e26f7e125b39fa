/* Zarr stores: metadata that is not what it should be, names, lists, and damaged shards. What the
 * codecs do is compared with zarr-python by tests/integration/python/files/test_zarr.py. */
#include "support.h"

#include "client/codecs/crc32c.h"
#include "client/gpuarrayd-files.h"
#include "proto/util.h"

#include <fcntl.h>

TestSuite(zarr, .init = folder_make, .fini = folder_remove);

/* The folders on the way are made. */
static void put(const char *path, const void *bytes, size_t n_bytes)
{
    char folder[256];
    snprintf(folder, sizeof(folder), "%s", path);
    for (char *slash = strchr(folder, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        cr_assert(mkdir(folder, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    file_put(path, bytes, n_bytes);
}

static void put_text(const char *path, const char *text)
{
    put(path, text, strlen(text));
}

static void says(const char *text)
{
    cr_assert(strstr(last_error.message, text) != NULL, "'%s' is not in: %s", text,
              last_error.message);
}

#define V2(members) "{\"zarr_format\": 2, " members "}"
#define V2_REST     "\"order\": \"C\", \"fill_value\": 0, \"filters\": null, \"compressor\": null"
#define V2_ALL      "\"shape\": [4, 6], \"chunks\": [2, 6], \"dtype\": \"<i2\", "
#define V3(members) "{\"zarr_format\": 3, \"node_type\": \"array\", " members "}"
#define V3_GRID(shape, chunks)                                                                     \
    "\"shape\": " shape ", \"chunk_grid\": {\"name\": \"regular\", \"configuration\": "            \
    "{\"chunk_shape\": " chunks "}}, \"chunk_key_encoding\": {\"name\": \"default\"}, "            \
    "\"fill_value\": 7, "
#define V3_TYPE  "\"data_type\": \"int16\", "
#define V3_ALL   V3_GRID("[4, 6]", "[2, 6]") V3_TYPE
#define V3_BYTES "{\"name\": \"bytes\", \"configuration\": {\"endian\": \"little\"}}"
#define V3_SHARD(chunks, codecs, index)                                                            \
    "{\"name\": \"sharding_indexed\", \"configuration\": {\"chunk_shape\": " chunks                \
    ", \"codecs\": [" codecs "], \"index_codecs\": [" index "]}}"
#define V3_CRC V3_BYTES ", {\"name\": \"crc32c\"}"

/* What must be refused: the metadata, the word, and something that the message says. */
static const struct refused {
    const char *metadata, *word, *says;
} refused[] = {
    {"", "bad-format", "no JSON"},
    {"[1, 2]", "bad-format", "no object"},
    {"{\"zarr_format\": 3", "bad-format", "ends too early"},
    {V3("") "x", "bad-format", "no JSON"},
    {"{\"a\": \"\xff\"}", "bad-format", "no JSON"},
    {V2(V2_ALL V2_REST), "bad-format", "'node_type'"},
    {V3(V3_ALL "\"codecs\": []"), "bad-format", "'codecs'"},
    {V3(V3_ALL "\"codecs\": 5"), "bad-format", "'codecs'"},
    {V3(V3_ALL "\"codecs\": [7]"), "bad-format", "'codecs'"},
    {V3(V3_ALL "\"codecs\": [" V3_BYTES ", " V3_BYTES "]"), "bad-format", "one codec"},
    {V3(V3_ALL "\"codecs\": [{\"name\": \"bytes\"}]"), "bad-format", "'endian'"},
    {V3(V3_ALL "\"codecs\": [" V3_BYTES ", {\"name\": \"zfpy\"}]"), "bad-format", "zfpy"},
    {V3(V3_ALL "\"codecs\": [" V3_BYTES ", {\"name\": \"numcodecs.pcodec\"}]"), "bad-format",
     "numcodecs[pcodec]"},
    {V3(V3_ALL "\"codecs\": [" V3_BYTES ", {\"name\": \"\"}]"), "bad-format", "not served"},
    {V3(V3_ALL "\"extra\": 1, \"codecs\": [" V3_BYTES "]"), "bad-format", "'extra'"},
    {V3(V3_GRID("[4, 6]", "[2]") V3_TYPE "\"codecs\": [" V3_BYTES "]"), "bad-format",
     "'chunk_shape' must be a list of 2 integers"},
    {V3(V3_GRID("[4, -6]", "[2, 6]") V3_TYPE "\"codecs\": [" V3_BYTES "]"), "bad-format",
     "'shape'"},
    {V3(V3_GRID("[4, 6]", "[2, 0]") V3_TYPE "\"codecs\": [" V3_BYTES "]"), "bad-format",
     "'chunk_shape'"},
    {V3(V3_GRID("[4, 6.5]", "[2, 6]") V3_TYPE "\"codecs\": [" V3_BYTES "]"), "bad-format",
     "'shape'"},
    {V3(V3_GRID("[4, 99999999999999999999]", "[2, 6]") V3_TYPE "\"codecs\": [" V3_BYTES "]"),
     "bad-shape", "more bytes"},
    {V3(V3_GRID("[9, 9]", "[4611686018427387904, 6]") V3_TYPE "\"codecs\": [" V3_BYTES "]"),
     "bad-shape", "chunks of shape"},
    {V3(V3_GRID("[1099511627776, 1]", "[1099511627776, 1]") V3_TYPE "\"codecs\": [" V3_BYTES "]"),
     "bad-format", "a chunk of"},
    {V3(V3_GRID("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[1]")
            V3_TYPE "\"codecs\": [" V3_BYTES "]"),
     "bad-shape", "33 dimensions"},
    {V3(V3_GRID("[4, 6]", "[2, 6]") "\"data_type\": \"float16\", \"codecs\": [" V3_BYTES "]"),
     "bad-dtype", "float16"},
    {V3(V3_GRID("[4, 6]", "[2, 6]") "\"data_type\": {\"name\": \"numpy.datetime64\"}"), "bad-dtype",
     "numpy.datetime64"},
    {V3(V3_GRID("[4, 6]", "[2, 6]") "\"data_type\": 3"), "bad-format", "'data_type'"},
    {V3(V3_GRID("[4, 6]",
                "[2, 6]") "\"data_type\": \"int8\", \"fill_value\": 300, \"codecs\": [" V3_BYTES
                          "]"),
     "bad-format", "'fill_value'"},
    {V3(V3_GRID("[4, 6]", "[2, 6]") "\"data_type\": \"float32\", \"fill_value\": \"0x12\", "
                                    "\"codecs\": [" V3_BYTES "]"),
     "bad-format", "'fill_value'"},
    {V3(V3_ALL "\"codecs\": [{\"name\": \"transpose\", \"configuration\": {\"order\": [0, 0]}}]"),
     "bad-format", "each axis once"},
    {V3(V3_ALL "\"codecs\": [{\"name\": \"transpose\", \"configuration\": {\"order\": \"F\"}}]"),
     "bad-format", "'order'"},
    {V3(V3_ALL "\"codecs\": [" V3_SHARD("[2, 4]", V3_BYTES, V3_CRC) "]"), "bad-format",
     "parts of the shard"},
    {V3(V3_ALL "\"codecs\": [" V3_SHARD("[1, 3]", V3_BYTES, "{\"name\": \"gzip\"}") "]"),
     "bad-format", "'index_codecs'"},
    {V3(V3_ALL "\"codecs\": [" V3_SHARD("[1, 3]", V3_BYTES, V3_CRC) ", {\"name\": \"gzip\"}]"),
     "bad-format", "beside sharding_indexed"},
    {V3(V3_ALL "\"codecs\": [" V3_SHARD("[1, 3]", "", V3_CRC) "]"), "bad-format", "'codecs'"},
    {V3(V3_GRID("[9]", "[4611686018427387904]") "\"data_type\": \"int8\", \"codecs\": [" V3_SHARD(
         "[1]", V3_BYTES, V3_CRC) "]"),
     "bad-format", "chunks in a shard"},
    {V3("\"shape\": [4], \"data_type\": \"int8\", \"chunk_grid\": {\"name\": \"rectangular\"}"),
     "bad-format", "'chunk_grid'"},
    {"{\"zarr_format\": 3, \"node_type\": \"table\"}", "bad-format", "'node_type'"},
};

Test(zarr, metadata_that_is_wrong_is_refused_by_file_and_key)
{
    for (size_t i = 0; i < ARRAY_LENGTH(refused); i++) {
        put_text("x.zarr/a/zarr.json", refused[i].metadata);
        const char *word = open_word("x.zarr:/a");
        cr_assert(eq(str, (char *)word, (char *)refused[i].word), "%s: %s", refused[i].metadata,
                  last_error.message);
        says(refused[i].says);
        cr_assert(eq(str, last_error.argument, "x.zarr:/a"));
    }
}

static const struct refused refused_v2[] = {
    {V2(V2_REST), "bad-format", "'dtype'"},
    {V2("\"shape\": [4], \"chunks\": [2], \"dtype\": \"<f2\", " V2_REST), "bad-dtype", "<f2"},
    {V2("\"shape\": [4], \"chunks\": [2], \"dtype\": \"<U8\", " V2_REST), "bad-dtype", "<U8"},
    {V2("\"shape\": [4], \"chunks\": [2], \"dtype\": [[\"a\", \"<i4\"]], " V2_REST), "bad-dtype",
     "\"a\""},
    {V2("\"shape\": [4], \"chunks\": true, \"dtype\": \"<i4\", " V2_REST), "bad-format",
     "'chunks'"},
    {V2(V2_ALL "\"order\": \"K\""), "bad-format", "'order'"},
    {V2(V2_ALL V2_REST ", \"dimension_separator\": \"-\""), "bad-format", "'dimension_separator'"},
    {V2(V2_ALL "\"order\": \"C\", \"filters\": {}"), "bad-format", "'filters'"},
    {V2(V2_ALL "\"order\": \"C\", \"compressor\": {\"level\": 3}"), "bad-format", "'compressor'"},
    {V2(V2_ALL "\"order\": \"C\", \"compressor\": {\"id\": \"lzma\", \"format\": 3}"), "bad-format",
     "'format'"},
    {V2(V2_ALL "\"order\": \"C\", \"filters\": [{\"id\": \"delta\", \"dtype\": \"<i8\"}]"),
     "bad-format", "as wide as int16"},
    {V2(V2_ALL "\"order\": \"C\", \"filters\": [{\"id\": \"vlen-utf8\"}]"), "bad-format",
     "vlen-utf8"},
    {V2(V2_ALL "\"order\": \"C\", \"filters\": [{\"id\": \"zlib\"}, {\"id\": \"delta\", "
               "\"dtype\": \"<i2\"}]"),
     "bad-format", "before those of bytes"},
    {V2(V2_ALL "\"order\": \"C\", \"filters\": [{\"id\": \"fixedscaleoffset\", \"dtype\": \"<i2\","
               " \"scale\": 0, \"offset\": 1}]"),
     "bad-format", "'scale'"},
};

Test(zarr, metadata_of_version_2_that_is_wrong_is_refused_too)
{
    for (size_t i = 0; i < ARRAY_LENGTH(refused_v2); i++) {
        put_text("x.zarr/.zarray", refused_v2[i].metadata);
        const char *word = open_word("x.zarr");
        cr_assert(eq(str, (char *)word, (char *)refused_v2[i].word), "%s: %s",
                  refused_v2[i].metadata, last_error.message);
        says(refused_v2[i].says);
        says("x.zarr/.zarray");
    }
}

Test(zarr, metadata_too_long_or_no_file_is_refused)
{
    cr_assert(mkdir("x.zarr", 0755) == 0 && mkdir("y.zarr", 0755) == 0);
    int fd = open("x.zarr/zarr.json", O_CREAT | O_WRONLY, 0644);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)1 << 40) == 0 && close(fd) == 0);
    cr_assert(eq(str, (char *)open_word("x.zarr"), "limit-exceeded"));
    cr_assert(mkdir("y.zarr/zarr.json", 0755) == 0);
    cr_assert(eq(str, (char *)open_word("y.zarr"), "bad-descriptor"));
    cr_assert(mkfifo("y.zarr/.zarray", 0644) == 0 && rmdir("y.zarr/zarr.json") == 0);
    cr_assert(eq(str, (char *)open_word("y.zarr"), "bad-descriptor"));
}

Test(zarr, names_that_are_no_arrays_are_told_what_there_is)
{
    put_text("x.zarr/.zgroup", V2("\"a\": 1"));
    put_text("x.zarr/g/.zgroup", V2("\"a\": 1"));
    put_text("x.zarr/g/speed/.zarray", V2(V2_ALL V2_REST));
    put_text("x.zarr/g/notes.txt", "");
    cr_assert(eq(str, (char *)open_word("x.zarr"), "not-found"));
    says("is a group; it has '/g/speed'");
    cr_assert(eq(str, (char *)open_word("x.zarr:/g"), "not-found"));
    cr_assert(eq(str, (char *)open_word("x.zarr:/g/sped"), "not-found"));
    says("'/g/speed'");
    cr_assert(eq(str, (char *)open_word("x.zarr:/../x.zarr/g/speed"), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("x.zarr:.."), "bad-argument"));
    cr_assert(eq(str, (char *)open_word("no.zarr"), "not-found"));
    cr_assert(eq(str, (char *)open_word("x.zarr.zip"), "bad-argument"));
    says("unpack");
    cr_assert(eq(str, (char *)open_word("x.zarr:/g/speed"), "ok"));
    cr_assert(eq(str, (char *)open_word("x.zarr/:/g/speed[1, ::2]"), "ok"));
    cr_assert(eq(str, (char *)open_in_place_word("x.zarr:/g/speed"), "read-only"));
    file_put("f.zarr", "PK", 2);
    cr_assert(eq(str, (char *)open_word("f.zarr"), "bad-format"));
    cr_assert(mkdir("e.zarr", 0755) == 0);
    cr_assert(eq(str, (char *)open_word("e.zarr"), "bad-format"));
}

Test(zarr, brackets_may_belong_to_a_name)
{
    put_text("x.zarr/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}");
    put_text("x.zarr/d[0]/zarr.json", V3(V3_ALL "\"codecs\": [" V3_BYTES "]"));
    put_text("x.zarr/d/zarr.json", V3(V3_ALL "\"codecs\": [" V3_BYTES "]"));
    struct gad_array *array = open_ok("x.zarr:/d[0]");
    cr_assert(eq(int, array->info.ndim, 2));
    gad_array_release(array);
    array = open_ok("x.zarr:/d[1]");
    cr_assert(eq(int, array->info.ndim, 1));
    gad_array_release(array);
}

/* Two shards of (2, 6), each with four chunks of (1, 3) and an index behind them. */
#define SHARDED V3(V3_ALL "\"codecs\": [" V3_SHARD("[1, 3]", V3_BYTES, V3_CRC) "]")

struct shard {
    int16_t elements[12];
    uint64_t index[8];
    uint8_t sum[4];
} __attribute__((packed));

static struct shard make_shard(void)
{
    struct shard shard = {.elements = {0}};
    for (int i = 0; i < 12; i++)
        shard.elements[i] = (int16_t)(100 + i);
    for (int i = 0; i < 4; i++) {
        shard.index[2 * i] = (uint64_t)i * 6;
        shard.index[2 * i + 1] = 6;
    }
    return shard;
}

static void put_shard(struct shard *shard)
{
    uint32_t sum = crc32c(shard->index, sizeof(shard->index));
    memcpy(shard->sum, &sum, sizeof(sum));
    put("x.zarr/c/0/0", shard, sizeof(*shard));
}

/* What filling the whole array says: 0 or an errno; the reason is in last_error. */
static int fill_all(int16_t *ret_elements)
{
    struct gad_array *array = open_ok("x.zarr");
    const int64_t start[2] = {0, 0};
    memset(&last_error, 0, sizeof(last_error));
    int r = array->provider->fill(array->provider_state, start, array->info.shape, ret_elements);
    if (r)
        array->provider->explain(array->provider_state, &last_error);
    gad_array_release(array);
    return r;
}

Test(zarr, chunks_are_found_in_shards_and_what_was_never_written_is_the_fill_value)
{
    int16_t got[24];
    struct shard shard = make_shard();
    int n = descriptor_count();
    put_text("x.zarr/zarr.json", SHARDED);
    shard.index[2] = shard.index[3] = UINT64_MAX;
    put_shard(&shard);
    cr_assert(eq(int, fill_all(got), 0));
    for (int i = 0; i < 24; i++) {
        int row = i / 6, column = i % 6, chunk = row * 2 + column / 3;
        int want = row > 1 || chunk == 1 ? 7 : 100 + chunk * 3 + column % 3;
        cr_assert(eq(int, got[i], want), "%d", i);
    }
    cr_assert(eq(int, descriptor_count(), n));
}

static void check_damage(struct shard *shard, const char *words)
{
    int16_t got[24];
    put_shard(shard);
    cr_assert(ne(int, fill_all(got), 0), "%s", words);
    says(words);
    cr_assert(eq(int, (int)last_error.status, GAD_PROVIDER_FAILED));
}

Test(zarr, damaged_shards_are_named_with_the_chunk)
{
    int16_t got[24];
    struct shard shard = make_shard();
    put_text("x.zarr/zarr.json", SHARDED);
    shard.index[4] = 1000;
    check_damage(&shard,
                 "the chunk at (1, 0): shard 'c/0/0' of 92 bytes says that it has 6 at 1000");
    shard.index[4] = UINT64_MAX - 2;
    check_damage(&shard, "at 18446744073709551613");
    shard = make_shard();
    shard.index[3] = UINT64_MAX;
    check_damage(&shard, "the chunk at (0, 3)");
    shard.index[3] = 5;
    check_damage(&shard, "ends too soon");
    shard.index[3] = 7;
    check_damage(&shard, "more than a chunk");
    shard = make_shard();
    put_shard(&shard);
    shard.sum[1] ^= 1;
    put("x.zarr/c/0/0", &shard, sizeof(shard));
    cr_assert(eq(int, fill_all(got), EBADMSG));
    says("checksum of the index of shard 'c/0/0'");
    put("x.zarr/c/0/0", &shard, 60);
    cr_assert(eq(int, fill_all(got), EBADMSG));
    says("its index alone has 68");
    cr_assert(unlink("x.zarr/c/0/0") == 0 && mkdir("x.zarr/c/0/0", 0755) == 0);
    cr_assert(eq(int, fill_all(got), EISDIR));
}

Test(zarr, chunk_files_of_another_size_are_errors)
{
    int16_t got[24], chunk[13] = {0};
    put_text("x.zarr/zarr.json", V3(V3_ALL "\"codecs\": [" V3_BYTES "]"));
    put("x.zarr/c/0/0", chunk, 24);
    cr_assert(eq(int, fill_all(got), 0));
    put("x.zarr/c/0/0", chunk, 23);
    cr_assert(ne(int, fill_all(got), 0));
    put("x.zarr/c/0/0", chunk, 25);
    cr_assert(ne(int, fill_all(got), 0));
    put("x.zarr/c/0/0", "", 0);
    cr_assert(ne(int, fill_all(got), 0));
    cr_assert(truncate("x.zarr/c/0/0", (off_t)1 << 40) == 0);
    cr_assert(eq(int, fill_all(got), EFBIG));
    says("more than");
}

static int take_line(void *userdata, const struct gad_listed *entry)
{
    char *text = userdata, line[256];
    size_t n = (size_t)snprintf(line, sizeof(line), "%s", entry->name);
    if (entry->kind == GAD_LISTED_ARRAY) {
        n += (size_t)snprintf(line + n, sizeof(line) - n, " %s%s", entry->type,
                              entry->is_served ? "" : "?");
        for (int i = 0; i < entry->ndim; i++)
            n += (size_t)snprintf(line + n, sizeof(line) - n, " %d/%d", (int)entry->shape[i],
                                  entry->chunk_shape ? (int)entry->chunk_shape[i] : -1);
        n += (size_t)snprintf(line + n, sizeof(line) - n, " {%s}", entry->filters);
        for (int i = 0; i < entry->ndim && entry->dimensions; i++)
            n += (size_t)snprintf(line + n, sizeof(line) - n, " %s",
                                  entry->dimensions[i] ? entry->dimensions[i] : "-");
    }
    for (size_t i = 0; i < entry->n_attributes; i++) {
        const struct gad_attribute *attribute = &entry->attributes[i];
        n += (size_t)snprintf(line + n, sizeof(line) - n, " %s=%s/%zu", attribute->name,
                              attribute->text ? attribute->text : "", attribute->n_values);
    }
    strcat(strcat(text, line), "\n");
    return 0;
}

static void check_list(const char *spec, const char *wanted)
{
    char text[1024] = "";
    int r = (int)gad_list(spec, take_line, text, &last_error);
    cr_assert(r == 0, "%s", last_error.message);
    cr_assert(eq(str, text, (char *)wanted));
}

Test(zarr, lists_what_is_in_a_store)
{
    put_text("x.zarr/zarr.json",
             "{\"zarr_format\": 3, \"node_type\": \"group\", \"attributes\": {\"title\": \"t\"}}");
    put_text("x.zarr/b/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}");
    put_text("x.zarr/b/s/zarr.json",
             V3(V3_ALL
                "\"attributes\": {\"units\": \"K\", \"range\": [1, 2.5], \"x\": {}}, "
                "\"dimension_names\": [\"t\", null], \"codecs\": [" V3_SHARD(
                    "[1, 3]", V3_BYTES ", {\"name\": \"zstd\", \"configuration\": {\"level\": 3}}",
                    V3_CRC) "]"));
    put_text("x.zarr/a/zarr.json",
             V3("\"shape\": [3], \"data_type\": \"float16\", \"codecs\": []"));
    put_text("x.zarr/junk/zarr.json", "{");
    put_text("x.zarr/.hidden/zarr.json", V3(V3_ALL "\"codecs\": [" V3_BYTES "]"));
    check_list("x.zarr",
               "/ title=t/0\n"
               "/a float16? 3/-1 {}\n"
               "/b\n"
               "/b/s int16 4/1 6/3 {zstd 3, sharding_indexed} t - units=K/0 range=/2 x=/0\n"
               "/junk\n");
    check_list("x.zarr:/b/s",
               "/b/s int16 4/1 6/3 {zstd 3, sharding_indexed} t - units=K/0 range=/2 x=/0\n");
    cr_assert(eq(int, (int)gad_list("x.zarr:/c", take_line, NULL, &last_error), GAD_NOT_FOUND));
    cr_assert(eq(int, (int)gad_list("x.zarr:/..", take_line, NULL, &last_error), GAD_BAD_ARGUMENT));
}

Test(zarr, consolidated_metadata_are_listed_and_used_where_a_node_has_none)
{
    put_text("x.zarr/.zgroup", V2("\"a\": 1"));
    put_text(
        "x.zarr/.zmetadata",
        "{\"zarr_consolidated_format\": 1, \"metadata\": {\".zgroup\": {\"zarr_format\": 2}, "
        "\"g/.zgroup\": {\"zarr_format\": 2}, \"g/a/.zattrs\": {\"_ARRAY_DIMENSIONS\": [\"y\", "
        "\"x\"]}, \"g/a/.zarray\": " V2(
            V2_ALL "\"order\": \"F\", \"fill_value\": null, \"filters\": [{\"id\": "
                   "\"shuffle\", \"elementsize\": 2}], \"compressor\": {\"id\": \"blosc\", "
                   "\"cname\": \"lz4\", \"clevel\": 5}") "}}");
    cr_assert(eq(str, (char *)open_word("x.zarr:/g/a"), "not-found"));
    cr_assert(mkdir("x.zarr/g", 0755) == 0 && mkdir("x.zarr/g/a", 0755) == 0);
    cr_assert(eq(str, (char *)open_word("x.zarr:/g/a"), "ok"));
    check_list("x.zarr", "/\n/g\n"
                         "/g/a int16 4/2 6/6 {shuffle, blosc lz4 5} y x _ARRAY_DIMENSIONS=/0\n");
    check_list("x.zarr:/g",
               "/g\n/g/a int16 4/2 6/6 {shuffle, blosc lz4 5} y x _ARRAY_DIMENSIONS=/0\n");
}

Test(zarr, links_in_a_circle_end)
{
    char text[8192] = "";
    put_text("x.zarr/zarr.json", "{\"zarr_format\": 3, \"node_type\": \"group\"}");
    cr_assert(symlink(".", "x.zarr/again") == 0);
    cr_assert(eq(int, (int)gad_list("x.zarr", take_line, text, &last_error), 0));
    cr_assert(eq(str, (char *)open_word("x.zarr:/none"), "not-found"));
}
