/* Changes of a file by HDF5, kept back until it is closed.
 *
 * HDF5 has no journal. Between opening and closing it writes what has changed by ascending address:
 * links before what they lead to, and last where the file ends; whoever is killed meanwhile leaves
 * a file in which little or nothing can be opened, and in the newer format one that is marked as
 * being written. This driver passes elements on to HDF5's own, and keeps the rest in memory. When
 * HDF5 closes the file, one call after the other,
 *
 *     the file is made as long as it will be
 *     what is new is written, to which nothing leads yet
 *     what will be overwritten is noted behind the end (hdf5_undo.c)
 *     the superblock says where the file ends, in its final words
 *     what was there is changed, from the last address to the first
 *     the note is cut off
 *
 * so that a process that dies before these few last calls has changed nothing. They are not one: in
 * the old format the names of a group lie in two places and its links in a third, and others than
 * we would find these in disorder. So they are made by a child, which goes on when this process is
 * killed; where both die, the note tells whoever of ours opens the file next what was there.
 *
 * Invariant: pieces that overlap have the same bytes where they do, so their order does not matter.
 *
 * Called by HDF5; used by hdf5_file.c for every file that is opened to be written to.
 */
#include "client/formats/hdf5/writing/hdf5_driver.h"
#include "client/formats/files/file_source.h"
#include "client/formats/hdf5/hdf5_file.h"
#include "client/formats/hdf5/writing/hdf5_undo.h"
#include "proto/util.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_NUMBER 600 /* from 512 on they are for drivers that HDF5 does not know */

struct piece {
    haddr_t addr;
    size_t n_bytes;
    enum piece_kind { PIECE_SUPERBLOCK, PIECE_HEAP, PIECE_OTHER } kind;
    uint8_t *bytes;
};

struct driver_file {
    H5FD_t base;
    H5FD_t *inner; /* of HDF5's own driver */
    int fd;        /* the inner one's */
    haddr_t old_end;
    struct piece *pieces;
    size_t n_pieces, n_room;
};

static struct driver_file *file_of(const H5FD_t *base)
{
    return (struct driver_file *)base;
}

static int failed(int error_number, const char *what)
{
    H5Epush2(H5E_DEFAULT, __FILE__, what, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_WRITEERROR, "%s: %s",
             what, strerror(error_number));
    errno = error_number;
    return -1;
}

/* Pieces --------------------------------------------------------------------------------------- */

/* Copies where a piece and a range of the file overlap, one way or the other. */
static void copy_overlap(const struct piece *piece, haddr_t addr, size_t n_bytes, uint8_t *into,
                         const uint8_t *from)
{
    haddr_t begin = addr > piece->addr ? addr : piece->addr;
    haddr_t end = min_u64(addr + n_bytes, piece->addr + piece->n_bytes);
    if (begin >= end)
        return;
    if (from)
        memcpy(piece->bytes + (begin - piece->addr), from + (begin - addr), end - begin);
    else
        memcpy(into + (begin - addr), piece->bytes + (begin - piece->addr), end - begin);
}

static bool is_inside(const struct piece *piece, haddr_t addr, size_t n_bytes)
{
    return piece->addr <= addr && addr + n_bytes <= piece->addr + piece->n_bytes;
}

static int add_piece(struct driver_file *file, H5FD_mem_t type, haddr_t addr, size_t n_bytes,
                     const void *bytes)
{
    for (size_t i = 0; i < file->n_pieces; i++)
        if (is_inside(&file->pieces[i], addr, n_bytes))
            return 0; /* its bytes are there already */
    if (file->n_pieces == file->n_room) {
        size_t n_room = 2 * file->n_room + 16;
        struct piece *pieces = realloc(file->pieces, n_room * sizeof(*pieces));
        if (!pieces)
            return failed(ENOMEM, "keeping a change");
        file->pieces = pieces;
        file->n_room = n_room;
    }
    uint8_t *copy = malloc(n_bytes);
    if (!copy)
        return failed(ENOMEM, "keeping a change");
    memcpy(copy, bytes, n_bytes);
    enum piece_kind kind = type == H5FD_MEM_SUPER && addr == file->base.base_addr ? PIECE_SUPERBLOCK
                           : type == H5FD_MEM_LHEAP                               ? PIECE_HEAP
                                                                                  : PIECE_OTHER;
    file->pieces[file->n_pieces++] = (struct piece){addr, n_bytes, kind, copy};
    return 0;
}

static haddr_t end_of_pieces(const struct driver_file *file)
{
    haddr_t end = 0;
    for (size_t i = 0; i < file->n_pieces; i++)
        if (end < file->pieces[i].addr + file->pieces[i].n_bytes)
            end = file->pieces[i].addr + file->pieces[i].n_bytes;
    return end;
}

static void drop_pieces(struct driver_file *file)
{
    while (file->n_pieces > 0)
        free(file->pieces[--file->n_pieces].bytes);
    free(steal_ptr(file->pieces));
}

/* Closing -------------------------------------------------------------------------------------- */

/* New ones first, then the superblock if the file grows, then the old heap of a group's names,
 * which is in two places that HDF5 compares, other old ones, and the superblock of a file that
 * shrinks.
 */
enum { RANK_NEW, RANK_GROWN, RANK_HEAP, RANK_OLD, RANK_SHRUNK, N_RANKS };

static int rank(const struct driver_file *file, const struct piece *piece, bool has_grown)
{
    if (piece->kind == PIECE_SUPERBLOCK)
        return has_grown ? RANK_GROWN : RANK_SHRUNK;
    if (piece->addr >= file->old_end)
        return RANK_NEW;
    return piece->kind == PIECE_HEAP ? RANK_HEAP : RANK_OLD;
}

/* A negative errno. Nothing but system calls: the child may do no more. */
static int write_rank(const struct driver_file *file, int wanted, bool has_grown)
{
    int r = 0;
    for (size_t n = file->n_pieces; n > 0 && r == 0; n--) { /* sorted by address */
        const struct piece *piece = &file->pieces[n - 1];
        if (rank(file, piece, has_grown) == wanted)
            r = file_write(file->fd, piece->bytes, piece->n_bytes, piece->addr);
    }
    return r;
}

/* What the pieces overwrite, from `end` on. */
static int note_old(const struct driver_file *file, uint64_t end)
{
    _cleanup_free_ struct undo_piece *old = calloc(file->n_pieces, sizeof(*old));
    size_t n_old = 0;
    if (!old)
        return -ENOMEM;
    for (size_t i = 0; i < file->n_pieces; i++) {
        const struct piece *piece = &file->pieces[i];
        if (piece->addr < file->old_end)
            old[n_old++] = (struct undo_piece){
                piece->addr, min_u64(piece->n_bytes, file->old_end - piece->addr)};
    }
    return n_old > 0 ? hdf5_undo_note(file->fd, old, n_old, file->old_end, end) : 0;
}

static int change_old(const struct driver_file *file, haddr_t end)
{
    int r = 0;
    for (int i = RANK_NEW + 1; i < N_RANKS && r == 0; i++)
        r = write_rank(file, i, end >= file->old_end);
    return r == 0 && ftruncate(file->fd, (off_t)end) < 0 ? -errno : r;
}

/* By a child that shares our memory, while this thread waits: it is not killed with us, and no
 * signal of the terminal reaches it. If it was killed itself, or there is none, we go on. */
static int change_old_apart(const struct driver_file *file, haddr_t end)
{
    volatile bool is_done = false;
    volatile int r = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t child = vfork();
    if (child == 0) {
        r = change_old(file, end);
        is_done = true;
        _exit(0);
    }
    if (child > 0)
        (void)waitpid(child, NULL, 0); /* the program may have waited for all its children */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_done ? r : change_old(file, end);
}

static int by_address(const void *a, const void *b)
{
    haddr_t x = ((const struct piece *)a)->addr, y = ((const struct piece *)b)->addr;
    return (x > y) - (x < y);
}

/* Those that touch each other are written by one call. So is what follows the superblock: it
 * repeats words of the root group's header, which HDF5 puts behind it, and they must not differ. */
static int join_pieces(struct driver_file *file, bool has_grown)
{
    size_t n = 0;
    for (size_t i = 1; i < file->n_pieces; i++) {
        struct piece *last = &file->pieces[n], *next = &file->pieces[i];
        haddr_t end = next->addr + next->n_bytes;
        int own = rank(file, next, has_grown);
        bool go_together = rank(file, last, has_grown) == own ||
                           (last->kind == PIECE_SUPERBLOCK && own != RANK_NEW);
        if (next->addr > last->addr + last->n_bytes || !go_together) {
            file->pieces[++n] = *next;
            continue;
        }
        if (end > last->addr + last->n_bytes) {
            uint8_t *bytes = realloc(last->bytes, end - last->addr);
            if (!bytes)
                return failed(ENOMEM, "joining changes");
            last->bytes = bytes;
            last->n_bytes = end - last->addr;
            memcpy(bytes + (next->addr - last->addr), next->bytes, next->n_bytes);
        }
        free(next->bytes);
        next->bytes = NULL;
    }
    for (size_t i = n + 1; i < file->n_pieces; i++)
        file->pieces[i].bytes = NULL; /* they have moved */
    file->n_pieces = n + 1;
    return 0;
}

static int write_pieces(struct driver_file *file)
{
    struct stat st;
    haddr_t end = H5FDget_eoa(file->inner, H5FD_MEM_DEFAULT);
    if (file->n_pieces == 0 || end == HADDR_UNDEF)
        return 0;
    if (fstat(file->fd, &st) || ((haddr_t)st.st_size < end && ftruncate(file->fd, (off_t)end)))
        return failed(errno, "making the file longer");
    qsort(file->pieces, file->n_pieces, sizeof(*file->pieces), by_address);
    if (join_pieces(file, end >= file->old_end))
        return -1;
    int r = write_rank(file, RANK_NEW, end >= file->old_end);
    if (r == 0)
        r = note_old(file, max_u64(end, (uint64_t)st.st_size));
    if (r == 0)
        r = change_old_apart(file, end);
    return r < 0 ? failed(-r, "writing a change") : 0;
}

/* Of the last file that was closed. */
static struct {
    int error_number;
    const char *what;
} not_written;

/* HDF5 is not told of a failure: it would keep the file, whose memory it has given back, and crash
 * when it closes all files at the end of the process. */
static herr_t driver_close(H5FD_t *base)
{
    struct driver_file *file = file_of(base);
    bool is_written = write_pieces(file) == 0;
    int error_number = is_written ? 0 : errno;
    drop_pieces(file);
    if (H5FDclose(file->inner) < 0 && is_written)
        error_number = EIO;
    free(file);
    not_written.error_number = error_number;
    not_written.what = is_written ? "closing" : "writing the changes";
    return 0;
}

herr_t hdf5_driver_close(hid_t file)
{
    not_written.error_number = 0;
    herr_t r = H5Fclose(file);
    return r >= 0 && not_written.error_number ? failed(not_written.error_number, not_written.what)
                                              : r;
}

enum gad_status hdf5_driver_failure(void)
{
    int number = not_written.error_number;
    return number == ENOSPC || number == EDQUOT ? GAD_NO_SPACE : GAD_IO_ERROR;
}

/* Opening, reading, writing -------------------------------------------------------------------- */

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t max)
{
    void *handle = NULL;
    struct driver_file *file = calloc(1, sizeof(*file));
    _cleanup_hid_ hid_t own = H5Pcreate(H5P_FILE_ACCESS);
    (void)fapl;
    if (file && own > 0 && hdf5_file_set_locking(own) >= 0)
        file->inner = H5FDopen(name, flags, own, max);
    if (file && file->inner && H5FDget_vfd_handle(file->inner, own, &handle) >= 0 && handle) {
        file->fd = *(int *)handle;
        file->old_end = H5FDget_eof(file->inner, H5FD_MEM_DEFAULT);
        return &file->base;
    }
    if (file && file->inner)
        H5FDclose(file->inner);
    free(file);
    return NULL;
}

static herr_t driver_read(H5FD_t *base, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t n_bytes,
                          void *buffer)
{
    const struct driver_file *file = file_of(base);
    if (H5FDread(file->inner, type, dxpl, addr, n_bytes, buffer) < 0)
        return -1;
    for (size_t i = 0; i < file->n_pieces; i++)
        copy_overlap(&file->pieces[i], addr, n_bytes, buffer, NULL);
    return 0;
}

/* Elements go into the file at once: nothing leads to them yet, or they are what is changed. */
static herr_t driver_write(H5FD_t *base, H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t n_bytes,
                           const void *buffer)
{
    struct driver_file *file = file_of(base);
    for (size_t i = 0; i < file->n_pieces; i++)
        copy_overlap(&file->pieces[i], addr, n_bytes, NULL, buffer);
    if (type == H5FD_MEM_DRAW)
        return H5FDwrite(file->inner, type, dxpl, addr, n_bytes, buffer);
    return add_piece(file, type, addr, n_bytes, buffer);
}

static haddr_t driver_get_eof(const H5FD_t *base, H5FD_mem_t type)
{
    haddr_t kept = end_of_pieces(file_of(base)), end = H5FDget_eof(file_of(base)->inner, type);
    return kept > end ? kept : end;
}

static herr_t driver_flush(H5FD_t *base, hid_t dxpl, hbool_t is_closing)
{
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *base, H5FD_mem_t type)
{
    return H5FDget_eoa(file_of(base)->inner, type);
}

static herr_t driver_set_eoa(H5FD_t *base, H5FD_mem_t type, haddr_t addr)
{
    return H5FDset_eoa(file_of(base)->inner, type, addr);
}

static int driver_cmp(const H5FD_t *a, const H5FD_t *b)
{
    return H5FDcmp(file_of(a)->inner, file_of(b)->inner);
}

/* The second one would have HDF5 look for the name of a file that has none. */
static herr_t driver_query(const H5FD_t *base, unsigned long *flags)
{
    const unsigned long not_ours = H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_POSIX_COMPAT_HANDLE;
    herr_t r = base ? H5FDquery(file_of(base)->inner, flags) : 0;
    *flags = base ? *flags & ~not_ours : 0;
    return r;
}

static herr_t driver_get_handle(H5FD_t *base, hid_t fapl, void **handle)
{
    *handle = &file_of(base)->fd;
    return 0;
}

static herr_t driver_lock(H5FD_t *base, hbool_t is_exclusive)
{
    return H5FDlock(file_of(base)->inner, is_exclusive);
}

static herr_t driver_unlock(H5FD_t *base)
{
    return H5FDunlock(file_of(base)->inner);
}

static const H5FD_class_t driver = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
    .value = OWN_NUMBER,
#endif
    .name = "gpuarrayd",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .open = driver_open,
    .close = driver_close,
    .cmp = driver_cmp,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .get_handle = driver_get_handle,
    .read = driver_read,
    .write = driver_write,
    .flush = driver_flush,
    .truncate = driver_flush, /* when it is closed */
    .lock = driver_lock,
    .unlock = driver_unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

herr_t hdf5_driver_use(hid_t access_plist)
{
    static hid_t id;
    if (id <= 0 || H5Iis_valid(id) <= 0) /* the program may have ended HDF5 */
        id = H5FDregister(&driver);
    return id > 0 ? H5Pset_driver(access_plist, id, NULL) : -1;
}
