/* HDF5 files: the lock around the library, opening, and what its failures mean.
 *
 * HDF5 has one global state, so all of it runs under one mutex; its printing of errors is a setting
 * of the thread that belongs to the program around us, so it is saved and put back each time.
 *
 * A file is opened twice: by us (the descriptor that the daemon gets, checked to be a regular file)
 * and by HDF5 through the path. Both must be the same inode. Before a file is opened for writing,
 * providers of this process that read it are suspended, since HDF5 has one mode per file and its
 * lock counts between our own descriptors too.
 *
 * HDF5 reports a stack of texts. Its innermost text tells a truncated file (with numbers) and a
 * file left marked as open from others, and a lock of somebody else where it has the number; else a
 * lock is recognised by trying the same one. A file that is marked by a writer that lets others
 * read meanwhile (SWMR) is read as such.
 *
 * Whether files are locked at all is HDF5's own setting, $HDF5_USE_FILE_LOCKING; without it locks
 * are used where the file system has them.
 *
 * Called by all hdf5-*.c.
 */
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/writing/hdf5_driver.h"
#include "client/formats/hdf5/writing/hdf5_undo.h"
#include "client/formats/files/file_lock.h"
#include "client/formats/hdf5/hdf5_provider.h"
#include "client/formats/hdf5/reading/hdf5_stored.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>

#define REASON_CHARS 200
/* Of a lock that somebody else has, EWOULDBLOCK: the words of HDF5's own driver, and about ours. */
#define LOCKED_REASON     "unable to lock file, errno = 11,"
#define LOCKED_REASON_OUR "unable to lock the file"

static pthread_mutex_t library = PTHREAD_MUTEX_INITIALIZER;

void hdf5_enter(struct hdf5_scope *ret_scope)
{
    pthread_mutex_lock(&library);
    H5Eget_auto2(H5E_DEFAULT, &ret_scope->print, &ret_scope->print_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

/* What failed is forgotten: a thread that ends with an error on its stack, of which HDF5 has one a
 * thread where it is built so, leaves HDF5 unable to close itself at the end of the process. */
void hdf5_leave(struct hdf5_scope *scope)
{
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, scope->print, scope->print_data);
    pthread_mutex_unlock(&library);
}

void hdf5_close(hid_t *id)
{
    if (*id > 0)
        H5Idec_ref(*id);
    *id = H5I_INVALID_HID;
}

hid_t hdf5_untimed(hid_t class)
{
    hid_t plist = H5Pcreate(class);
    if (plist > 0 && H5Pset_obj_track_times(plist, false) < 0)
        hdf5_close(&plist);
    return plist;
}

struct reason {
    char *buffer;
    size_t n_bytes;
};

static herr_t take_first(unsigned n, const H5E_error2_t *entry, void *data)
{
    struct reason *reason = data;
    if (n == 0 && entry->desc)
        snprintf(reason->buffer, reason->n_bytes, "%s", entry->desc);
    return 0;
}

const char *hdf5_reason(char *buffer, size_t n_bytes)
{
    struct reason reason = {.buffer = buffer, .n_bytes = n_bytes};
    *buffer = '\0';
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &reason);
    return buffer;
}

herr_t hdf5_file_set_locking(hid_t access_plist)
{
#if H5_VERSION_GE(1, 10, 7)
    return H5Pset_file_locking(access_plist, true, true);
#else
    return 0;
#endif
}

bool hdf5_file_has_locking(void)
{
    const char *setting = getenv("HDF5_USE_FILE_LOCKING");
    return !setting || (strcasecmp(setting, "FALSE") != 0 && strcmp(setting, "0") != 0);
}

hid_t hdf5_file_access(bool for_writing)
{
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    if (fapl > 0 && hdf5_file_set_locking(fapl) < 0)
        hdf5_close(&fapl);
    /* Where many bytes begin with a block, as in our other files, the system can share blocks. */
    if (fapl > 0 && for_writing &&
        (H5Pset_alignment(fapl, 1 << 20, 4096) < 0 || hdf5_driver_use(fapl) < 0))
        hdf5_close(&fapl);
    if (fapl > 0 && !for_writing && hdf5_stored_use(fapl) < 0)
        hdf5_close(&fapl);
    return fapl;
}

/* Whether the lock that HDF5 wants cannot be had. */
static bool is_locked(const char *path, bool for_writing)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return false;
    return flock(fd, (for_writing ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

static int truncated_error(const char *reason, const char *shown, const char *name,
                           struct gad_error *error)
{
    uint64_t there = 0, base = 0, wanted = 0;
    const char *numbers = strstr(reason, "eof = ");
    if (!numbers ||
        sscanf(numbers, "eof = %" SCNu64 ", sblock->base_addr = %" SCNu64 ", stored_eof = %" SCNu64,
               &there, &base, &wanted) != 3)
        return error_set(error, GAD_SHORT_READ, name, "'%.200s' is truncated", shown);
    error_set(error, GAD_SHORT_READ, name,
              "'%.160s' is truncated: it says %" PRIu64 " bytes and holds %" PRIu64, shown, wanted,
              there);
    error_expected(error, "%" PRIu64 " bytes", wanted);
    error_found(error, "%" PRIu64 " bytes", there);
    return GAD_SHORT_READ;
}

static int locked_error(const struct stat *st, bool for_writing, const char *shown,
                        const char *name, struct gad_error *error)
{
    char holder[64];
    const char *does = for_writing ? "reads or writes" : "writes";
    if (file_lock_holder(st, !for_writing, holder, sizeof(holder)))
        error_set(error, GAD_BUSY, name, "'%.200s' is locked by %s, which %s it", shown, holder,
                  does);
    else
        error_set(error, GAD_BUSY, name, "'%.200s' is locked by a program that %s it", shown, does);
    error_expected(error, "a file that no other program %s", does);
    error_found(error, "a lock of %s", *holder ? holder : "a program that is not known");
    return GAD_BUSY;
}

static int marked_error(const char *shown, const char *name, struct gad_error *error)
{
    error_set(error, GAD_BUSY, name,
              "'%.160s' is marked as open for writing; if nobody has it open, clear the mark with "
              "h5clear -s",
              shown);
    error_expected(error, "a file that was closed by its writer");
    error_found(error, "the mark of a writer");
    return GAD_BUSY;
}

void hdf5_say_older(struct gad_error *error)
{
    error_expected(error,
                   "a file in HDF5 1.10's format, as h5py's libver='v110' or 'h5repack --high=2' "
                   "of its writer's HDF5 makes it");
    error_found(error, "a newer format, or damage");
}

static bool says_locked(const char *reason)
{
    return strstr(reason, LOCKED_REASON) || strstr(reason, LOCKED_REASON_OUR);
}

static int open_error(const char *path, const struct stat *st, bool for_writing, const char *shown,
                      const char *name, struct gad_error *error)
{
    char reason[REASON_CHARS];
    hdf5_reason(reason, sizeof(reason));
    if (strstr(reason, "truncated file"))
        return truncated_error(reason, shown, name, error);
    if (strstr(reason, "already open for"))
        return marked_error(shown, name, error);
    if (says_locked(reason) || is_locked(path, for_writing))
        return locked_error(st, for_writing, shown, name, error);
    htri_t is_hdf5 = H5Fis_hdf5(path);
    if (is_hdf5 < 0) /* without descriptors, say */
        return error_set(error, GAD_IO_ERROR, name, "'%.140s' cannot be opened by HDF5: %.160s",
                         shown, reason);
    if (is_hdf5 == 0)
        return error_set(error, GAD_BAD_FORMAT, name, "'%.200s' is no HDF5 file", shown);
    error_set(error, GAD_BAD_FORMAT, name, "'%.140s' cannot be opened by HDF5 %d.%d.%d: %.120s",
              shown, H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE, reason);
    hdf5_say_older(error);
    return GAD_BAD_FORMAT;
}

int hdf5_file_fd(hid_t file)
{
    int *fd = NULL;
    return H5Fget_vfd_handle(file, H5P_DEFAULT, (void **)&fd) >= 0 && fd ? *fd : -1;
}

static bool is_same_file(hid_t file, const struct stat *st)
{
    struct stat opened;
    return fstat(hdf5_file_fd(file), &opened) == 0 && opened.st_dev == st->st_dev &&
           opened.st_ino == st->st_ino;
}

/* Opens to read, also what a writer is writing in a way that lets others read, and what this
 * program itself has open to write: HDF5 shares that, with its own driver alone. */
static hid_t open_to_read(const char *path, hid_t fapl)
{
    char reason[REASON_CHARS];
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    if (file < 0 && says_locked(hdf5_reason(reason, sizeof(reason))) && H5Pset_fapl_sec2(fapl) >= 0)
        file = H5Fopen(path, H5F_ACC_RDONLY, fapl);
    if (file >= 0 || !strstr(hdf5_reason(reason, sizeof(reason)), "already open for"))
        return file;
    return H5Fopen(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ, fapl);
}

int hdf5_file_open(const char *path, const struct stat *st, bool for_writing, const char *shown,
                   const char *name, hid_t *ret_file, struct gad_error *error)
{
    if (for_writing)
        hdf5_provider_suspend(st);
    hdf5_undo(path, st);
    _cleanup_hid_ hid_t fapl = hdf5_file_access(for_writing);
    if (fapl <= 0)
        return error_set(error, GAD_NO_MEMORY, name, "HDF5 cannot be used");
    hid_t file = for_writing ? H5Fopen(path, H5F_ACC_RDWR, fapl) : open_to_read(path, fapl);
    if (file < 0)
        return open_error(path, st, for_writing, shown, name, error);
    if (!is_same_file(file, st)) {
        H5Fclose(file);
        return error_set(error, GAD_NOT_FOUND, name, "'%.200s' was replaced meanwhile", shown);
    }
    *ret_file = file;
    return 0;
}

bool hdf5_is_in_file(hid_t object, const struct stat *st)
{
    _cleanup_hid_ hid_t file = H5Iget_file_id(object);
    return file > 0 && is_same_file(file, st);
}
