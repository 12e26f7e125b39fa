/* A child of fork() gives its parent's client up, with a real daemon. */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

TestSuite(forget, .init = set_up, .fini = tear_down, .timeout = 60);

enum { N = 300000 };

/* Of this process: sockets, eventfds, memfds, epoll. */
static int n_special_descriptors(void)
{
    static const char *const kinds[] = {"socket:", "anon_inode:", "/memfd:gpuarrayd"};
    char path[64], target[256];
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, target, sizeof(target) - 1);
        target[length < 0 ? 0 : length] = '\0';
        for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
            n += strncmp(target, kinds[i], strlen(kinds[i])) == 0;
    }
    return n;
}

static int exit_status(pid_t pid)
{
    int status;
    cr_assert(eq(int, waitpid(pid, &status, 0), pid));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* In the child, 0 or the number of what went wrong. */
static int child(struct gad_client *parents, const double *shared, int n_before)
{
    struct gad_client *own;
    gad_forget(parents);
    if (n_special_descriptors() != n_before)
        return 1;
    if (shared[N - 1] != N - 1)
        return 2;
    if (gad_connect(NULL, &own, NULL))
        return 3;
    client = own;
    int64_t n = N;
    struct gad_array *a;
    if (gad_array_new(own, GAD_FLOAT64, 1, &n, &a, NULL))
        return 4;
    ((double *)gad_array_data(a))[7] = 5;
    if (ask("sum(a)", a) != 5)
        return 5;
    gad_array_release(a);
    double *heap = calloc(N, sizeof(double));
    heap[3] = 4;
    a = wrap(heap, 1, &n, NULL); /* threads of its own */
    if (ask("sum(a)", a) != 4)
        return 6;
    gad_array_release(a);
    free(heap);
    gad_close(own);
    return shared[N - 1] == N - 1 ? 0 : 7;
}

Test(forget, leaves_the_parent_all_that_it_has)
{
    int n_before = n_special_descriptors(); /* with the connection */
    double *heap = calloc(N, sizeof(double));
    int64_t n = N;
    struct gad_array *a, *on_heap = wrap(heap, 1, &n, NULL);
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 1, &n, &a, NULL)));
    double *data = gad_array_data(a);
    for (int i = 0; i < N; i++)
        data[i] = i;
    cr_assert(zero(dbl, ask("sum(a)", on_heap))); /* rings are kept, threads wait */
    struct gad_argument args[] = {{.name = "a", .array = on_heap}};
    struct gad_output outputs[] = {{.expr = "max(a)"}};
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    struct gad_job *job;
    cr_assert(zero(int, (int)gad_submit(client, &options, &job, NULL)));
    pid_t pid = fork();
    cr_assert(ge(int, pid, 0));
    if (pid == 0)
        _exit(child(client, data, n_before - 1));
    cr_assert(zero(int, exit_status(pid)));
    cr_assert(zero(int, (int)gad_job_wait(job, -1, NULL)), "what ran goes on");
    gad_job_free(job);
    cr_assert(eq(dbl, ask("max(a)", a), N - 1));
    cr_assert(zero(dbl, ask("sum(a)", on_heap)));
    gad_array_release(a);
    gad_array_release(on_heap);
    free(heap);
    gad_forget(NULL);
}

/* A parent with a session of its own, and a child that outlives it. Returns the child's number. */
static void parent(int write_fd, int read_fd)
{
    struct gad_client *own;
    struct gad_array *a;
    int64_t n = N;
    if (gad_connect(NULL, &own, NULL) || gad_array_new(own, GAD_FLOAT64, 1, &n, &a, NULL))
        _exit(1);
    ((double *)gad_array_data(a))[0] = 3;
    pid_t pid = fork();
    if (pid < 0)
        _exit(2);
    if (pid == 0) {
        char byte = 'k';
        gad_forget(own);
        (void)!write(write_fd, &byte, 1);
        (void)!read(read_fd, &byte, 1); /* until the test has seen enough */
        _exit(((double *)gad_array_data(a))[0] == 3 && write(write_fd, "b", 1) == 1 ? 0 : 1);
    }
    char byte;
    (void)!read(read_fd, &byte, 1); /* lives until the test says so */
    _exit(0);
}

Test(forget, lets_the_daemon_notice_the_parents_end)
{
    int up[2], down[2], before = count("sessions");
    int regions_before = count("regions");
    char byte = 0;
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, up)));
    cr_assert(zero(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, down)));
    pid_t pid = fork();
    cr_assert(ge(int, pid, 0));
    if (pid == 0) {
        gad_forget(client);
        parent(up[1], down[1]);
    }
    cr_assert(eq(int, (int)read(up[0], &byte, 1), 1)); /* the child has given it up */
    cr_assert(eq(int, count("sessions"), before + 1));
    cr_assert(eq(int, count("regions"), regions_before + 1));
    kill(pid, SIGKILL);
    exit_status(pid);
    while (count("sessions") != before || count("regions") != regions_before)
        ; /* every question is a turn of the daemon's loop; the time limit of the suite ends it */
    cr_assert(eq(int, (int)write(down[0], "x", 1), 1)); /* the child is still there */
    cr_assert(eq(int, (int)read(up[0], &byte, 1), 1));
    cr_assert(eq(int, byte, 'b'), "its array has kept its bytes");
    int all[] = {up[0], up[1], down[0], down[1]};
    for (size_t i = 0; i < ARRAY_LENGTH(all); i++)
        close(all[i]);
}
