/* Shared by the latency and throughput benchmarks: one request, one connection, one check. */
#include "proto/wire/map.h"
#include "proto/wire/pack.h"
#include "tests/bench/jobs/small.h"

#include <math.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void small_job_init(struct small_job *job)
{
    for (int i = 0; i < SMALL_ELEMENTS; i++)
        job->elements[i] = i * 0.25;
    message_writer_init(&job->body);
    small_job_encode(job, 1);
}

void small_job_deinit(struct small_job *job)
{
    message_writer_deinit(&job->body);
}

void small_job_encode(struct small_job *job, uint32_t id)
{
    static const char expr[] = "sqrt(a)";
    struct request_arg arg = {.name = "a"};
    arg.array = (struct array){.dtype = DTYPE_FLOAT64, .ndim = 1, .shape = {SMALL_ELEMENTS}};
    arg.array.strides[0] = sizeof(double);
    arg.array.at.kind = LOCATION_INLINE;
    arg.array.at.inlined.bytes = job->elements;
    arg.array.at.inlined.size_bytes = sizeof(job->elements);
    struct request_output output = {.expr = expr, .n_expr_chars = sizeof(expr) - 1};
    struct job_request request = {.n_args = 1, .n_outputs = 1, .args = &arg, .outputs = &output};
    message_writer_clear(&job->body);
    message_begin_request(&job->body, id, "job.run");
    request_encode(&job->body.packer, &request);
}

void small_receive(struct conn *conn, struct frame *ret_frame)
{
    int r;
    while ((r = conn_next(conn, ret_frame)) == -EAGAIN) {
        struct pollfd ready = {.fd = conn_fd(conn), .events = POLLIN};
        r = conn_receive(conn);
        if (r == -EAGAIN)
            poll(&ready, 1, -1);
        else if (r)
            break;
    }
    if (r) {
        fprintf(stderr, "the connection is lost: %s\n", strerror(-r));
        exit(1);
    }
}

struct conn *small_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct conn *conn;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
        conn_new(fd, NULL, &conn)) {
        perror(path);
        exit(1);
    }
    struct message_writer hello;
    message_writer_init(&hello);
    message_begin_request(&hello, 0, "hello");
    msgpack_pack_map(&hello.packer, 2);
    pack_key_u64(&hello.packer, "version", 1);
    pack_key_str(&hello.packer, "client", "bench");
    if (conn_send(conn, hello.buffer.data, hello.buffer.size, NULL, 0) || conn_flush(conn)) {
        fprintf(stderr, "hello was not sent\n");
        exit(1);
    }
    message_writer_deinit(&hello);
    struct frame frame;
    small_receive(conn, &frame);
    frame_deinit(&frame, NULL);
    return conn;
}

int small_check(const struct small_job *job, const struct frame *frame, uint32_t *ret_id)
{
    struct message message;
    bool has_id;
    struct gad_error error;
    if (message_decode(frame->body, frame->size_bytes, &message, &has_id, &error))
        return -1;
    *ret_id = message.id;
    int r = -1;
    const msgpack_object *outputs = map_find(&message.result, "outputs");
    if (outputs && outputs->type == MSGPACK_OBJECT_ARRAY && outputs->via.array.size == 1) {
        const msgpack_object *data = map_find(&outputs->via.array.ptr[0], "data");
        double last;
        if (data && data->type == MSGPACK_OBJECT_BIN &&
            data->via.bin.size == sizeof(job->elements)) {
            memcpy(&last, data->via.bin.ptr + sizeof(job->elements) - sizeof(last), sizeof(last));
            r = last == sqrt(job->elements[SMALL_ELEMENTS - 1]) ? 0 : -1;
        }
    }
    message_deinit(&message);
    return r;
}
