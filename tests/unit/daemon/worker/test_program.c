#include "tests/unit/daemon/worker/harness.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MIB (1024u * 1024u)

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

/* The program itself, with the test as its parent; only h->conn is there. */
static pid_t start(struct harness *h, const char *lock)
{
    int fds[2];
    memset(h, 0, sizeof(*h));
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0));
    pid_t pid = fork();
    if (pid == 0) {
        if (fds[1] != 3)
            dup2(fds[1], 3);
        fcntl(3, F_SETFD, 0);
        execl(WORKER_PATH, WORKER_PATH, "--fd", "3", "--pool", "8388608", "--threads", "2",
              lock ? "--lock" : NULL, lock, NULL);
        _exit(127);
    }
    close(fds[1]);
    cr_assert(eq(int, conn_new(fds[0], NULL, &h->conn), 0));
    return pid;
}

static bool has_answer(struct harness *h, int timeout_ms)
{
    return poll(&(struct pollfd){.fd = conn_fd(h->conn), .events = POLLIN}, 1, timeout_ms) == 1;
}

static int end_of(pid_t pid)
{
    int status = -1;
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    return status;
}

Test(program, is_ready_and_leaves_with_its_broker)
{
    struct harness h;
    pid_t pid = start(&h, NULL);
    cr_assert(eq(u64, harness_stat(&h, "slots"), 16));
    cr_assert(eq(u64, harness_stat(&h, "jobs"), 0));
    h.conn = conn_free(h.conn);
    cr_assert(eq(int, end_of(pid), 0));
}

Test(program, leaves_at_once_on_sigterm)
{
    struct harness h;
    pid_t pid = start(&h, NULL);
    cr_assert(has_answer(&h, 60000));
    cr_assert(eq(int, kill(pid, SIGTERM), 0));
    cr_assert(eq(int, end_of(pid), 0));
    h.conn = conn_free(h.conn);
}

Test(program, waits_until_the_old_one_has_left_the_pool)
{
    struct harness h;
    char path[] = "/tmp/gpuarrayd-lock-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    cr_assert(eq(int, flock(fd, LOCK_EX), 0));
    pid_t pid = start(&h, path);
    cr_assert(not(has_answer(&h, 300)));
    cr_assert(eq(int, flock(fd, LOCK_UN), 0));
    cr_assert(has_answer(&h, 60000));
    cr_assert(eq(int, flock(fd, LOCK_EX | LOCK_NB), -1));
    h.conn = conn_free(h.conn);
    cr_assert(eq(int, end_of(pid), 0));
    cr_assert(eq(int, flock(fd, LOCK_EX | LOCK_NB), 0));
    unlink(path);
    close(fd);
}

/* Its broker was gone before it could ask to be told: it must not wait for the pool. */
Test(program, does_not_wait_for_the_pool_without_a_broker)
{
    char path[] = "/tmp/gpuarrayd-lock-XXXXXX";
    int fds[2], fd = mkostemp(path, O_CLOEXEC);
    cr_assert(eq(int, flock(fd, LOCK_EX), 0));
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0));
    close(fds[0]);
    pid_t pid = fork();
    if (pid == 0) {
        if (fds[1] != 3)
            dup2(fds[1], 3);
        fcntl(3, F_SETFD, 0);
        execl(WORKER_PATH, WORKER_PATH, "--fd", "3", "--pool", "8388608", "--lock", path, NULL);
        _exit(127);
    }
    close(fds[1]);
    cr_assert(eq(int, end_of(pid), 0));
    unlink(path);
    close(fd);
}

Test(program, garbage_from_the_broker_ends_it_without_a_signal)
{
    struct harness h;
    pid_t pid = start(&h, NULL);
    cr_assert(has_answer(&h, 60000));
    cr_assert(eq(i64, send(conn_fd(h.conn), "five bytes and more", 19, MSG_NOSIGNAL), 19));
    int status = end_of(pid);
    bool has_exited = WIFEXITED(status) && WEXITSTATUS(status) == 1;
    cr_assert(has_exited);
    h.conn = conn_free(h.conn);
}

Test(program, has_no_more_private_memory_than_its_pool_and_16_mib)
{
    struct harness h;
    struct test_job j;
    struct outcome o;
    const int64_t shape[] = {64 * MIB};
    int in = make_file("", 0), out = make_file("", 0);
    cr_assert(eq(int, ftruncate(in, 256 * MIB), 0));
    pid_t pid = start(&h, NULL);
    for (int i = 0; i < 3; i++) {
        job_init(&j, 1);
        at_file(&j, job_arg(&j, "a", DTYPE_FLOAT32, 1, shape), in, 0);
        at_file(&j, job_output_to(&j, "sqrt(a) + 1", "r", DTYPE_FLOAT32, 1, shape), out, 0);
        harness_run(&h, &j, &o);
        cr_assert(eq(int, o.status, 0), "%s", o.error.message);
        outcome_free(&o);
    }
    uint64_t private_bytes = harness_stat(&h, "private_bytes");
#ifndef HAS_SANITIZER
    cr_assert(le(u64, private_bytes, 24 * MIB));
#endif
    cr_assert(lt(u64, 0, private_bytes));
    h.conn = conn_free(h.conn);
    cr_assert(eq(int, end_of(pid), 0));
    close(in);
    close(out);
}
