/* Small jobs (1,000 float64 inline) from many clients, several in flight each, served from one
 * process by poll, so that the client's share of the machine is small.
 * Usage: throughput SOCKET [CLIENTS [IN_FLIGHT [SECONDS]]]
 */
#include "tests/bench/jobs/small.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_CLIENTS 64 /* sessions that one user may have */

static void send_job(struct conn *conn, struct small_job *job, uint32_t id)
{
    small_job_encode(job, id);
    if (conn_send(conn, job->body.buffer.data, job->body.buffer.size, NULL, 0)) {
        fprintf(stderr, "a request was not queued\n");
        exit(1);
    }
}

static void flush(struct conn *conn)
{
    int r;
    while ((r = conn_flush(conn)) == -EAGAIN) {
        struct pollfd ready = {.fd = conn_fd(conn), .events = POLLOUT | POLLIN};
        poll(&ready, 1, -1);
        if (ready.revents & POLLIN)
            break; /* the daemon waits for us to read */
    }
    if (r && r != -EAGAIN) {
        fprintf(stderr, "the connection is lost\n");
        exit(1);
    }
}

/* Takes all replies that are there, sends as many new jobs. */
static long serve(struct conn *conn, struct small_job *job, uint32_t *id)
{
    struct frame frame;
    long n = 0;
    int r = conn_receive(conn);
    if (r && r != -EAGAIN) {
        fprintf(stderr, "the connection is lost\n");
        exit(1);
    }
    while (conn_next(conn, &frame) == 0) {
        uint32_t got;
        if (small_check(job, &frame, &got)) {
            fprintf(stderr, "a wrong result\n");
            exit(1);
        }
        frame_deinit(&frame, NULL);
        send_job(conn, job, ++*id);
        n++;
    }
    flush(conn);
    return n;
}

int main(int argc, char **argv)
{
    int n_clients = argc > 2 ? atoi(argv[2]) : 32, in_flight = argc > 3 ? atoi(argv[3]) : 8;
    double seconds = argc > 4 ? atof(argv[4]) : 5;
    if (argc < 2 || n_clients < 1 || n_clients > MAX_CLIENTS || in_flight < 1 || seconds <= 0) {
        fprintf(stderr, "usage: throughput SOCKET [CLIENTS [IN_FLIGHT [SECONDS]]]\n");
        return 2;
    }
    struct small_job job;
    small_job_init(&job);
    struct conn *conns[MAX_CLIENTS];
    struct pollfd polls[MAX_CLIENTS];
    uint32_t ids[MAX_CLIENTS];
    for (int i = 0; i < n_clients; i++) {
        conns[i] = small_connect(argv[1]);
        polls[i] = (struct pollfd){.fd = conn_fd(conns[i]), .events = POLLIN};
        for (ids[i] = 0; ids[i] < (uint32_t)in_flight; ids[i]++)
            send_job(conns[i], &job, ids[i] + 1);
        flush(conns[i]);
    }
    double began = now_us(), now = began;
    long n_jobs = 0;
    while (now - began < seconds * 1e6) {
        poll(polls, (nfds_t)n_clients, -1);
        for (int i = 0; i < n_clients; i++)
            if (polls[i].revents)
                n_jobs += serve(conns[i], &job, &ids[i]);
        now = now_us();
    }
    printf("%d clients, %d in flight: %.0f jobs/s of 1,000 float64 inline (at least 30000)\n",
           n_clients, in_flight, (double)n_jobs / (now - began) * 1e6);
    for (int i = 0; i < n_clients; i++)
        conn_free(conns[i]);
    small_job_deinit(&job);
    return 0;
}
