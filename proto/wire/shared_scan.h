/* Shared scans: one process decodes the chunks of files for all who read them at the time.
 *
 * Three things have a layout: the description that a client hands over, a sealed memfd; the ring, a
 * memfd that the process makes and clients can only read; and the packets on the socket between the
 * process and one reader.
 *
 * The description (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), without gaps:
 *
 *     +------+-----------------+-----------------+-----------------+--------------------+
 *     | head | files [n_files] | kinds [n_kinds] | steps [n_steps] | entries [n_chunks] |
 *     +------+-----------------+-----------------+-----------------+--------------------+
 *
 * A reader hands over every file, opened by itself, before it sees anything: packets of scan_show,
 * each with so many descriptors, the files in their order.
 *
 * The ring, whose sizes follow from the size of the largest chunk alone:
 *
 *     0                         data_offset_bytes
 *     +-------------------------+-------------+-------------+----
 *     | scan_slot[n_slots]      | slot 0 data | slot 1 data | ...
 *     +-------------------------+-------------+-------------+----
 *                                 slot_bytes each
 *
 * Chunks are decoded for ever in one order, as if the files were a circle: number n = 0, 1, 2 .. is
 * chunk n % n_chunks, and comes to slot n % n_slots. A slot's stamp is 2n + 1 while n is written,
 * and 2n + 2 when it is there. Who reads looks at the stamp before and after: another one then says
 * that the slot was taken for a later chunk meanwhile, and what was read is of no use. */
#pragma once

#include "proto/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCAN_MAGIC            UINT64_C(0x326e616353646147) /* "GadScan2" */
#define SCAN_MAX_CHUNKS       (UINT64_C(1) << 20)
#define SCAN_MAX_CHUNK_BYTES  (UINT64_C(16) << 20)
#define SCAN_MAX_STORED_BYTES (UINT64_C(32) << 20) /* of a chunk */
#define SCAN_MAX_FILES        (1u << 14)
#define SCAN_FILE_COST        2048u /* bytes of the kernel's, about, for one that is open */
#define SCAN_FILES_AT_A_TIME  64u   /* in a packet */
#define SCAN_MAX_KINDS        64u
#define SCAN_MAX_STEPS        16u /* of a kind */
#define SCAN_MAX_VALUES       32u
#define SCAN_ABSENT           UINT64_MAX /* an entry's offset: the chunk was never written */
#define SCAN_MAX_SLOTS        1024u
#define SCAN_MIN_SLOTS        8u

struct scan_head {
    uint64_t magic;
    uint64_t n_chunks;
    uint64_t chunk_bytes; /* decoded, of the largest */
    uint32_t n_files, n_kinds, n_steps;
    uint32_t zero;
};

/* By which a descriptor of it is known; times in nanoseconds. */
struct scan_file {
    uint64_t device; /* major << 32 | minor */
    uint64_t inode, size_bytes;
    int64_t modified_ns, changed_ns;
};

/* How chunks are packed: steps first_step .. first_step + n_steps. */
struct scan_kind {
    uint32_t first_step, n_steps;
    /* 1: deflated streams (RFC 1951), without steps. Chunks of one stream, with the same offset,
     * follow each other, and each goes on where the one before ends. */
    uint32_t is_stream;
    uint32_t zero;
};

/* A codec, in the order in which they encode. Texts end with NUL, and NULs are behind it. */
struct scan_step {
    char codec[32]; /* by its name: "shuffle", "deflate" */
    uint32_t n_values;
    uint32_t is_optional;
    char dtype[8], stored[8]; /* as in NumPy's array interface, of codecs of elements; else empty */
    double scale, offset;
    uint32_t values[SCAN_MAX_VALUES]; /* as HDF5 has them for its filter; 0 behind n_values */
};

struct scan_entry {
    uint64_t offset_bytes; /* in the file, or SCAN_ABSENT */
    uint64_t size_bytes;   /* as stored; of a stream, all of it */
    uint32_t file, kind;
    uint32_t n_bytes; /* decoded */
    uint32_t skipped; /* bit i: step i was not applied to this chunk; of a stream its CRC-32 */
};

enum scan_status {
    SCAN_THERE = 0,
    SCAN_IS_ABSENT = 1, /* never written: its elements are the fill value, and not in the slot */
    SCAN_FAILED = 2,    /* it cannot be read or decoded: who does so by itself learns why */
};

struct scan_slot {
    _Alignas(64) _Atomic uint64_t stamp;
    uint32_t status;
};

/* From a reader, before all else: it has opened files first .. first + n_files, whose descriptors
 * come with this. */
struct scan_show {
    uint64_t magic;
    uint32_t first, n_files;
};

/* To a reader that has shown all files, once, with the ring's descriptor: numbers from `first` on
 * are meant for it. */
struct scan_welcome {
    uint64_t magic;
    uint64_t first;
};

/* From a reader: it needs no number below `done` any more. wants_more: it is told when `done`
 * itself is there, by one packet of 8 bytes that say nothing. */
struct scan_ack {
    uint64_t done;
    uint64_t wants_more;
};

_Static_assert(sizeof(struct scan_head) == 40 && sizeof(struct scan_file) == 40 &&
                   sizeof(struct scan_kind) == 16 && sizeof(struct scan_step) == 200 &&
                   sizeof(struct scan_entry) == 32 && sizeof(struct scan_slot) == 64,
               "as in PROTOCOL.md");

struct scan_layout {
    uint32_t n_slots;
    uint64_t slot_bytes, data_offset_bytes, size_bytes;
};

/* chunk_bytes: 1 to SCAN_MAX_CHUNK_BYTES. */
void scan_layout(uint64_t chunk_bytes, struct scan_layout *ret);

struct stat;
void scan_file_of(const struct stat *st, struct scan_file *ret);
bool scan_file_is_same(const struct scan_file *a, const struct scan_file *b);

/* A head by itself, with the size of what it stands in: bad-chunk-table, limit-exceeded. */
int scan_head_check(const struct scan_head *head, uint64_t description_bytes,
                    struct gad_error *error) GAD_MUST_CHECK;
/* Of all that the head says; it was checked. */
uint64_t scan_description_bytes(const struct scan_head *head);
