/* The sizes and places of a shared scan's description and ring.
 *
 * Pure arithmetic on numbers that a client sent, within limits in which nothing can overflow. The
 * broker looks at the head alone, to know what a scan costs; its process and the readers make the
 * same layout of it, so none of them believes what another says of it.
 */
#include "proto/wire/shared_scan.h"

#include "proto/util.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define RING_BYTES (UINT64_C(32) << 20)
#define PAGE_BYTES 4096u
#define LINE_BYTES 64u

void scan_layout(uint64_t chunk_bytes, struct scan_layout *ret)
{
    ret->slot_bytes = round_up_u64(chunk_bytes, LINE_BYTES);
    ret->n_slots =
        (uint32_t)min_u64(max_u64(RING_BYTES / ret->slot_bytes, SCAN_MIN_SLOTS), SCAN_MAX_SLOTS);
    ret->data_offset_bytes =
        round_up_u64((uint64_t)ret->n_slots * sizeof(struct scan_slot), PAGE_BYTES);
    ret->size_bytes = ret->data_offset_bytes + ret->n_slots * ret->slot_bytes;
}

static int refuse_limit(struct gad_error *error, const char *what, uint64_t most, uint64_t found)
{
    error_set(error, GAD_LIMIT_EXCEEDED, "description", "a shared scan of %" PRIu64 " %s", found,
              what);
    error_expected(error, "1 to %" PRIu64 " %s", most, what);
    error_found(error, "%" PRIu64, found);
    return GAD_LIMIT_EXCEEDED;
}

bool scan_file_is_same(const struct scan_file *a, const struct scan_file *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

void scan_file_of(const struct stat *st, struct scan_file *ret)
{
    *ret = (struct scan_file){
        .device = (uint64_t)major(st->st_dev) << 32 | minor(st->st_dev),
        .inode = st->st_ino,
        .size_bytes = (uint64_t)st->st_size,
        .modified_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec,
        .changed_ns = (int64_t)st->st_ctim.tv_sec * 1000000000 + st->st_ctim.tv_nsec,
    };
}

uint64_t scan_description_bytes(const struct scan_head *head)
{
    return sizeof(*head) + head->n_files * sizeof(struct scan_file) +
           head->n_kinds * sizeof(struct scan_kind) + head->n_steps * sizeof(struct scan_step) +
           head->n_chunks * sizeof(struct scan_entry);
}

int scan_head_check(const struct scan_head *head, uint64_t description_bytes,
                    struct gad_error *error)
{
    if (head->magic != SCAN_MAGIC || head->zero != 0)
        return error_set(error, GAD_BAD_CHUNK_TABLE, "description",
                         "the description of a scan begins otherwise");
    if (head->n_chunks == 0 || head->n_chunks > SCAN_MAX_CHUNKS)
        return refuse_limit(error, "chunks", SCAN_MAX_CHUNKS, head->n_chunks);
    if (head->chunk_bytes == 0 || head->chunk_bytes > SCAN_MAX_CHUNK_BYTES)
        return refuse_limit(error, "bytes a chunk", SCAN_MAX_CHUNK_BYTES, head->chunk_bytes);
    if (head->n_files == 0 || head->n_files > SCAN_MAX_FILES)
        return refuse_limit(error, "files", SCAN_MAX_FILES, head->n_files);
    if (head->n_kinds == 0 || head->n_kinds > SCAN_MAX_KINDS)
        return refuse_limit(error, "kinds of chunks", SCAN_MAX_KINDS, head->n_kinds);
    if (head->n_steps > SCAN_MAX_KINDS * SCAN_MAX_STEPS)
        return refuse_limit(error, "codecs", SCAN_MAX_KINDS * SCAN_MAX_STEPS, head->n_steps);
    if (scan_description_bytes(head) == description_bytes)
        return 0;
    error_set(error, GAD_BAD_CHUNK_TABLE, "description",
              "the description of a scan has another size than its head says");
    error_expected(error, "%" PRIu64 " bytes", scan_description_bytes(head));
    error_found(error, "%" PRIu64 " bytes", description_bytes);
    return GAD_BAD_CHUNK_TABLE;
}
