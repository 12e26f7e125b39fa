/* Members that are open: a bounded number of them, the ones that were used last.
 *
 * A thread takes a member for one block and lets it go. Nothing is opened or closed under the lock:
 * two threads that miss the same member both open it, and one of them closes its own again. What
 * is over the limit is closed, the one that was not used for longest first. The limit holds for all
 * arrays of the process together; each may always have open what it is reading.
 *
 * A plain member is a descriptor. Others are arrays of their formats, which may keep chunks that
 * they have decoded, so that fewer of them are open.
 *
 * Whatever is opened again must be what it was. The elements of a plain member are where they were
 * only if its file was not written since; a dataset of a file that was written is looked up anew,
 * unless its reader watches for that (watched.c).
 *
 * Called by many_provider.c.
 */
#include "client/formats/files/file_source.h"
#include "client/formats/many/many_impl.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#define MAX_OPEN     64u
#define ARRAY_COUNTS 8u /* as many descriptors as an array that may keep chunks counts for */
#define SHARE        8u /* of the descriptors that the process may have */

static atomic_uint n_open_of_all;

/* Failures ------------------------------------------------------------------------------------- */

int many_fail(struct many *many, int error_number, const struct gad_error *error)
{
    struct opened *failed = NULL;
    pthread_mutex_lock(&many->lock);
    if (error_number == ESTALE) /* what else was wrong comes of it */
        failed = steal_ptr(many->failed);
    if (error_number == ESTALE || (many->failure.status == GAD_OK && !many->failed))
        many->failure = *error;
    pthread_mutex_unlock(&many->lock);
    if (failed)
        many_let_go(many, failed);
    return error_number;
}

static int fail_by_number(struct many *many, const struct member *member, int error_number)
{
    struct gad_error error;
    file_path_error(&error, error_number, member->path, member->name);
    return many_fail(many, error_number, &error);
}

static bool can_explain(const struct opened *opened)
{
    return opened->array && opened->array->provider->explain;
}

int many_fail_read(struct many *many, struct opened *opened, int error_number)
{
    const struct member *member = opened->member;
    struct gad_error error;
    bool is_kept = false;
    if (many_check(many, member)) {
        many_let_go(many, opened);
        return ESTALE;
    }
    pthread_mutex_lock(&many->lock);
    if (can_explain(opened) && many->failure.status == GAD_OK && !many->failed) {
        many->failed = opened;
        is_kept = true;
    }
    pthread_mutex_unlock(&many->lock);
    if (is_kept)
        return error_number;
    many_let_go(many, opened);
    if (error_number != ENODATA)
        return fail_by_number(many, member, error_number);
    error_set(&error, GAD_SHORT_READ, member->name, "'%.200s' was cut short after it was opened",
              member->path);
    return many_fail(many, error_number, &error);
}

/* No block is served any more. */
void many_explain(void *state, struct gad_error *error)
{
    struct many *many = state;
    const struct gad_error *failure = &many->failure;
    char argument[sizeof(error->argument)];
    if (many->failed) {
        const struct gad_array *array = many->failed->array;
        array->provider->explain(array->provider_state, error);
        many_let_go(many, steal_ptr(many->failed));
    } else if (failure->status) {
        memcpy(argument, error->argument, sizeof(argument)); /* error_set() empties it first */
        error_set(error, GAD_PROVIDER_FAILED, argument, "%s", failure->message);
        error_expected(error, "%s", failure->expected);
        error_found(error, "%s", failure->found);
    }
    many->failure.status = GAD_OK;
}

static int errno_of(int status)
{
    switch (status) {
    case GAD_NOT_FOUND: return ENOENT;
    case GAD_PERMISSION: return EACCES;
    case GAD_BUSY: return EBUSY;
    case GAD_SHORT_READ: return ENODATA;
    case GAD_NO_MEMORY: return ENOMEM;
    default: return EIO;
    }
}

int many_fail_changed(struct many *many, const struct member *member, const struct file_mark *now)
{
    struct gad_error error;
    bool is_same = file_mark_is_same_file(&member->mark, now);
    bool is_short = is_same && now->size < member->mark.size;
    error_set(&error, is_short ? GAD_SHORT_READ : GAD_NOT_FOUND, member->name,
              "'%.200s' was %s after it was opened: open the array again", member->path,
              !is_same   ? "replaced"
              : is_short ? "cut short"
                         : "written to");
    error_expected(&error, "the file as it was, of %" PRIu64 " bytes", (uint64_t)member->mark.size);
    error_found(&error, "%s of %" PRIu64 " bytes", is_same ? "it" : "another one",
                (uint64_t)now->size);
    return many_fail(many, is_short && !many->is_watched ? ENODATA : ESTALE, &error);
}

/* The list, under the lock --------------------------------------------------------------------- */

static unsigned counts(const struct opened *opened)
{
    return opened->array ? ARRAY_COUNTS : 1;
}

static void list_put(struct many *many, struct opened *opened)
{
    opened->newer = NULL;
    opened->older = many->newest;
    *(many->newest ? &many->newest->newer : &many->oldest) = opened;
    many->newest = opened;
}

static void list_take(struct many *many, struct opened *opened)
{
    *(opened->newer ? &opened->newer->older : &many->newest) = opened->older;
    *(opened->older ? &opened->older->newer : &many->oldest) = opened->newer;
}

unsigned many_max_open(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / SHARE >= MAX_OPEN)
        return MAX_OPEN;
    return (unsigned)max_u64(limit.rlim_cur / SHARE, 1);
}

/* Takes one out that is to be closed; NULL: all may stay. most: that may be open. */
static struct opened *take_idle(struct many *many, unsigned most)
{
    if (atomic_load_explicit(&n_open_of_all, memory_order_relaxed) <= most)
        return NULL;
    struct opened *opened = many->oldest;
    while (opened && opened->n_users > 0)
        opened = opened->newer;
    if (!opened)
        return NULL;
    list_take(many, opened);
    opened->member->opened = NULL;
    atomic_fetch_sub_explicit(&n_open_of_all, counts(opened), memory_order_relaxed);
    return opened;
}

/* Opening and closing, without the lock -------------------------------------------------------- */

static struct opened *opened_free(struct opened *opened)
{
    if (!opened)
        return NULL;
    gad_array_release(opened->array);
    close_fd(&opened->fd);
    pthread_mutex_destroy(&opened->turn);
    free(opened);
    return NULL;
}

static void close_idle(struct many *many, unsigned most)
{
    struct opened *opened;
    do {
        pthread_mutex_lock(&many->lock);
        opened = take_idle(many, most);
        pthread_mutex_unlock(&many->lock);
        if (opened && many_check(many, opened->member))
            many->has_changed = true; /* after it was read, and nobody would look at it again */
        opened_free(opened);
    } while (opened);
}

void many_close_all(struct many *many)
{
    close_idle(many, 0);
}

/* What is there is a regular file if it is the one that was. Returns a positive errno. */
static int open_plain(struct many *many, const struct member *member, int *ret_fd)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int fd = open(member->path, flags);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        many_close_all(many);
        fd = open(member->path, flags);
    }
    if (fd < 0)
        return fail_by_number(many, member, errno);
    *ret_fd = fd;
    return 0;
}

/* Returns a positive errno. */
static int open_array(struct many *many, const struct member *member, struct gad_array **ret_array)
{
    struct gad_error error;
    struct gad_array *array;
    struct stat st;
    int r = member_open(member, NULL, &array, &error);
    if (r)
        return many_fail(many, errno_of(r), &error);
    bool is_same = (enum dtype)array->info.dtype == many->form.dtype &&
                   array->info.is_swapped == member->is_swapped &&
                   array->info.ndim == many->member_ndim && array->provider;
    for (int i = 0, own = 0; i < many->form.ndim && is_same; i++) {
        int64_t wanted = i == many->axis ? member->length : many->form.shape[i];
        if (!many->is_new_axis || i != many->axis)
            is_same = array->info.shape[own++] == wanted;
    }
    if (is_same && stat(member->path, &st) < 0)
        r = fail_by_number(many, member, errno);
    struct file_mark now = member->mark;
    if (is_same && r == 0)
        file_mark_of(&st, &now);
    if (r == 0 && (!is_same || !file_mark_is_same_file(&now, &member->mark)))
        r = many_fail_changed(many, member, &now);
    if (r == 0)
        r = many_check_inside(many, member, array);
    return array_settle(array, r, ret_array);
}

/* is_plain: of the member, read under the lock. */
static int opened_new(struct many *many, struct member *member, bool is_plain,
                      struct opened **ret_opened)
{
    int r = many_check(many, member);
    struct opened *opened = r ? NULL : calloc(1, sizeof(*opened));
    if (!opened)
        return r ? r : ENOMEM;
    opened->member = member;
    opened->fd = -1;
    opened->n_users = 1;
    pthread_mutex_init(&opened->turn, NULL);
    r = is_plain ? open_plain(many, member, &opened->fd) : open_array(many, member, &opened->array);
    if (r && many_check(many, member))
        r = ESTALE;
    if (r) {
        opened_free(opened);
        return r;
    }
    *ret_opened = opened;
    return 0;
}

/* Users ---------------------------------------------------------------------------------------- */

/* The member's, if it is open; under the lock. */
static struct opened *use(struct many *many, struct member *member)
{
    struct opened *opened = member->opened;
    if (!opened)
        return NULL;
    opened->n_users++;
    list_take(many, opened);
    list_put(many, opened);
    return opened;
}

/* Unless another thread was faster. */
static struct opened *keep(struct many *many, struct member *member, struct opened *made)
{
    pthread_mutex_lock(&many->lock);
    struct opened *there = use(many, member);
    if (!there) {
        member->opened = made;
        list_put(many, made);
        atomic_fetch_add_explicit(&n_open_of_all, counts(made), memory_order_relaxed);
    }
    pthread_mutex_unlock(&many->lock);
    if (!there)
        return made;
    opened_free(made);
    return there;
}

static int open_member(struct many *many, struct member *member, struct opened **ret_opened)
{
    struct opened *made;
    pthread_mutex_lock(&many->lock);
    struct opened *opened = use(many, member);
    bool is_plain = member->is_plain;
    pthread_mutex_unlock(&many->lock);
    if (!opened) {
        int r = opened_new(many, member, is_plain, &made);
        if (r)
            return r;
        opened = keep(many, member, made);
        close_idle(many, many->max_open);
    }
    *ret_opened = opened;
    return 0;
}

/* The file was written to, so that the dataset may lie elsewhere: it is no plain one any more. Who
 * lets it go last closes it. */
static void forget_place(struct many *many, struct opened *opened)
{
    pthread_mutex_lock(&many->lock);
    if (opened->member->opened == opened) {
        list_take(many, opened);
        opened->member->opened = NULL;
        opened->member->is_plain = false;
        opened->is_out = true;
        atomic_fetch_sub_explicit(&n_open_of_all, counts(opened), memory_order_relaxed);
    }
    pthread_mutex_unlock(&many->lock);
    many_let_go(many, opened);
}

/* Whether a plain member is as it was; 0 or a positive errno. */
static int check(struct many *many, const struct opened *opened, bool *ret_is_moved)
{
    const struct member *member = opened->member;
    struct file_mark now;
    struct stat st;
    *ret_is_moved = false;
    if (opened->array)
        return 0;
    if (fstat(opened->fd, &st) < 0)
        return fail_by_number(many, member, errno);
    file_mark_of(&st, &now);
    if (file_mark_is_same(&now, &member->mark))
        return 0;
    *ret_is_moved =
        !many->is_watched && member->spec->dataset && file_mark_is_same_file(&now, &member->mark);
    return *ret_is_moved ? 0 : many_fail_changed(many, member, &now);
}

int many_acquire(struct many *many, struct member *member, struct opened **ret_opened)
{
    struct opened *opened;
    bool is_moved;
    do {
        int r = open_member(many, member, &opened);
        if (r)
            return r;
        r = check(many, opened, &is_moved);
        if (r) {
            many_let_go(many, opened);
            return r;
        }
        if (is_moved)
            forget_place(many, opened);
    } while (is_moved); /* once: it is an array then */
    *ret_opened = opened;
    return 0;
}

void many_let_go(struct many *many, struct opened *opened)
{
    pthread_mutex_lock(&many->lock);
    bool is_last = --opened->n_users == 0 && opened->is_out;
    pthread_mutex_unlock(&many->lock);
    if (is_last)
        opened_free(opened);
}
