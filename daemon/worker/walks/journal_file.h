/* The bytes of a journal (journal.c), and which job it is of. Numbers are the machine's: a journal
 * is not carried to another. */
#pragma once

#include "daemon/worker/jobs/wjob.h"

#define JOURNAL_MAGIC      "GADJRN2" /* the last one is the version */
#define JOURNAL_PAGE_BYTES 4096u
#define JOURNAL_N_PIECES   16u /* of a cell, by which what was in the output before is known */

struct journal_head {
    char magic[8];
    uint64_t fingerprint[2];
    int64_t tile[3];
    uint64_t n_tiles, n_cells, cell_bytes;
    uint64_t checksum; /* of what is above */
};

/* Of two marks that are whole, the one with the higher sequence. */
struct journal_mark {
    uint64_t fingerprint, sequence;
    uint64_t n_logged, n_applied; /* tiles */
    uint64_t checksum;
};

struct journal_front {
    union {
        struct journal_head head;
        char head_page[JOURNAL_PAGE_BYTES];
    };
    union {
        struct journal_mark mark;
        char room[JOURNAL_PAGE_BYTES / 2];
    } marks[2];
};

struct journal_cell {
    uint64_t fingerprint, tile, n_bytes, checksum;
    /* Of what the output has there before the tile is written; where the job reads it. */
    uint64_t before[JOURNAL_N_PIECES];
};

uint64_t journal_checksum(const void *bytes, size_t n_bytes, uint64_t seed);
uint64_t journal_head_checksum(const struct journal_head *head);
uint64_t journal_mark_checksum(const struct journal_mark *mark);
/* Of pieces of about the same size; those behind the last byte are empty. */
void journal_piece_checksums(const void *bytes, size_t n_bytes, uint64_t *ret_checksums);
size_t journal_piece_bytes(size_t n_bytes);

/* Where they are in the file. */
uint64_t journal_mark_offset(uint64_t sequence);
uint64_t journal_sum_offset(uint64_t tile);
uint64_t journal_cell_head_offset(uint64_t n_tiles, uint64_t cell);
uint64_t journal_data_offset(uint64_t n_tiles, uint64_t n_cells);

/* io-error and others from errno. */
int journal_fingerprint(const struct wjob *job, uint64_t *ret_fingerprint,
                        struct gad_error *error) GAD_MUST_CHECK;
