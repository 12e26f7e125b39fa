/* HDF5 files, opened with care: one thread at a time, errors silent, the same file that was
 * checked.
 *
 * The only headers that show HDF5's own types are the hdf5-*.h of this folder. */
#pragma once

#include "proto/error.h"

#include <hdf5.h>
#include <stdbool.h>
#include <sys/stat.h>

/* Between enter and leave this thread alone is in HDF5, and HDF5 prints nothing. Every function of
 * these files that does not say otherwise wants to be called inside. */
struct hdf5_scope {
    H5E_auto2_t print;
    void *print_data;
};
void hdf5_enter(struct hdf5_scope *ret_scope);
void hdf5_leave(struct hdf5_scope *scope);
#define HDF5_SCOPE(scope)                                                                          \
    __attribute__((cleanup(hdf5_leave))) struct hdf5_scope scope;                                  \
    hdf5_enter(&scope)

/* Any id: file, dataset, type, ... Objects are closed before their file when they are declared
 * after it. */
void hdf5_close(hid_t *id);
#define _cleanup_hid_ __attribute__((cleanup(hdf5_close)))

/* Properties for opening files, or making them. */
hid_t hdf5_file_access(bool for_writing);
/* Properties for making files, groups or datasets that do not note when they were made, so that two
 * runs of one job make the same bytes. */
hid_t hdf5_untimed(hid_t class);

/* What HDF5 said last, innermost; "" when nothing. */
const char *hdf5_reason(char *buffer, size_t n_bytes);

/* What helps where HDF5 cannot open what is there: a newer HDF5 has written it, or it is damaged.
 */
void hdf5_say_older(struct gad_error *error);

/* Opens the file at `path`, which must be the one of `st`. `shown` is the path for messages.
 * bad-format, short-read (truncated), busy (somebody has it open for writing, or for reading when
 * we want to write), not-found (it is another file now). */
int hdf5_file_open(const char *path, const struct stat *st, bool for_writing, const char *shown,
                   const char *name, hid_t *ret_file, struct gad_error *error) GAD_MUST_CHECK;

/* Of an access list: files are locked where the file system can; $HDF5_USE_FILE_LOCKING decides
 * otherwise. */
herr_t hdf5_file_set_locking(hid_t access_plist);
/* False: that setting is off. */
bool hdf5_file_has_locking(void);

/* The descriptor by which HDF5 has it open; -1: it has none. */
int hdf5_file_fd(hid_t file);

/* Whether the object lies in the file of `st` itself, and not behind an external link. */
bool hdf5_is_in_file(hid_t object, const struct stat *st);
