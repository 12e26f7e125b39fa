#include "client/scan/scan_description.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define N_CHUNKS    3u
#define CHUNK_BYTES 4000u

/* A file of chunks, shuffled and deflated; the last was never written. */
struct made {
    int fd;
    struct scan_description description;
    struct codec_packing kinds[1];
    struct scan_file files[1];
    struct scan_entry entries[N_CHUNKS];
    uint8_t elements[N_CHUNKS][CHUNK_BYTES];
};

static void make(struct made *made)
{
    struct scan_tools tools;
    uint64_t at = 13;
    *made = (struct made){.fd = memfd_create("chunks", MFD_CLOEXEC), .files = {{.inode = 7}}};
    made->kinds[0].pipeline = (struct codec_pipeline){
        .n_steps = 2,
        .steps = {{.codec = codec_of_name("shuffle"), .n_values = 1, .values = {4}},
                  {.codec = codec_of_name("deflate"),
                   .n_values = 1,
                   .values = {6},
                   .is_optional = true}}};
    made->description = (struct scan_description){.n_chunks = N_CHUNKS,
                                                  .chunk_bytes = CHUNK_BYTES,
                                                  .n_files = 1,
                                                  .n_kinds = 1,
                                                  .files = made->files,
                                                  .kinds = made->kinds,
                                                  .entries = made->entries};
    cr_assert(eq(int, scan_tools_init(&tools), 0));
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        const void *bytes;
        size_t n_bytes;
        for (unsigned k = 0; k < CHUNK_BYTES; k++)
            made->elements[i][k] = (uint8_t)(k * (i + 3) / 7);
        cr_assert(eq(int,
                     codec_encode(&made->kinds[0].pipeline, tools.scratch, made->elements[i],
                                  CHUNK_BYTES, &bytes, &n_bytes, &made->entries[i].skipped),
                     0));
        cr_assert(eq(long, pwrite(made->fd, bytes, n_bytes, (off_t)at), (long)n_bytes));
        made->entries[i].offset_bytes = at;
        made->entries[i].size_bytes = n_bytes;
        made->entries[i].n_bytes = CHUNK_BYTES;
        at += n_bytes;
    }
    made->entries[N_CHUNKS - 1].offset_bytes = SCAN_ABSENT;
    scan_tools_deinit(&tools);
}

static void *map(int fd, size_t *ret_n_bytes)
{
    struct stat st;
    cr_assert(eq(int, fstat(fd, &st), 0));
    *ret_n_bytes = (size_t)st.st_size;
    void *bytes = mmap(NULL, *ret_n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    cr_assert(ne(ptr, bytes, MAP_FAILED));
    return bytes;
}

Test(scan_description, is_read_as_it_was_made)
{
    struct made made;
    struct scan_description read;
    struct gad_error error = {0};
    size_t n_bytes;
    int fd;
    make(&made);
    cr_assert(eq(int, scan_description_make(&made.description, &fd, &error), 0));
    void *bytes = map(fd, &n_bytes);
    cr_assert(eq(int, scan_description_read(bytes, n_bytes, &read, &error), 0));
    cr_assert(eq(u64, read.n_chunks, N_CHUNKS));
    cr_assert(eq(u64, read.chunk_bytes, CHUNK_BYTES));
    const struct codec_pipeline *pipeline = &read.kinds[0].pipeline;
    cr_assert(eq(u64, read.files[0].inode, 7));
    cr_assert(eq(uint, pipeline->n_steps, 2));
    cr_assert(eq(ptr, (void *)pipeline->steps[0].codec, (void *)codec_of_name("shuffle")));
    cr_assert(eq(uint, pipeline->steps[0].values[0], 4));
    cr_assert(pipeline->steps[1].is_optional);
    cr_assert(eq(int, memcmp(read.entries, made.entries, sizeof(made.entries)), 0));

    struct scan_tools tools;
    uint8_t elements[CHUNK_BYTES];
    int fault;
    cr_assert(eq(int, scan_tools_init(&tools), 0));
    for (unsigned i = 0; i + 1 < N_CHUNKS; i++) {
        cr_assert(eq(int, (int)scan_decode(&read, &made.fd, i, &tools, NULL, elements, &fault),
                     SCAN_THERE));
        cr_assert(eq(int, memcmp(elements, made.elements[i], CHUNK_BYTES), 0));
    }
    cr_assert(eq(int,
                 (int)scan_decode(&read, &made.fd, N_CHUNKS - 1, &tools, NULL, elements, &fault),
                 SCAN_IS_ABSENT));
    scan_tools_deinit(&tools);
    scan_description_deinit(&read);
    munmap(bytes, n_bytes);
    close(fd);
    close(made.fd);
}

static int read_changed(size_t offset, const void *bytes, size_t n_bytes, struct gad_error *error)
{
    struct made made;
    struct scan_description read;
    size_t n_all;
    int fd;
    make(&made);
    cr_assert(eq(int, scan_description_make(&made.description, &fd, error), 0));
    void *sealed = map(fd, &n_all);
    _cleanup_free_ char *copy = malloc(n_all);
    memcpy(copy, sealed, n_all);
    memcpy(copy + offset, bytes, n_bytes);
    int r = scan_description_read(copy, n_all, &read, error);
    munmap(sealed, n_all);
    close(fd);
    close(made.fd);
    return r;
}

Test(scan_description, refuses_codecs_and_parameters_that_are_none)
{
    struct gad_error error = {0};
    const size_t step =
        sizeof(struct scan_head) + sizeof(struct scan_file) + sizeof(struct scan_kind);
    char unending[32];
    memset(unending, 'x', sizeof(unending));
    cr_assert(eq(int, read_changed(step, "shuffly", 8, &error), GAD_BAD_ARGUMENT));
    cr_assert(eq(str, error.found, "shuffly"));
    cr_assert(eq(int, read_changed(step, unending, 32, &error), GAD_BAD_ARGUMENT));
    const uint32_t n_values = SCAN_MAX_VALUES + 1;
    cr_assert(eq(int,
                 read_changed(step + offsetof(struct scan_step, n_values), &n_values, 4, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, read_changed(step + offsetof(struct scan_step, dtype), "<f8xxxxx", 8, &error),
                 GAD_BAD_ARGUMENT));
    cr_assert(eq(int, read_changed(step + offsetof(struct scan_step, stored), ">f8", 4, &error),
                 GAD_BAD_ARGUMENT));
}

Test(scan_description, refuses_heads_that_lie)
{
    struct gad_error error = {0};
    const uint64_t many = SCAN_MAX_CHUNKS + 1, more = N_CHUNKS + 1;
    cr_assert(eq(int, read_changed(0, "x", 1, &error), GAD_BAD_CHUNK_TABLE));
    cr_assert(eq(int, read_changed(8, &many, 8, &error), GAD_LIMIT_EXCEEDED));
    cr_assert(eq(int, read_changed(8, &more, 8, &error), GAD_BAD_CHUNK_TABLE));
    cr_assert(eq(int, scan_description_read("", 0, &(struct scan_description){0}, &error),
                 GAD_BAD_CHUNK_TABLE));
}

static int failure(struct made *made, struct scan_entry entry)
{
    struct scan_tools tools;
    uint8_t elements[CHUNK_BYTES];
    int fault;
    made->entries[0] = entry;
    cr_assert(eq(int, scan_tools_init(&tools), 0));
    cr_assert(eq(int,
                 (int)scan_decode(&made->description, &made->fd, 0, &tools, NULL, elements, &fault),
                 SCAN_FAILED));
    scan_tools_deinit(&tools);
    return fault;
}

Test(scan_description, what_is_wrong_with_a_chunk)
{
    struct made made;
    make(&made);
    const struct scan_entry good = made.entries[0];
    struct scan_entry entry = good;
    entry.offset_bytes = UINT64_MAX - 1;
    cr_assert(eq(int, failure(&made, entry), -ENODATA));
    entry.offset_bytes = INT64_MAX;
    cr_assert(eq(int, failure(&made, entry), -ENODATA));
    entry.offset_bytes = 1 << 30;
    cr_assert(eq(int, failure(&made, entry), -ENODATA));
    entry = good;
    entry.size_bytes = UINT32_MAX;
    cr_assert(eq(int, failure(&made, entry), CODEC_FAULT_LONG));
    entry.size_bytes = good.size_bytes / 2;
    cr_assert(lt(int, 0, failure(&made, entry)));
    entry = good;
    entry.file = 1;
    cr_assert(eq(int, failure(&made, entry), CODEC_FAULT_VALUES));
    entry = good;
    entry.kind = UINT32_MAX;
    cr_assert(eq(int, failure(&made, entry), CODEC_FAULT_VALUES));
    entry = good;
    entry.n_bytes = CHUNK_BYTES + 1;
    cr_assert(eq(int, failure(&made, entry), CODEC_FAULT_VALUES));
    entry = good;
    entry.skipped = 3; /* its bytes as they are: another size */
    cr_assert(lt(int, 0, failure(&made, entry)));
    close(made.fd);
}

Test(scan_description, limits_of_what_is_made)
{
    struct gad_error error = {0};
    struct made made;
    int fd = -1;
    make(&made);
    made.description.chunk_bytes = SCAN_MAX_CHUNK_BYTES + 1;
    cr_assert(eq(int, scan_description_make(&made.description, &fd, &error), GAD_LIMIT_EXCEEDED));
    made.description.chunk_bytes = CHUNK_BYTES;
    made.description.n_chunks = UINT64_MAX;
    cr_assert(eq(int, scan_description_make(&made.description, &fd, &error), GAD_LIMIT_EXCEEDED));
    cr_assert(eq(int, fd, -1));
    close(made.fd);
}

Test(scan_description, rings_of_all_sizes_of_chunks)
{
    struct scan_layout layout;
    for (uint64_t bytes = 1; bytes <= SCAN_MAX_CHUNK_BYTES; bytes = bytes * 5 / 4 + 1) {
        scan_layout(bytes, &layout);
        cr_assert(le(u64, bytes, layout.slot_bytes));
        cr_assert(eq(u64, layout.slot_bytes % 64, 0));
        cr_assert(le(uint, SCAN_MIN_SLOTS, layout.n_slots));
        cr_assert(le(uint, layout.n_slots, SCAN_MAX_SLOTS));
        cr_assert(le(u64, layout.n_slots * sizeof(struct scan_slot), layout.data_offset_bytes));
    }
}
