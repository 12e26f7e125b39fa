/* A job's journal: a file of the client's that has one finished tile of a matrix product at a time,
 * from when it is computed until it is written to the output, and a mark that says how far the job
 * is. With it a job that adds into its output is applied exactly once, whatever ends it on the way:
 * the worker, the daemon, the client. Not against loss of power: nothing is forced to the disk. */
#pragma once

#include "daemon/worker/jobs/wjob.h"

#include <sys/stat.h>

enum journal_state { JOURNAL_NEW, JOURNAL_CONTINUED, JOURNAL_COMPLETE };
const char *journal_state_name(enum journal_state state); /* "new" "continued" "complete" */

struct journal {
    int fd; /* the job's */
    dev_t device;
    ino_t inode;
    bool is_locked;
    struct journal *next; /* of those that are locked */
    enum journal_state state;
    uint64_t fingerprint[2]; /* of the job */
    /* As the file has it; n_tiles 0: it is empty. */
    int64_t tile[3];
    uint64_t n_tiles, n_cells, cell_bytes;
    uint64_t n_logged, n_applied; /* tiles */
    _Atomic uint64_t sum;         /* of the tile that is being stored: its cells' checksums */
};

/* As the job begins, on the main thread, its ports are open: checks what was asked, reads nothing.
 * bad-journal, -ENOMEM. */
int journal_new(struct wjob *job, struct gad_error *error) GAD_MUST_CHECK;
void journal_free(struct wjob *job);
/* Lets go of the file. May take long. */
void journal_close(struct wjob *job);

/* Before the job's first turn, on an I/O thread. Reads how far it is; plans what is left; compares
 * the output with what was written to it and reads the tile that is to be applied again, or writes
 * a new journal's head. The scheduler's lock is held, since the plan is the scheduler's to read,
 * but not while the files are read or written: that may take long. bad-journal and others. */
int journal_open(struct wjob *job, const struct plan_limits *limits, const struct port_io *io,
                 struct gad_error *error) GAD_MUST_CHECK;

/* One grain of a tile: cells are numbered in it. Load: -EAGAIN where it would wait for a disk. */
int journal_store(const struct wjob *job, uint64_t tile, uint64_t cell, const void *memory,
                  int64_t n_bytes, const struct port_io *io,
                  struct gad_error *error) GAD_MUST_CHECK;
int journal_load(const struct wjob *job, uint64_t tile, uint64_t cell, void *memory,
                 int64_t n_bytes, const struct port_io *io, struct gad_error *error) GAD_MUST_CHECK;
/* Notes what the output has in the place of a cell that is stored and not applied yet: `memory`, of
 * as many bytes. */
int journal_note_before(const struct wjob *job, uint64_t cell, const void *memory, int64_t n_bytes,
                        const struct port_io *io, struct gad_error *error) GAD_MUST_CHECK;
/* The tile is in the journal whole; is in the output whole. */
int journal_mark(const struct wjob *job, uint64_t tile, bool is_applied, const struct port_io *io,
                 struct gad_error *error) GAD_MUST_CHECK;

/* journal_check.c: whether the output is what the journal says of it: in tiles that were applied,
 * what they gave; in one that was being applied, that or what was there before. bad-journal. */
int journal_check_output(const struct wjob *job, const struct port_io *io,
                         struct gad_error *error) GAD_MUST_CHECK;
/* For it: a cell's head; a tile's sum. */
struct journal_cell;
int journal_read_cell(const struct wjob *job, uint64_t cell, struct journal_cell *ret_cell,
                      const struct port_io *io, struct gad_error *error) GAD_MUST_CHECK;
int journal_read_sum(const struct wjob *job, uint64_t tile, uint64_t *ret_sum,
                     const struct port_io *io, struct gad_error *error) GAD_MUST_CHECK;
