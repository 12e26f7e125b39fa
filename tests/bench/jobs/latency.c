/* Round trip of a small job (1,000 float64 inline) beside a bare ping-pong of one byte between two
 * processes over a Unix socket, in turns, in one run. Usage: latency SOCKET [ROUNDS]
 *
 * A job takes four wake-ups (broker, worker, broker, client), which is two ping-pongs; of those two
 * are spared where the broker waits awake for what comes soon (daemon/broker/linger.h).
 */
#include "tests/bench/jobs/small.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 100 /* round trips of one kind before the other's turn */

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* The other end of the ping-pong, on the second CPU. */
static int start_echo(pid_t *ret_pid)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
        perror("socketpair");
        exit(1);
    }
    *ret_pid = fork();
    if (*ret_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pin(1);
        char byte;
        while (read(pair[1], &byte, 1) == 1 && write(pair[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(pair[1]);
    return pair[0];
}

static double ping_pong(int fd)
{
    char byte = 1;
    double began = now_us();
    if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1) {
        perror("ping-pong");
        exit(1);
    }
    return now_us() - began;
}

static double round_trip(struct conn *conn, struct small_job *job, uint32_t id)
{
    double began = now_us();
    small_job_encode(job, id);
    if (conn_send(conn, job->body.buffer.data, job->body.buffer.size, NULL, 0) ||
        conn_flush(conn)) {
        fprintf(stderr, "the request was not sent\n");
        exit(1);
    }
    struct frame frame;
    uint32_t got;
    small_receive(conn, &frame);
    double took = now_us() - began;
    if (small_check(job, &frame, &got) || got != id) {
        fprintf(stderr, "a wrong result\n");
        exit(1);
    }
    frame_deinit(&frame, NULL);
    return took;
}

int main(int argc, char **argv)
{
    int n = argc > 2 ? atoi(argv[2]) : 5000;
    if (argc < 2 || n < BLOCK) {
        fprintf(stderr, "usage: latency SOCKET [ROUNDS, at least %d]\n", BLOCK);
        return 2;
    }
    pid_t echo;
    int fd = start_echo(&echo);
    struct small_job job;
    small_job_init(&job);
    struct conn *conn = small_connect(argv[1]);
    cpu_set_t all;
    sched_getaffinity(0, sizeof(all), &all);
    double *ping = calloc((size_t)n, sizeof(*ping)), *trip = calloc((size_t)n, sizeof(*trip));
    for (int i = 0; i < n; i += BLOCK) {
        pin(0);
        for (int j = i; j < i + BLOCK && j < n; j++)
            ping[j] = ping_pong(fd);
        sched_setaffinity(0, sizeof(all), &all);
        for (int j = i; j < i + BLOCK && j < n; j++)
            trip[j] = round_trip(conn, &job, (uint32_t)j + 1);
    }
    qsort(ping, (size_t)n, sizeof(*ping), compare_doubles);
    qsort(trip, (size_t)n, sizeof(*trip), compare_doubles);
    printf(
        "round trip, 1,000 float64 inline: p50 %.1f us, p99 %.1f us; bare ping-pong: p50 %.1f us, "
        "p99 %.1f us; ratio of p50 %.2f (at most 2.2)\n",
        trip[n / 2], trip[n * 99 / 100], ping[n / 2], ping[n * 99 / 100],
        trip[n / 2] / ping[n / 2]);
    free(ping);
    free(trip);
    conn_free(conn);
    small_job_deinit(&job);
    kill(echo, SIGKILL);
    waitpid(echo, NULL, 0);
    return 0;
}
