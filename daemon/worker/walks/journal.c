/* The journal's file.
 *
 *     0        4096     8192                  data
 *     | head    | marks  | sums | cell heads   | cell | cell | cell | ...
 *
 * Per tile: its grains to the cells, a mark (it is in the journal), the cells to the output, a mark
 * (it is in the output). The next tile's cells are written after that. Whatever is interrupted, the
 * last mark says what to do: compute the tile behind it anew, whose place in the output was not
 * touched yet, or write the cells to the output again, which is the same however often it is done.
 *
 * Every tile that is in the journal whole leaves a sum of what it gave, and a cell's head says what
 * the output had in its place before: so a job that goes on finds out whether the output is still
 * the one that the journal tells of (journal_check.c).
 *
 * Marks alternate between two places, each with a checksum; the later one counts. They are written
 * by one thread each, when the turns before have ended, so what the kernel has of the file is in
 * that order too. A new journal gets its length first and its head then: one that is shorter, or
 * whose marks are neither whole nor missing, is damaged, and not taken for a new one.
 *
 * The head names the job: texts, dtypes, shapes, strides, numbers, which files and which output. A
 * file that names another is refused, and so is one whose cells are not what was written. What it
 * says is checked before it is used: the client can write to it at any time.
 *
 * Called by an I/O thread before a job's first turn, and by its turns.
 */
#include "daemon/worker/walks/journal.h"
#include "daemon/worker/io/boxio.h"
#include "daemon/worker/walks/journal_file.h"
#include "daemon/worker/walks/walk_product.h"
#include "kernels/plan/plan_engine.h"
#include "proto/util.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define NAME "journal"

/* A lock is the open file's, so for two jobs that were sent the same one it is none: those of this
 * process are kept here too. */
static struct {
    pthread_mutex_t lock;
    struct journal *first;
} in_use = {PTHREAD_MUTEX_INITIALIZER, NULL};

const char *journal_state_name(enum journal_state state)
{
    static const char *const names[] = {
        [JOURNAL_NEW] = "new", [JOURNAL_CONTINUED] = "continued", [JOURNAL_COMPLETE] = "complete"};
    return names[state];
}

static int bad(struct gad_error *error, const char *message)
{
    return error_set(error, GAD_BAD_JOURNAL, NAME, "%s", message);
}

/* Beginning and end -------------------------------------------------------------------------- */

/* Whoever goes on compares it with the journal. */
static int refuse_unreadable(const struct port *port, struct gad_error *error)
{
    error_set(error, GAD_BAD_JOURNAL, NAME, "the file of '%s' must be open for reading, too",
              port->name);
    error_expected(error, "with a journal, an output that is open for reading and writing");
    error_found(error, "one that is open for writing alone");
    return GAD_BAD_JOURNAL;
}

static int check_file(const struct wjob *job, struct journal *j, struct gad_error *error)
{
    struct stat st;
    int flags = fcntl(j->fd, F_GETFL);
    if (flags < 0 || fstat(j->fd, &st) < 0)
        return error_from_errno(error, errno, NAME, "looking at the journal");
    if (!S_ISREG(st.st_mode))
        return bad(error, "the journal is not a regular file");
    if ((flags & O_ACCMODE) != O_RDWR || flags & O_APPEND)
        return bad(error, "the journal must be open for reading and writing, without O_APPEND");
    j->device = st.st_dev;
    j->inode = st.st_ino;
    for (unsigned i = 0; i < job->n_ports; i++) {
        const struct port *port = &job->ports[i];
        int fd = port->array.at.kind == LOCATION_FILE ? port->file.fd
                 : port->region                       ? port->region->fd
                                                      : -1;
        struct stat other;
        if (i >= job->program->n_inputs && port->array.at.kind == LOCATION_FILE &&
            (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDWR)
            return refuse_unreadable(port, error);
        if (fd >= 0 && fstat(fd, &other) == 0 && other.st_dev == st.st_dev &&
            other.st_ino == st.st_ino)
            return error_set(error, GAD_BAD_JOURNAL, NAME, "the journal is the file of '%s'",
                             port->name);
    }
    return 0;
}

int journal_new(struct wjob *job, struct gad_error *error)
{
    struct journal *j = calloc(1, sizeof(*j));
    if (!j)
        return -ENOMEM;
    job->walk.journal = j;
    if (job->request->journal_fd_index >= job->frame.n_fds)
        return error_set(error, GAD_BAD_DESCRIPTOR, NAME, "the journal was not sent");
    j->fd = job->frame.fds[job->request->journal_fd_index];
    return check_file(job, j, error);
}

void journal_close(struct wjob *job)
{
    struct journal *j = job->walk.journal;
    struct flock none = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (!j || !j->is_locked)
        return;
    pthread_mutex_lock(&in_use.lock);
    struct journal **p = &in_use.first;
    while (*p != j)
        p = &(*p)->next;
    *p = j->next;
    (void)fcntl(j->fd, F_OFD_SETLK, &none);
    j->is_locked = false;
    pthread_mutex_unlock(&in_use.lock);
}

void journal_free(struct wjob *job)
{
    free(job->walk.journal);
    job->walk.journal = NULL;
}

/* Reading and writing ------------------------------------------------------------------------ */

static struct boxio run_of(const struct journal *j, uint64_t offset, uint64_t n_bytes)
{
    return (struct boxio){.fd = j->fd,
                          .device = j->device,
                          .name = NAME,
                          .offset = (int64_t)offset,
                          .item_bytes = (int64_t)n_bytes};
}

static int write_run(const struct journal *j, const void *memory, uint64_t offset, uint64_t n_bytes,
                     const struct port_io *io, struct gad_error *error)
{
    const struct boxio run = run_of(j, offset, n_bytes);
    return boxio_write(&run, memory, io, error);
}

static int read_run(const struct journal *j, void *memory, uint64_t offset, uint64_t n_bytes,
                    const struct port_io *io, struct gad_error *error)
{
    const struct boxio run = run_of(j, offset, n_bytes);
    int r = boxio_read(&run, memory, io, error);
    if (r != GAD_SHORT_READ)
        return r;
    bad(error, "the journal is cut: a finished tile is not in it whole");
    error_expected(error, "%" PRIu64 " bytes", offset + n_bytes);
    return GAD_BAD_JOURNAL;
}

/* How far it is ------------------------------------------------------------------------------ */

/* errno. in_use.lock held. */
static int try_lock(struct journal *j)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (const struct journal *other = in_use.first; other; other = other->next)
        if (other->device == j->device && other->inode == j->inode)
            return EAGAIN;
    if (fcntl(j->fd, F_OFD_SETLK, &all) < 0)
        return errno;
    j->is_locked = true;
    j->next = in_use.first;
    in_use.first = j;
    return 0;
}

static int lock(struct journal *j, struct gad_error *error)
{
    pthread_mutex_lock(&in_use.lock);
    int r = try_lock(j);
    pthread_mutex_unlock(&in_use.lock);
    if (r == EAGAIN || r == EACCES)
        return bad(error, "the journal is in use by another job");
    return r ? error_set(error, GAD_BAD_JOURNAL, NAME,
                         "the journal cannot be locked (%s): put it on another file system",
                         strerrordesc_np(r))
             : 0;
}

static bool is_zero(const void *bytes, size_t n_bytes)
{
    const char *p = bytes;
    return p[0] == 0 && memcmp(p, p + 1, n_bytes - 1) == 0;
}

/* A place is empty, or has a mark that is whole: one small write in a page is not cut in two by the
 * end of a process. */
static int read_marks(struct journal *j, const struct journal_front *front, struct gad_error *error)
{
    uint64_t latest = 0;
    for (unsigned i = 0; i < ARRAY_LENGTH(front->marks); i++) {
        const struct journal_mark *mark = &front->marks[i].mark;
        if (is_zero(mark, sizeof(*mark)))
            continue;
        if (mark->checksum != journal_mark_checksum(mark) ||
            mark->fingerprint != j->fingerprint[0] || mark->n_applied > mark->n_logged ||
            mark->n_logged - mark->n_applied > 1)
            return bad(error, "the journal's marks are damaged");
        if (mark->sequence <= latest)
            continue;
        latest = mark->sequence;
        j->n_logged = mark->n_logged;
        j->n_applied = mark->n_applied;
    }
    return 0;
}

static int no_journal(struct gad_error *error)
{
    bad(error, "the file is not a journal: give an empty one");
    error_expected(error, "an empty file, or one that begins with %.7s", JOURNAL_MAGIC);
    return GAD_BAD_JOURNAL;
}

static bool is_of_another_version(const struct journal_head *head)
{
    size_t at = strlen(JOURNAL_MAGIC) - 1;
    return memcmp(head->magic, JOURNAL_MAGIC, at) == 0 && head->magic[at + 1] == '\0' &&
           head->magic[at] > '0' && head->magic[at] <= '9' && head->magic[at] != JOURNAL_MAGIC[at];
}

static int another_version(const struct journal_head *head, struct gad_error *error)
{
    size_t at = strlen(JOURNAL_MAGIC) - 1;
    bad(error, "the journal is of another version: finish it with the daemon that began it");
    error_expected(error, "version %c", JOURNAL_MAGIC[at]);
    error_found(error, "version %c", head->magic[at]);
    return GAD_BAD_JOURNAL;
}

static int check_head(const struct journal *j, const struct journal_head *head,
                      struct gad_error *error)
{
    if (memcmp(head->magic, JOURNAL_MAGIC, sizeof(head->magic)) != 0)
        return is_of_another_version(head) ? another_version(head, error) : no_journal(error);
    if (head->checksum != journal_head_checksum(head))
        return bad(error, "the journal's head is damaged");
    if (memcmp(head->fingerprint, j->fingerprint, sizeof(j->fingerprint)) == 0)
        return 0;
    bad(error, "the journal belongs to another job: finish that one, or give an empty file");
    error_expected(error, "job %016" PRIx64 "%016" PRIx64, j->fingerprint[0], j->fingerprint[1]);
    error_found(error, "job %016" PRIx64 "%016" PRIx64, head->fingerprint[0], head->fingerprint[1]);
    return GAD_BAD_JOURNAL;
}

static int take_front(struct journal *j, const struct journal_front *front, struct gad_error *error)
{
    const struct journal_head *head = &front->head;
    struct stat st;
    if (is_zero(front, sizeof(*front))) { /* its maker did not come to write it */
        if (fstat(j->fd, &st) < 0)
            return error_from_errno(error, errno, NAME, "reading the journal");
        return st.st_size > (off_t)sizeof(*front) ? no_journal(error) : 0;
    }
    int r = check_head(j, head, error);
    if (!r)
        r = read_marks(j, front, error);
    if (r || j->n_logged == 0)
        return r;
    memcpy(j->tile, head->tile, sizeof(j->tile));
    j->n_tiles = head->n_tiles;
    j->n_cells = head->n_cells;
    j->cell_bytes = head->cell_bytes;
    return j->n_logged > j->n_tiles ? bad(error, "the journal's marks are damaged") : 0;
}

static int cut(struct gad_error *error, size_t expected, size_t found)
{
    bad(error, "the journal is cut");
    error_expected(error, "at least %zu bytes", expected);
    error_found(error, "%zu bytes", found);
    return GAD_BAD_JOURNAL;
}

static int read_front(struct wjob *job, struct gad_error *error)
{
    struct journal *j = job->walk.journal;
    struct journal_front front;
    ssize_t n = 0;
    int r = lock(j, error);
    if (!r)
        r = journal_fingerprint(job, j->fingerprint, error);
    if (r)
        return r;
    for (size_t done = 0; done < sizeof(front); done += (size_t)n) {
        n = pread(j->fd, (char *)&front + done, sizeof(front) - done, (off_t)done);
        if (n < 0 && errno != EINTR)
            return error_from_errno(error, errno, NAME, "reading the journal");
        if (n == 0)
            return done == 0 ? 0 : cut(error, sizeof(front), done);
        n = n < 0 ? 0 : n;
    }
    return take_front(j, &front, error);
}

/* What is left ------------------------------------------------------------------------------- */

static void measure_cells(const struct wjob *job, uint64_t *ret_n_cells, uint64_t *ret_cell_bytes)
{
    const struct plan_product *p = &job->plan.products[0];
    const struct geometry *g = &p->passes[PRODUCT_RESULT].geometry;
    int64_t n_bytes = job->ports[job->program->n_inputs].item_bytes;
    for (int i = 0; i < g->ndim; i++)
        n_bytes *= g->grain_shape[i];
    *ret_n_cells = p->n_cells;
    *ret_cell_bytes = round_up_u64((uint64_t)n_bytes, JOURNAL_PAGE_BYTES);
}

static int plan_again(struct wjob *job, const struct plan_limits *limits, struct gad_error *error)
{
    struct plan_limits own = *limits;
    const struct journal *j = job->walk.journal;
    own.carry_limit_bytes = own.product_carry_bytes = job->identity.carry_size_bytes;
    if (limits->engine->has_link)
        own.product_carry_bytes = job->identity.device_carry_size_bytes;
    memcpy(own.product_tile, j->tile, sizeof(own.product_tile));
    int r = plan_make(job->request, job->program, job->is_in_place, &own, &job->plan, error);
    if (r == GAD_TOO_LARGE_FOR_POOL) {
        struct gad_error why = *error;
        bad(error, "the journal's tiles do not fit this daemon's pool: use the one that began");
        error_expected(error, "%s", why.expected);
        error_found(error, "%s", why.found);
        return GAD_BAD_JOURNAL;
    }
    return r ? r : wjob_check_carries(job, limits, error);
}

static int adopt(struct wjob *job, const struct plan_limits *limits, struct gad_error *error)
{
    struct journal *j = job->walk.journal;
    uint64_t n_cells, cell_bytes;
    bool has_tiles = j->n_logged > 0;
    int r = has_tiles ? plan_again(job, limits, error) : 0;
    if (r)
        return r;
    struct plan_product *p = &job->plan.products[0];
    measure_cells(job, &n_cells, &cell_bytes);
    if (has_tiles &&
        (j->n_tiles != p->n_tiles || j->n_cells != n_cells || j->cell_bytes != cell_bytes))
        return bad(error,
                   "the journal does not fit how this daemon cuts the job: its pool or version "
                   "is not that of the daemon that began it");
    if (!has_tiles) {
        j->tile[0] = p->tile_matrices;
        j->tile[1] = p->tile_rows;
        j->tile[2] = p->tile_columns;
        j->n_tiles = p->n_tiles;
        j->n_cells = n_cells;
        j->cell_bytes = cell_bytes;
        return 0;
    }
    j->state = j->n_applied == j->n_tiles ? JOURNAL_COMPLETE : JOURNAL_CONTINUED;
    product_resume(p, j->n_logged, j->n_applied < j->n_logged);
    job->plan.n_tiles = p->n_turns;
    return 0;
}

static int write_head(const struct wjob *job, const struct port_io *io, struct gad_error *error)
{
    const struct journal *j = job->walk.journal;
    struct journal_front front;
    memset(&front, 0, sizeof(front));
    memcpy(front.head.magic, JOURNAL_MAGIC, sizeof(front.head.magic));
    memcpy(front.head.fingerprint, j->fingerprint, sizeof(j->fingerprint));
    memcpy(front.head.tile, j->tile, sizeof(j->tile));
    front.head.n_tiles = j->n_tiles;
    front.head.n_cells = j->n_cells;
    front.head.cell_bytes = j->cell_bytes;
    front.head.checksum = journal_head_checksum(&front.head);
    if (ftruncate(j->fd, sizeof(front)) < 0)
        return error_from_errno(error, errno, NAME, "writing the journal");
    return write_run(j, &front.head, 0, sizeof(front.head), io, error);
}

int journal_open(struct wjob *job, const struct plan_limits *limits, const struct port_io *io,
                 struct gad_error *error)
{
    pthread_mutex_unlock(job->lock);
    int r = read_front(job, error);
    pthread_mutex_lock(job->lock);
    if (!r)
        r = adopt(job, limits, error);
    if (!r && !job->status) {
        pthread_mutex_unlock(job->lock);
        r = job->walk.journal->state == JOURNAL_NEW ? write_head(job, io, error)
                                                    : journal_check_output(job, io, error);
        pthread_mutex_lock(job->lock);
    }
    return r;
}

/* Turns -------------------------------------------------------------------------------------- */

static uint64_t cell_offset(const struct journal *j, uint64_t cell)
{
    return journal_data_offset(j->n_tiles, j->n_cells) + cell * j->cell_bytes;
}

int journal_store(const struct wjob *job, uint64_t tile, uint64_t cell, const void *memory,
                  int64_t n_bytes, const struct port_io *io, struct gad_error *error)
{
    struct journal *j = job->walk.journal;
    const struct journal_cell head = {
        .fingerprint = j->fingerprint[0],
        .tile = tile,
        .n_bytes = (uint64_t)n_bytes,
        .checksum = journal_checksum(memory, (size_t)n_bytes, tile * j->n_cells + cell)};
    int r = write_run(j, memory, cell_offset(j, cell), (uint64_t)n_bytes, io, error);
    if (!r)
        r = write_run(j, &head, journal_cell_head_offset(j->n_tiles, cell), sizeof(head), io,
                      error);
    if (!r)
        atomic_fetch_xor_explicit(&j->sum, head.checksum, memory_order_relaxed);
    return r;
}

int journal_note_before(const struct wjob *job, uint64_t cell, const void *memory, int64_t n_bytes,
                        const struct port_io *io, struct gad_error *error)
{
    const struct journal *j = job->walk.journal;
    uint64_t before[JOURNAL_N_PIECES];
    journal_piece_checksums(memory, (size_t)n_bytes, before);
    return write_run(j, before,
                     journal_cell_head_offset(j->n_tiles, cell) +
                         offsetof(struct journal_cell, before),
                     sizeof(before), io, error);
}

int journal_read_cell(const struct wjob *job, uint64_t cell, struct journal_cell *ret_cell,
                      const struct port_io *io, struct gad_error *error)
{
    const struct journal *j = job->walk.journal;
    return read_run(j, ret_cell, journal_cell_head_offset(j->n_tiles, cell), sizeof(*ret_cell), io,
                    error);
}

int journal_read_sum(const struct wjob *job, uint64_t tile, uint64_t *ret_sum,
                     const struct port_io *io, struct gad_error *error)
{
    return read_run(job->walk.journal, ret_sum, journal_sum_offset(tile), sizeof(*ret_sum), io,
                    error);
}

int journal_load(const struct wjob *job, uint64_t tile, uint64_t cell, void *memory,
                 int64_t n_bytes, const struct port_io *io, struct gad_error *error)
{
    const struct journal *j = job->walk.journal;
    struct journal_cell head;
    int r = journal_read_cell(job, cell, &head, io, error);
    if (!r)
        r = read_run(j, memory, cell_offset(j, cell), (uint64_t)n_bytes, io, error);
    if (r)
        return r;
    if (head.fingerprint == j->fingerprint[0] && head.tile == tile &&
        head.n_bytes == (uint64_t)n_bytes &&
        head.checksum == journal_checksum(memory, (size_t)n_bytes, tile * j->n_cells + cell))
        return 0;
    return error_set(error, GAD_BAD_JOURNAL, NAME,
                     "the journal is damaged: part %" PRIu64 " of tile %" PRIu64
                     " is not what was written",
                     cell, tile);
}

int journal_mark(const struct wjob *job, uint64_t tile, bool is_applied, const struct port_io *io,
                 struct gad_error *error)
{
    struct journal *j = job->walk.journal;
    struct journal_mark mark = {.fingerprint = j->fingerprint[0],
                                .sequence = 2 * tile + 1 + is_applied,
                                .n_logged = tile + 1,
                                .n_applied = tile + is_applied};
    mark.checksum = journal_mark_checksum(&mark);
    if (!is_applied) {
        uint64_t sum = atomic_exchange_explicit(&j->sum, 0, memory_order_relaxed);
        int r = write_run(j, &sum, journal_sum_offset(tile), sizeof(sum), io, error);
        if (r)
            return r;
    }
    return write_run(j, &mark, journal_mark_offset(mark.sequence), sizeof(mark), io, error);
}
