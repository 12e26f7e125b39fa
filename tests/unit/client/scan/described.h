/* Chunks of one byte value each, as they are stored: a step that is skipped. Whoever includes this
 * says N_CHUNKS and CHUNK_BYTES. */
#pragma once

#include "client/scan/scan_flow.h"
#include "client/scan/scan_server.h"
#include "proto/packet.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const struct scan_head head = {
    .n_chunks = N_CHUNKS, .chunk_bytes = CHUNK_BYTES, .n_files = 1};

struct described {
    struct scan_description description;
    struct codec_packing kind;
    struct scan_file file;
    struct scan_entry entries[N_CHUNKS];
    int file_fd;
};

static inline void describe(struct described *d)
{
    _cleanup_free_ char *bytes = malloc(CHUNK_BYTES);
    *d = (struct described){.file_fd = memfd_create("chunks", MFD_CLOEXEC)};
    d->description = (struct scan_description){.n_chunks = N_CHUNKS,
                                               .chunk_bytes = CHUNK_BYTES,
                                               .n_files = 1,
                                               .n_kinds = 1,
                                               .files = &d->file,
                                               .kinds = &d->kind,
                                               .entries = d->entries};
    d->kind.pipeline =
        (struct codec_pipeline){.n_steps = 1, .steps = {{.codec = codec_of_name("deflate")}}};
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        memset(bytes, (int)i + 1, CHUNK_BYTES);
        d->entries[i] = (struct scan_entry){.offset_bytes = (uint64_t)i * CHUNK_BYTES,
                                            .size_bytes = CHUNK_BYTES,
                                            .n_bytes = CHUNK_BYTES,
                                            .skipped = 1};
        cr_assert(
            eq(long, pwrite(d->file_fd, bytes, CHUNK_BYTES, (off_t)i * CHUNK_BYTES), CHUNK_BYTES));
    }
    struct stat st;
    cr_assert(eq(int, fstat(d->file_fd, &st), 0));
    scan_file_of(&st, &d->file);
}
