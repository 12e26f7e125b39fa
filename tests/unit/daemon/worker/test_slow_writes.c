/* Calls to a disk that does not answer: everybody else goes on. The disk is the one of the tests'
 * files, whose writes wait at a gate, or one that some of the files seem to be on, whose reads or
 * closings do. What is asserted are orders of answers, bits, and that every thread and place comes
 * back, no times. Linked with --wrap for the calls. */
#include "daemon/worker/turns/scheduler_internal.h"
#include "tests/unit/daemon/worker/files.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define N_THREADS  2
#define POOL_BYTES (32u * 1024 * 1024)
#define N_VALUES   (1u << 20) /* what is written: several tiles */
#define N_SHORT    (1u << 16)
#define N_LONG     (1u << 15)
#define MAX_FILES  12
#define SLOW_DISK  UINT64_C(0x7fffffff) /* no file's */
#define N_READ     (1u << 16)           /* a tile */
/* Of several grains a tile, each of which is written for itself. */
#define WRITTEN (HARNESS_IS_CUDA ? "a * 4" : "repeat(2, a = a + a)")
#define LONG                                                                                       \
    "gamma(a - 170.25) + gamma(a - 170.125) + gamma(a - 170.0625) + gamma(a - 169.75) + "          \
    "gamma(a - 169.5)"

/* The gate ----------------------------------------------------------------------------------- */

enum held { WRITES = 1, READS, CLOSINGS };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned held; /* 0: it is open */
    dev_t disk;
    unsigned n_held;
    ino_t elsewhere[MAX_FILES]; /* files that seem to be on another disk */
    unsigned n_elsewhere;
    bool are_many; /* each on its own */
} gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0, {0}, 0};

static struct sched *sched;

/* The thread has a place, or has lost it in the call that it is in, or as that began. */
static bool has_or_had_place(const struct thread_context *th)
{
    return th->has_place || (th->displaced_ns && atomic_load(&th->call) - th->watched_call <= 2);
}

static bool may_write(void)
{
    bool may = false;
    pthread_mutex_lock(sched_lock(sched));
    for (unsigned i = 0; i < sched->n_threads; i++) {
        const struct thread_context *th = sched->threads[i];
        may |= pthread_equal(th->thread, pthread_self()) && has_or_had_place(th);
    }
    pthread_mutex_unlock(sched_lock(sched));
    return may;
}

static void pass_gate(int fd, unsigned what)
{
    struct stat st;
    pthread_mutex_lock(&gate.lock);
    if (gate.held == what && fstat(fd, &st) == 0 &&
        (st.st_dev == gate.disk || (gate.are_many && st.st_dev > gate.disk))) {
        gate.n_held++;
        pthread_cond_broadcast(&gate.changed);
        while (gate.held)
            pthread_cond_wait(&gate.changed, &gate.lock);
        gate.n_held--;
    }
    pthread_mutex_unlock(&gate.lock);
}

ssize_t __real_pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset);

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t n_bytes, off_t offset)
{
    cr_assert(may_write());
    pass_gate(fd, WRITES);
    return __real_pwrite64(fd, bytes, n_bytes, offset);
}

int __real_fstat64(int fd, struct stat *ret);
int __wrap_fstat64(int fd, struct stat *ret);

int __wrap_fstat64(int fd, struct stat *ret)
{
    int r = __real_fstat64(fd, ret);
    for (unsigned i = 0; i < gate.n_elsewhere && r == 0; i++)
        if (gate.elsewhere[i] == ret->st_ino)
            ret->st_dev = SLOW_DISK + (gate.are_many ? i : 0);
    return r;
}

static bool is_io_thread(void)
{
    char name[16];
    return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 && strcmp(name, "io") == 0;
}

ssize_t __real_pread64(int fd, void *bytes, size_t n_bytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *bytes, size_t n_bytes, off_t offset);

ssize_t __wrap_pread64(int fd, void *bytes, size_t n_bytes, off_t offset)
{
    if (is_io_thread())
        pass_gate(fd, READS);
    return __real_pread64(fd, bytes, n_bytes, offset);
}

/* Nothing is in the page cache. */
ssize_t __wrap_preadv64v2(int fd, const struct iovec *pieces, int n, off_t offset, int flags);

ssize_t __wrap_preadv64v2(int fd, const struct iovec *pieces, int n, off_t offset, int flags)
{
    (void)fd;
    (void)pieces;
    (void)n;
    (void)offset;
    cr_assert(eq(int, flags, RWF_NOWAIT));
    errno = EAGAIN;
    return -1;
}

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
    if (is_io_thread())
        pass_gate(fd, CLOSINGS);
    return __real_close(fd);
}

static void set_gate(unsigned held)
{
    pthread_mutex_lock(&gate.lock);
    gate.held = held;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void wait_for_held(unsigned n)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.n_held < n)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
}

/* Jobs --------------------------------------------------------------------------------------- */

struct fixture {
    struct harness h;
    float *values; /* everybody's argument, and behind it what short jobs give */
    int region_fd;
    int fds[MAX_FILES];
};

static void set_up(struct fixture *f)
{
    struct stat st;
    size_t n_bytes = (N_VALUES + N_SHORT) * sizeof(float);
    harness_start(&f->h, POOL_BYTES, N_THREADS);
    sched = f->h.worker->sched;
    f->region_fd = make_memfd(n_bytes, F_SEAL_SHRINK | F_SEAL_GROW);
    f->values = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->region_fd, 0);
    cr_assert(ne(ptr, f->values, MAP_FAILED));
    for (unsigned i = 0; i < N_VALUES; i++)
        f->values[i] = (float)(i % 65521) * 1e-6f;
    cr_assert(zero(int, harness_attach(&f->h, 1, f->region_fd, n_bytes, true)));
    for (unsigned i = 0; i < MAX_FILES; i++)
        f->fds[i] = make_file("", 0);
    cr_assert(zero(int, fstat(f->fds[0], &st)));
    gate.disk = st.st_dev;
}

static void give_back(struct fixture *f)
{
    munmap(f->values, (N_VALUES + N_SHORT) * sizeof(float));
    close(f->region_fd);
    for (unsigned i = 0; i < MAX_FILES; i++)
        close(f->fds[i]);
}

static void tear_down(struct fixture *f)
{
    harness_stop(&f->h);
    give_back(f);
}

static uint32_t send_writer_to(struct fixture *f, uint64_t id, uint32_t user, int fd)
{
    const int64_t shape[] = {N_VALUES};
    struct test_job j;
    job_init(&j, id);
    j.user = user;
    at_region(job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), 1, 0);
    at_file(&j, job_output_to(&j, WRITTEN, "r", DTYPE_FLOAT32, 1, shape), fd, 0);
    return harness_send(&f->h, &j);
}

static uint32_t send_writer(struct fixture *f, uint64_t id, uint32_t user, unsigned file)
{
    return send_writer_to(f, id, user, f->fds[file]);
}

/* From memory to memory, and not for the main thread. */
static uint32_t send_job(struct fixture *f, uint64_t id, uint32_t user, int64_t n, const char *expr)
{
    const int64_t shape[] = {n};
    struct test_job j;
    job_init(&j, id);
    j.user = user;
    at_region(job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), 1, 0);
    at_region(job_output_to(&j, expr, "r", DTYPE_FLOAT32, 1, shape), 1, N_VALUES * sizeof(float));
    return harness_send(&f->h, &j);
}

static uint32_t send_short(struct fixture *f, uint64_t id, uint32_t user)
{
    return send_job(f, id, user, N_SHORT, "a + 1");
}

static uint32_t next_answer(struct fixture *f, int want_status)
{
    struct outcome o;
    harness_receive(&f->h, &o, NULL);
    cr_assert(eq(int, o.status, want_status), "%s", o.error.message);
    uint32_t id = o.id;
    outcome_free(&o);
    return id;
}

static void check_written(int fd, const float *values)
{
    float *written = read_floats(fd, N_VALUES);
    unsigned n_same = 0;
    while (n_same < N_VALUES && written[n_same] == values[n_same] * 4)
        n_same++;
    cr_assert(eq(uint, n_same, N_VALUES));
    free(written);
}

/* Every thread that has no place is back on the bench, and none is kept for anybody. */
static void wait_until_unused(struct fixture *f)
{
    struct sched *s = sched;
    for (bool is_back = false; !is_back;) {
        pthread_mutex_lock(sched_lock(s));
        cr_assert(zero(uint, s->n_jobs));
        is_back = s->n_bench == s->n_spares; /* the others have a place */
        for (unsigned i = 0; i < SCHED_N_IO; i++)
            is_back &= !s->io[i].is_busy;
        cr_assert(zero(uint, s->n_displaced));
        cr_assert(zero(uint, s->n_kept));
        cr_assert(zero(uint, s->n_users));
        pthread_mutex_unlock(sched_lock(s));
    }
    cr_assert(zero(u64, harness_stat(&f->h, "threads_busy")));
    cr_assert(zero(u64, harness_stat(&f->h, "slots_lent")));
}

/* Tests -------------------------------------------------------------------------------------- */

Test(slow_writes, others_go_on_while_all_threads_write)
{
    struct fixture f;
    set_up(&f);
    for (unsigned i = 0; i < 3; i++) {
        set_gate(WRITES);
        uint32_t writer = send_writer(&f, 1, 1000, 0);
        wait_for_held(N_THREADS);
        uint32_t quick = send_short(&f, 2, 2000);
        cr_assert(eq(u32, next_answer(&f, 0), quick));
        quick = send_short(&f, 3, 1000);
        cr_assert(eq(u32, next_answer(&f, 0), quick), "of the same user, too");
        uint32_t slow = send_job(&f, 4, 1000, N_LONG, LONG);
        cr_assert(eq(u32, next_answer(&f, 0), slow), "and those that take long");
        set_gate(0);
        cr_assert(eq(u32, next_answer(&f, 0), writer));
        check_written(f.fds[0], f.values);
        cr_assert(zero(int, ftruncate(f.fds[0], 0)));
    }
    wait_until_unused(&f);
    tear_down(&f);
}

Test(slow_writes, what_waits_in_a_write_can_be_cancelled)
{
    struct fixture f;
    set_up(&f);
    set_gate(WRITES);
    uint32_t writer = send_writer(&f, 1, 1000, 0);
    wait_for_held(N_THREADS);
    uint32_t quick = send_short(&f, 2, 2000);
    cr_assert(eq(u32, next_answer(&f, 0), quick));
    harness_cancel(&f.h, 1);
    quick = send_short(&f, 3, 2000);
    cr_assert(eq(u32, next_answer(&f, 0), quick), "the other one ends when its disk answers");
    set_gate(0);
    cr_assert(eq(u32, next_answer(&f, GAD_CANCELLED), writer));
    wait_until_unused(&f);
    tear_down(&f);
}

/* A dozen users have more tiles for that disk than may wait for it. What else there is goes on:
 * short tiles, long ones, and those that are written to another disk. */
Test(slow_writes, a_disk_holds_only_those_who_write_to_it)
{
    struct fixture f;
    int other = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    cr_assert(ge(int, other, 0));
    cr_assert(zero(int, posix_fallocate(other, 0, N_VALUES * sizeof(float))));
    set_up(&f);
    set_gate(WRITES);
    for (unsigned i = 0; i < MAX_FILES; i++)
        (void)send_writer(&f, 100 + i, 3000 + i, i);
    wait_for_held(sched_n_spares(N_THREADS) / 2);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t quick = send_short(&f, 2, 2000);
        cr_assert(eq(u32, next_answer(&f, 0), quick));
        uint32_t slow = send_job(&f, 3, 2000, N_LONG, LONG);
        cr_assert(eq(u32, next_answer(&f, 0), slow));
        uint32_t writer = send_writer_to(&f, 4, 2000, other);
        cr_assert(eq(u32, next_answer(&f, 0), writer));
    }
    check_written(other, f.values);
    set_gate(0);
    for (unsigned i = 0; i < MAX_FILES; i++)
        (void)next_answer(&f, 0);
    for (unsigned i = 0; i < MAX_FILES; i++)
        check_written(f.fds[i], f.values);
    wait_until_unused(&f);
    tear_down(&f);
    close(other);
}

/* Of one user, who has a dozen disks that do not answer. */
Test(slow_writes, many_disks_hold_only_those_of_a_user)
{
    struct fixture f;
    struct stat st;
    int other = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    cr_assert(ge(int, other, 0));
    cr_assert(zero(int, posix_fallocate(other, 0, N_VALUES * sizeof(float))));
    set_up(&f);
    for (unsigned i = 0; i < MAX_FILES; i++) {
        cr_assert(zero(int, fstat(f.fds[i], &st)));
        gate.elsewhere[i] = st.st_ino;
    }
    gate.are_many = true;
    gate.n_elsewhere = MAX_FILES;
    gate.disk = SLOW_DISK;
    set_gate(WRITES);
    for (unsigned i = 0; i < MAX_FILES; i++)
        (void)send_writer(&f, 100 + i, 1000, i);
    wait_for_held((sched_n_spares(N_THREADS) - N_THREADS) / 2);
    for (unsigned i = 0; i < 8; i++) {
        uint32_t quick = send_short(&f, 2, 2000);
        cr_assert(eq(u32, next_answer(&f, 0), quick));
        uint32_t slow = send_job(&f, 3, i % 2 ? 1000 : 2000, N_LONG, LONG);
        cr_assert(eq(u32, next_answer(&f, 0), slow));
        uint32_t writer = send_writer_to(&f, 4, 2000, other);
        cr_assert(eq(u32, next_answer(&f, 0), writer));
    }
    set_gate(0);
    for (unsigned i = 0; i < MAX_FILES; i++)
        (void)next_answer(&f, 0);
    for (unsigned i = 0; i < MAX_FILES; i++)
        check_written(f.fds[i], f.values);
    wait_until_unused(&f);
    tear_down(&f);
    close(other);
}

static void *free_worker(void *argument)
{
    struct harness *h = argument;
    h->worker = worker_free(h->worker);
    return NULL;
}

Test(slow_writes, a_worker_leaves_in_the_middle_of_one)
{
    struct fixture f;
    pthread_t thread;
    set_up(&f);
    set_gate(WRITES);
    (void)send_writer(&f, 1, 1000, 0);
    wait_for_held(N_THREADS);
    uint32_t quick = send_short(&f, 2, 2000);
    cr_assert(eq(u32, next_answer(&f, 0), quick));
    f.h.conn = conn_free(f.h.conn);
    pthread_join(f.h.thread, NULL); /* its main thread waits for nobody */
    cr_assert(zero(int, pthread_create(&thread, NULL, free_worker, &f.h)));
    set_gate(0);
    pthread_join(thread, NULL);
    crashpage_unmap(f.h.page);
    close(f.h.page_fd);
    give_back(&f);
}

/* Reads and closings ------------------------------------------------------------------------- */

/* Files of one number each, whose sum is told; those below n_slow are on the slow disk. */
static void set_up_files(struct fixture *f, unsigned n_slow)
{
    float *values = malloc(N_READ * sizeof(float));
    struct stat st;
    set_up(f);
    for (unsigned i = 0; i < MAX_FILES; i++) {
        for (unsigned k = 0; k < N_READ; k++)
            values[k] = (float)(1 + i);
        cr_assert(eq(i64, __real_pwrite64(f->fds[i], values, N_READ * sizeof(float), 0),
                     (int64_t)(N_READ * sizeof(float))));
        cr_assert(zero(int, fstat(f->fds[i], &st)));
        gate.elsewhere[i] = st.st_ino;
    }
    free(values);
    gate.n_elsewhere = n_slow;
    gate.disk = SLOW_DISK;
}

/* The job is the file's: it tells which by its id. */
static void send_reader_of_both(struct fixture *f, uint32_t user, unsigned file, unsigned other)
{
    const int64_t shape[] = {N_READ};
    struct test_job j;
    job_init(&j, 1 + file);
    j.user = user;
    at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), f->fds[file], 0);
    if (other != file)
        at_file(&j, job_arg(&j, "b", DTYPE_FLOAT32, 1, shape), f->fds[other], 0);
    j.needs_carry = true;
    j.carry_offset = file * CARRY_BYTES;
    job_output(&j, other == file ? "sum(a)" : "sum(a + 0 * b)", "r");
    (void)harness_send(&f->h, &j);
}

static void send_reader(struct fixture *f, uint32_t user, unsigned file)
{
    send_reader_of_both(f, user, file, file);
}

/* The files whose sums have come, bits; n of them. */
static uint32_t receive_sums(struct fixture *f, unsigned n)
{
    uint32_t files = 0;
    for (unsigned i = 0; i < n; i++) {
        struct outcome o;
        size_t n_bytes;
        float sum;
        harness_receive(&f->h, &o, NULL);
        cr_assert(zero(int, o.status), "%s", o.error.message);
        const void *data = outcome_data(&o, 0, &n_bytes);
        cr_assert(eq(sz, n_bytes, sizeof(sum)));
        memcpy(&sum, data, sizeof(sum));
        files |= UINT32_C(1) << ((unsigned)(sum / N_READ) - 1);
        outcome_free(&o);
    }
    return files;
}

static void read_others(struct fixture *f, uint32_t user)
{
    send_reader(f, user, MAX_FILES - 1);
    cr_assert(eq(u32, receive_sums(f, 1), UINT32_C(1) << (MAX_FILES - 1)));
}

static void hold_one_disk(enum held held)
{
    struct fixture f;
    set_up_files(&f, 8);
    set_gate(held);
    for (unsigned i = 0; i < 8; i++)
        send_reader(&f, 3000 + i / 2, i);
    wait_for_held(SCHED_IO_PER_DISK);
    for (unsigned i = 0; i < 3; i++) {
        read_others(&f, 2000);
        read_others(&f, 3000);
        uint32_t quick = send_short(&f, 20, 3001);
        cr_assert(eq(u32, next_answer(&f, 0), quick));
    }
    cr_assert(eq(uint, gate.n_held, SCHED_IO_PER_DISK));
    set_gate(0);
    cr_assert(eq(u32, receive_sums(&f, 8), 0xff));
    wait_until_unused(&f);
    tear_down(&f);
}

Test(slow_reads, a_disk_holds_only_those_who_read_from_it)
{
    hold_one_disk(READS);
}

Test(slow_reads, a_disk_holds_only_those_whose_files_are_closed_there)
{
    hold_one_disk(CLOSINGS);
}

/* Whoever waits for the slow disk does not hold the other one, from which he will read. */
Test(slow_reads, of_two_disks_the_slow_one_alone_is_held)
{
    struct fixture f;
    set_up_files(&f, 4);
    set_gate(READS);
    for (unsigned i = 0; i < SCHED_IO_PER_DISK; i++)
        send_reader_of_both(&f, 3000 + i / 2, i, 4 + i);
    wait_for_held(SCHED_IO_PER_DISK);
    read_others(&f, 2000);
    set_gate(0);
    cr_assert(eq(u32, receive_sums(&f, SCHED_IO_PER_DISK), 0x0f));
    wait_until_unused(&f);
    tear_down(&f);
}

Test(slow_reads, what_waits_in_one_can_be_cancelled)
{
    struct fixture f;
    set_up_files(&f, 4);
    set_gate(READS);
    for (unsigned i = 0; i < 4; i++)
        send_reader(&f, 3000 + i / 2, i);
    wait_for_held(4);
    for (unsigned i = 0; i < 4; i++)
        harness_cancel(&f.h, 1 + i);
    read_others(&f, 2000);
    set_gate(0);
    for (unsigned i = 0; i < 4; i++)
        (void)next_answer(&f, GAD_CANCELLED);
    wait_until_unused(&f);
    tear_down(&f);
}

Test(slow_reads, a_worker_leaves_in_the_middle_of_one)
{
    struct fixture f;
    pthread_t thread;
    set_up_files(&f, 4);
    set_gate(READS);
    for (unsigned i = 0; i < 4; i++)
        send_reader(&f, 3000 + i / 2, i);
    wait_for_held(4);
    f.h.conn = conn_free(f.h.conn);
    pthread_join(f.h.thread, NULL);
    cr_assert(zero(int, pthread_create(&thread, NULL, free_worker, &f.h)));
    set_gate(0);
    pthread_join(thread, NULL);
    crashpage_unmap(f.h.page);
    close(f.h.page_fd);
    give_back(&f);
}
