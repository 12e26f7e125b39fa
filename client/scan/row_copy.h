/* Copying rows of files into shared memory, in a process that is for that alone: what it shares
 * with the one that has started it, a program of the same user.
 *
 * The process may map the files, which a library must not do in the program of somebody else: a
 * file that is cut short meanwhile kills who looks at what is gone.
 *
 *     starter: row_copy_begin, with the list's, the target's and the files' descriptors
 *     process: row_copy_word, once it can do nothing else any more
 *     starter: writes the list, sends row_copy_order as often as there are threads
 *     process: row_copy_word, when all of the list is there
 *
 * All are packets of a socketpair (SOCK_SEQPACKET). Its end is the end of the process.
 */
#pragma once

#include "proto/error.h"

#include <stdatomic.h>
#include <stdint.h>

#define ROW_COPY_MAGIC       UINT64_C(0x3179706f43647047) /* "GpdCopy1" */
#define ROW_COPY_MAX_FILES   64u
#define ROW_COPY_MAX_THREADS 16u
#define ROW_COPY_WORD        "copy" /* gpuarrayd-scan's argument */

struct row_copy_begin {
    uint64_t magic;
    uint64_t list_bytes, target_bytes;
    uint32_t n_threads, n_files;
    uint64_t file_bytes[ROW_COPY_MAX_FILES];
};

/* Threads take pieces of piece_rows of the list; a thread that gets the order late finds another
 * turn in the list's `next`. */
struct row_copy_order {
    uint64_t turn; /* below 2^24; not 0 */
    uint64_t n_rows, row_bytes, piece_rows;
    uint32_t file, zero;
};

struct row_copy_word {
    uint64_t turn; /* which is there; 0: it is ready */
};

struct row_copy_row {
    uint64_t from, to; /* where they begin: in the file, in the target */
};

#define ROW_COPY_TURN_SHIFT 40u
#define ROW_COPY_MAX_ROWS   (UINT64_C(1) << ROW_COPY_TURN_SHIFT)

struct row_copy_list {
    _Alignas(64) _Atomic uint64_t next; /* turn << ROW_COPY_TURN_SHIFT | the first row not taken */
    _Alignas(64) _Atomic uint64_t done; /* rows of the turn */
    _Alignas(64) struct row_copy_row rows[];
};
