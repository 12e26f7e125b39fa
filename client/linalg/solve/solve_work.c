/* The file of a factor, and how far it is.
 *
 *     0        struct state: what it is of, columns that are done
 *     4096     pivots, n numbers
 *     ...      two times two rows: what is exchanged at the moment
 *     ...      the matrix, n x n, in C order
 *
 * Without a checkpoint the file has no name and only the matrix counts; or it is the result itself,
 * which appears when it is whole.
 *
 * Whatever kills the process, the same factor comes out. A panel that was not finished is made
 * again: it depends on the matrix and on columns that are done. Exchanging rows of these is not
 * to be done twice: both rows are kept first, and then the state says so; who goes on writes them
 * again. There are two places for them, so that those that the state tells of are never being
 * written.
 */
#include "client/clock.h"
#include "client/formats/files/file_lock.h"
#include "client/formats/files/file_output.h"
#include "client/linalg/checkpoint.h"
#include "client/linalg/solve/solve.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define PAGE          4096
#define MAGIC         "gadfact1"
#define LOCK_WAIT_MS  2000
#define LOCK_RETRY_MS 10

struct state {
    char magic[8];
    uint64_t digest;
    int64_t n, n_done, swap_end, swap_next;
    uint32_t slot;
    char kind;
};

/* ---- bytes ---- */

static int failed(const struct solve_work *w, int error_number, const char *what,
                  struct gad_error *error)
{
    if (error_number == ENOSPC || error_number == EDQUOT)
        return error_set(error, GAD_NO_SPACE, "scratch", "the disk is full: %s the factor", what);
    return error_from_errno(error, error_number, w->path ? w->path : "the factor", what);
}

static int put(const struct solve_work *w, const void *data, size_t n_bytes, uint64_t at,
               struct gad_error *error)
{
    while (n_bytes > 0) {
        ssize_t n = pwrite(w->fd, data, n_bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return failed(w, errno, "writing", error);
        data = (const char *)data + n;
        n_bytes -= (size_t)n;
        at += (uint64_t)n;
    }
    return 0;
}

static int get(const struct solve_work *w, void *ret, size_t n_bytes, uint64_t at,
               struct gad_error *error)
{
    while (n_bytes > 0) {
        ssize_t n = pread(w->fd, ret, n_bytes, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return failed(w, n < 0 ? errno : EIO, "reading", error);
        ret = (char *)ret + n;
        n_bytes -= (size_t)n;
        at += (uint64_t)n;
    }
    return 0;
}

static uint64_t place(const struct solve_work *w, int64_t row, int64_t column)
{
    return w->offset_bytes + ((uint64_t)row * (uint64_t)w->n + (uint64_t)column) * sizeof(double);
}

int solve_work_read(const struct solve_work *w, int64_t row, int64_t n_rows, int64_t column,
                    int64_t n_columns, double *ret, int64_t stride, struct gad_error *error)
{
    int r = 0;
    for (int64_t i = 0; i < n_rows && r == 0; i++)
        r = get(w, ret + i * stride, (size_t)n_columns * sizeof(*ret), place(w, row + i, column),
                error);
    return r;
}

int solve_work_write(const struct solve_work *w, int64_t row, int64_t n_rows, int64_t column,
                     int64_t n_columns, const double *data, int64_t stride, struct gad_error *error)
{
    int r = 0;
    for (int64_t i = 0; i < n_rows && r == 0; i++)
        r = put(w, data + i * stride, (size_t)n_columns * sizeof(*data), place(w, row + i, column),
                error);
    return r;
}

/* ---- state ---- */

static uint64_t pivots_bytes(int64_t n)
{
    return round_up_u64((uint64_t)n * sizeof(int64_t), PAGE);
}

static uint64_t slot_place(const struct solve_work *w, unsigned slot)
{
    return PAGE + pivots_bytes(w->n) + slot * 2 * pivots_bytes(w->n);
}

static int put_state(const struct solve_work *w, char kind, struct gad_error *error)
{
    if (!w->has_state)
        return 0;
    struct state state = {.magic = MAGIC,
                          .digest = w->digest,
                          .n = w->n,
                          .n_done = w->n_done,
                          .swap_end = w->swap_end,
                          .swap_next = w->swap_next,
                          .slot = w->slot,
                          .kind = kind};
    return put(w, &state, sizeof(state), 0, error);
}

static uint64_t digest_of(const struct gad_array *a)
{
    const struct gad_operand operand = {.array = (struct gad_array *)a};
    const struct gad_array_info *info = &a->info;
    struct checkpoint c;
    checkpoint_init(&c, NULL, &operand, info->dtype, info->ndim, info->shape);
    for (int64_t i = 0; i < info->shape[0] && a->data; i++) { /* in memory: some of the elements */
        int64_t column = i * 7919 % info->shape[1];
        double value = 0;
        memcpy(&value, (char *)a->data + i * info->strides[0] + column * info->strides[1],
               gad_dtype_size(info->dtype));
        checkpoint_mark(&c, value);
    }
    return c.digest;
}

static int not_of_this(const struct solve_work *w, const char *why, struct gad_error *error)
{
    error_set(error, GAD_BAD_CHECKPOINT, "checkpoint", "%s %s", w->path, why);
    error_expected(error, "the file of the same call, or none");
    error_found(error, "a file that %s", why);
    return GAD_BAD_CHECKPOINT;
}

static int take_state(struct solve_work *w, char kind, struct gad_error *error)
{
    struct state state;
    struct stat st;
    if (fstat(w->fd, &st) == 0 && st.st_size < (off_t)sizeof(state))
        return not_of_this(w, "is no checkpoint of a factorisation", error);
    int r = get(w, &state, sizeof(state), 0, error);
    if (r)
        return r;
    if (memcmp(state.magic, MAGIC, sizeof(state.magic)) != 0)
        return not_of_this(w, "is no checkpoint of a factorisation", error);
    if (state.n != w->n || state.digest != w->digest || state.kind != kind)
        return not_of_this(w, "is a checkpoint of another matrix, or of another factor", error);
    if (state.n_done < 0 || state.swap_end < state.n_done || state.swap_end > w->n ||
        state.swap_next >= state.swap_end || state.slot > 1)
        return not_of_this(w, "is damaged", error);
    w->n_done = state.n_done;
    w->swap_end = state.swap_end;
    w->swap_next = state.swap_next;
    w->slot = state.slot;
    r = get(w, w->pivots, (size_t)w->n * sizeof(*w->pivots), PAGE, error);
    for (int64_t i = 0; i < w->swap_end && r == 0; i++)
        if (kind == 'L' && (w->pivots[i] < i || w->pivots[i] >= w->n))
            r = not_of_this(w, "is damaged", error);
    return r;
}

/* ---- exchanging rows ---- */

static int write_rows(const struct solve_work *w, int64_t i, const double *rows,
                      struct gad_error *error)
{
    int r = solve_work_write(w, i, 1, 0, w->n_done, rows + w->n_done, w->n, error);
    if (r == 0)
        r = solve_work_write(w, w->pivots[i], 1, 0, w->n_done, rows, w->n, error);
    return r;
}

static int swap_row(struct solve_work *w, int64_t i, double *rows, struct gad_error *error)
{
    size_t n_bytes = 2 * (size_t)w->n_done * sizeof(*rows);
    int r = solve_work_read(w, i, 1, 0, w->n_done, rows, w->n, error);
    if (r == 0)
        r = solve_work_read(w, w->pivots[i], 1, 0, w->n_done, rows + w->n_done, w->n, error);
    if (r == 0 && w->has_state) {
        w->slot = !w->slot;
        w->swap_next = i;
        r = put(w, rows, n_bytes, slot_place(w, w->slot), error);
        if (r == 0)
            r = put_state(w, 'L', error);
    }
    return r ? r : write_rows(w, i, rows, error);
}

static int swap_again(struct solve_work *w, double *rows, struct gad_error *error)
{
    int r = get(w, rows, 2 * (size_t)w->n_done * sizeof(*rows), slot_place(w, w->slot), error);
    return r ? r : write_rows(w, w->swap_next, rows, error);
}

/* From where the state says. */
static int swap_rest(struct solve_work *w, struct gad_error *error)
{
    _cleanup_free_ double *rows = malloc((2 * (size_t)w->n_done + 1) * sizeof(*rows));
    if (!rows)
        return -ENOMEM;
    int64_t first = max_i64(w->n_done, w->swap_next + 1);
    int r = w->swap_next >= 0 && w->n_done > 0 ? swap_again(w, rows, error) : 0;
    for (int64_t i = first; i < w->swap_end && r == 0 && w->n_done > 0; i++)
        if (w->pivots[i] != i)
            r = swap_row(w, i, rows, error);
    return r;
}

int solve_work_swap(struct solve_work *w, int64_t end, struct gad_error *error)
{
    w->swap_end = end;
    w->swap_next = -1;
    int r = 0;
    if (w->has_state)
        r = put(w, w->pivots + w->n_done, (size_t)(end - w->n_done) * sizeof(*w->pivots),
                PAGE + (uint64_t)w->n_done * sizeof(*w->pivots), error);
    if (r == 0)
        r = put_state(w, 'L', error);
    if (r == 0)
        r = swap_rest(w, error);
    return r ? r : solve_work_done(w, end, 'L', error);
}

int solve_work_done(struct solve_work *w, int64_t end, char kind, struct gad_error *error)
{
    w->n_done = w->swap_end = end;
    w->swap_next = -1;
    return put_state(w, kind, error);
}

/* ---- opening ---- */

static int open_unnamed(const char *folder)
{
    char name[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
        return fd;
    if (snprintf(name, sizeof(name), "%s/gpuarrayd-XXXXXX", folder) >= (int)sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(name);
    return fd;
}

static int open_checkpoint(struct solve_work *w, bool *ret_is_new, struct gad_error *error)
{
    struct stat st;
    w->fd = open(w->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (w->fd < 0 || fstat(w->fd, &st) < 0)
        return error_from_errno(error, errno, w->path, "opening a checkpoint");
    /* Of a program that was killed the daemon has it for a moment longer. */
    for (int ms = 0; flock(w->fd, LOCK_EX | LOCK_NB) < 0; ms += LOCK_RETRY_MS) {
        if (ms < LOCK_WAIT_MS && errno == EWOULDBLOCK) {
            clock_sleep_ms(LOCK_RETRY_MS);
            continue;
        }
        char holder[64];
        file_lock_holder(&st, true, holder, sizeof(holder));
        return error_set(error, GAD_BUSY, "checkpoint", "%s is in use%s%s", w->path,
                         holder[0] ? " by " : "", holder);
    }
    *ret_is_new = st.st_size == 0;
    if (!S_ISREG(st.st_mode))
        return not_of_this(w, "is no file", error);
    return 0;
}

static int open_file(struct solve_work *w, const struct solve *s, bool *ret_is_new,
                     struct gad_error *error)
{
    const char *folder = s->options->scratch ? s->options->scratch : secure_getenv("TMPDIR");
    w->owns_fd = true;
    w->offset_bytes = slot_place(w, 2);
    *ret_is_new = true;
    if (s->options->checkpoint && !s->only_plans) {
        w->has_state = true;
        w->path = strdup(s->options->checkpoint);
        return w->path ? open_checkpoint(w, ret_is_new, error) : -ENOMEM;
    }
    if (!folder || !folder[0])
        folder = "/var/tmp";
    w->fd = open_unnamed(folder);
    return w->fd < 0 ? error_from_errno(error, errno, folder, "making a scratch file") : 0;
}

static int set_size(struct solve_work *w, const struct solve *s, struct gad_error *error)
{
    uint64_t n_bytes = w->offset_bytes + (uint64_t)w->n * (uint64_t)w->n * sizeof(double);
    bool is_reserved;
    if (ftruncate(w->fd, (off_t)n_bytes) < 0)
        return failed(w, errno, "making", error);
    if (s->only_plans)
        return 0;
    return file_reserve(w->fd, 0, n_bytes, w->path ? w->path : "the factor", "scratch",
                        &is_reserved, error);
}

static int add_array(struct solve_work *w, const struct solve *s, struct gad_error *error)
{
    const int64_t shape[] = {w->n, w->n};
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 2, .shape = shape};
    return (int)gad_array_from_file(s->client, w->fd, &layout, w->offset_bytes, true, &w->array,
                                    error);
}

int solve_work_open(struct solve *s, char kind, struct gad_array *take, struct gad_error *error)
{
    struct solve_work *w = &s->work;
    bool is_new = true;
    *w = (struct solve_work){.n = s->n, .fd = -1, .swap_next = -1};
    w->pivots = calloc((size_t)w->n + 1, sizeof(*w->pivots));
    if (!w->pivots)
        return -ENOMEM;
    if (take) {
        w->array = array_ref(take);
        w->fd = take->fd;
        w->offset_bytes = take->offset_bytes;
        return 0;
    }
    int r = open_file(w, s, &is_new, error);
    if (r == 0 && w->has_state)
        w->digest = digest_of(s->a);
    if (r == 0 && is_new)
        r = set_size(w, s, error);
    if (r == 0)
        r = is_new ? put_state(w, kind, error) : take_state(w, kind, error);
    if (r == 0 && w->swap_end > w->n_done)
        r = swap_rest(w, error);
    if (r == 0 && w->swap_end > w->n_done)
        r = solve_work_done(w, w->swap_end, kind, error);
    s->solved.n_continued = w->n_done;
    return r ? r : add_array(w, s, error);
}

void solve_work_close(struct solve *s, bool is_over)
{
    struct solve_work *w = &s->work;
    if (w->path && w->fd >= 0 && is_over)
        (void)unlink(w->path);
    gad_array_release(w->array);
    if (w->owns_fd && w->fd >= 0)
        close(w->fd);
    free(w->pivots);
    free(w->path);
    *w = (struct solve_work){.fd = -1};
}
