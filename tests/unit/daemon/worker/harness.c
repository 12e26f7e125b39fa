/* See harness.h. The worker runs in a thread; its own threads are its own. */
#include "tests/unit/daemon/worker/harness.h"
#include "daemon/crashpage.h"
#include "proto/util.h"
#include "proto/wire/map.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define TIMEOUT_MS 60000

static void *run(void *argument)
{
    struct harness *h = argument;
    int r = worker_run(h->worker);
    cr_assert(eq(int, r, 0));
    return NULL;
}

void harness_start(struct harness *h, uint64_t pool_bytes, unsigned n_threads)
{
    int fds[2];
    memset(h, 0, sizeof(*h));
    cr_assert(eq(int, crashpage_create(&h->page_fd), 0));
    cr_assert(eq(int, crashpage_map(h->page_fd, &h->page), 0));
    cr_assert(eq(int, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0));
    const struct worker_config config = {.fd_take = fds[1],
                                         .crash_page_fd = h->page_fd,
                                         .engine_take = harness_engine(pool_bytes, n_threads)};
    cr_assert(eq(int, worker_new(&config, &h->worker), 0));
    cr_assert(eq(int, conn_new(fds[0], NULL, &h->conn), 0));
    cr_assert(eq(int, pthread_create(&h->thread, NULL, run, h), 0));
}

void harness_stop(struct harness *h)
{
    h->conn = conn_free(h->conn);
    pthread_join(h->thread, NULL);
    h->worker = worker_free(h->worker);
    crashpage_unmap(h->page);
    close_fd(&h->page_fd);
}

void job_init(struct test_job *j, uint64_t id)
{
    memset(j, 0, sizeof(*j));
    j->request.args = j->args;
    j->request.outputs = j->outputs;
    j->id = id;
    j->user = 1000;
}

static void describe(struct array *array, enum dtype dtype, int ndim, const int64_t *shape)
{
    array->dtype = dtype;
    array->ndim = ndim;
    for (int i = 0; i < ndim; i++)
        array->shape[i] = shape[i];
    array_c_strides(ndim, shape, (int64_t)dtype_size(dtype), array->strides);
}

struct array *job_arg(struct test_job *j, const char *name, enum dtype dtype, int ndim,
                      const int64_t *shape)
{
    struct request_arg *arg = &j->args[j->request.n_args++];
    snprintf(arg->name, sizeof(arg->name), "%s", name);
    describe(&arg->array, dtype, ndim, shape);
    return &arg->array;
}

void job_scalar(struct test_job *j, const char *name, double value)
{
    struct request_arg *arg = &j->args[j->request.n_args++];
    snprintf(arg->name, sizeof(arg->name), "%s", name);
    arg->is_scalar = true;
    arg->scalar_dtype = DTYPE_FLOAT64;
    arg->scalar.f64 = value;
}

struct array *job_output(struct test_job *j, const char *expr, const char *name)
{
    struct request_output *output = &j->outputs[j->request.n_outputs++];
    snprintf(output->name, sizeof(output->name), "%s", name);
    output->expr = expr;
    output->n_expr_chars = strlen(expr);
    return &output->to;
}

struct array *job_output_to(struct test_job *j, const char *expr, const char *name,
                            enum dtype dtype, int ndim, const int64_t *shape)
{
    struct array *to = job_output(j, expr, name);
    j->outputs[j->request.n_outputs - 1].has_to = true;
    describe(to, dtype, ndim, shape);
    return to;
}

void at_inline(struct array *array, const void *bytes, size_t n_bytes)
{
    array->at.kind = LOCATION_INLINE;
    array->at.inlined.bytes = bytes;
    array->at.inlined.size_bytes = n_bytes;
}

void at_region(struct array *array, uint64_t id, uint64_t offset_bytes)
{
    array->at.kind = LOCATION_REGION;
    array->at.region.id = id;
    array->at.region.offset_bytes = offset_bytes;
}

void at_file(struct test_job *j, struct array *array, int fd, uint64_t offset_bytes)
{
    array->at.kind = LOCATION_FILE;
    array->at.file.fd_index = j->n_fds;
    array->at.file.offset_bytes = offset_bytes;
    j->fds[j->n_fds++] = fd;
}

static void send_body(struct harness *h, struct message_writer *w, const int *fds, unsigned n_fds)
{
    int copies[FRAME_MAX_FDS];
    for (unsigned i = 0; i < n_fds; i++) {
        copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        cr_assert(ge(int, copies[i], 0));
    }
    cr_assert(eq(int, conn_send(h->conn, w->buffer.data, w->buffer.size, copies, n_fds), 0));
    int r;
    while ((r = conn_flush(h->conn)) == -EAGAIN)
        poll(&(struct pollfd){.fd = conn_fd(h->conn), .events = POLLOUT}, 1, TIMEOUT_MS);
    cr_assert(eq(int, r, 0));
    message_writer_deinit(w);
}

uint32_t harness_send(struct harness *h, struct test_job *j)
{
    struct message_writer w;
    message_writer_init(&w);
    message_begin_request(&w, ++h->n_messages, "job.start");
    msgpack_pack_map(&w.packer, 11);
    pack_key_bool(&w.packer, "in_place", j->in_place);
    pack_key_u64(&w.packer, "job", j->id);
    pack_key_u64(&w.packer, "user", j->user);
    pack_key_u64(&w.packer, "weight", 1);
    pack_key_i64(&w.packer, "priority", j->request.priority);
    pack_key_u64(&w.packer, "attempt", 1);
    pack_key_u64(&w.packer, "carry_offset", j->carry_offset);
    uint64_t carry_bytes = j->carry_bytes ? j->carry_bytes : CARRY_BYTES;
    pack_key_u64(&w.packer, "carry_size", j->needs_carry ? carry_bytes : 0);
    /* A worker that is a program of its own is the CPU's. */
    const struct plan_limits none = {0};
    const struct plan_limits *limits = h->worker ? &h->worker->engine->limits : &none;
    uint64_t most = limits->device_carry_bytes > 0 ? limits->product_carry_bytes : 0;
    uint64_t device_bytes = j->device_carry_bytes ? j->device_carry_bytes : most;
    pack_key_u64(&w.packer, "device_carry_offset", j->device_carry_offset);
    pack_key_u64(&w.packer, "device_carry_size", j->needs_carry ? device_bytes : 0);
    pack_str(&w.packer, "request");
    request_encode(&w.packer, &j->request);
    send_body(h, &w, j->fds, j->n_fds);
    return h->n_messages;
}

static void next_frame(struct harness *h, struct frame *ret)
{
    int r;
    while ((r = conn_next(h->conn, ret)) == -EAGAIN) {
        struct pollfd p = {.fd = conn_fd(h->conn), .events = POLLIN};
        cr_assert(eq(int, poll(&p, 1, TIMEOUT_MS), 1), "the worker does not answer");
        r = conn_receive(h->conn);
        cr_assert(eq(int, r == -EAGAIN ? 0 : r, 0), "the connection is lost");
    }
    cr_assert(eq(int, r, 0));
}

void harness_receive(struct harness *h, struct outcome *ret, unsigned *ret_n_progress)
{
    bool has_id;
    for (;;) {
        memset(ret, 0, sizeof(*ret));
        next_frame(h, &ret->frame);
        cr_assert(eq(int,
                     message_decode(ret->frame.body, ret->frame.size_bytes, &ret->message, &has_id,
                                    &ret->error),
                     0));
        if (ret->message.kind == MESSAGE_RESPONSE)
            break;
        if (ret_n_progress && message_is(&ret->message, "job.progress"))
            ++*ret_n_progress;
        outcome_free(ret);
    }
    ret->id = ret->message.id;
    if (ret->message.error.type != MSGPACK_OBJECT_NIL) {
        map_error(&ret->message.error, &ret->error);
        ret->status = (int)ret->error.status;
    }
}

void outcome_free(struct outcome *o)
{
    message_deinit(&o->message);
    frame_deinit(&o->frame, NULL);
}

void harness_run(struct harness *h, struct test_job *j, struct outcome *ret)
{
    uint32_t id = harness_send(h, j);
    harness_receive(h, ret, NULL);
    cr_assert(eq(u32, ret->id, id));
}

const void *outcome_data(const struct outcome *o, unsigned output, size_t *ret_n_bytes)
{
    cr_assert(eq(int, o->status, 0), "%s: %s", error_word(o->status), o->error.message);
    const msgpack_object *outputs = map_find(&o->message.result, "outputs");
    cr_assert(outputs && outputs->type == MSGPACK_OBJECT_ARRAY && output < outputs->via.array.size);
    const msgpack_object *data = map_find(&outputs->via.array.ptr[output], "data");
    cr_assert(data && data->type == MSGPACK_OBJECT_BIN);
    if (ret_n_bytes)
        *ret_n_bytes = data->via.bin.size;
    return data->via.bin.ptr;
}

uint64_t outcome_u64(const struct outcome *o, const char *key)
{
    uint64_t value = UINT64_MAX;
    cr_assert(eq(int, map_require_u64(&o->message.result, key, &value, NULL), 0));
    return value;
}

int harness_attach(struct harness *h, uint64_t id, int fd, uint64_t size_bytes, bool is_writable)
{
    struct message_writer w;
    struct outcome o;
    message_writer_init(&w);
    message_begin_request(&w, ++h->n_messages, "region.attach");
    msgpack_pack_map(&w.packer, 3);
    pack_key_u64(&w.packer, "region", id);
    pack_key_u64(&w.packer, "size", size_bytes);
    pack_key_bool(&w.packer, "writable", is_writable);
    send_body(h, &w, &fd, 1);
    harness_receive(h, &o, NULL);
    cr_assert(eq(u32, o.id, h->n_messages));
    int status = o.status;
    outcome_free(&o);
    return status;
}

static void notify(struct harness *h, const char *method, const char *key, uint64_t value)
{
    struct message_writer w;
    message_writer_init(&w);
    message_begin_notification(&w, method);
    msgpack_pack_map(&w.packer, 1);
    pack_key_u64(&w.packer, key, value);
    send_body(h, &w, NULL, 0);
}

void harness_detach(struct harness *h, uint64_t id)
{
    notify(h, "region.detach", "region", id);
}

void harness_cancel(struct harness *h, uint64_t job)
{
    notify(h, "job.cancel", "job", job);
}

uint64_t harness_stat(struct harness *h, const char *key)
{
    struct message_writer w;
    struct outcome o;
    message_writer_init(&w);
    message_begin_request(&w, ++h->n_messages, "stats");
    msgpack_pack_map(&w.packer, 0);
    send_body(h, &w, NULL, 0);
    harness_receive(h, &o, NULL);
    cr_assert(eq(u32, o.id, h->n_messages));
    uint64_t value = outcome_u64(&o, key);
    outcome_free(&o);
    return value;
}

int make_memfd(size_t n_bytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, fallocate(fd, 0, 0, (off_t)n_bytes), 0));
    cr_assert(eq(int, fcntl(fd, F_ADD_SEALS, seals), 0));
    return fd;
}

int make_file(const void *bytes, size_t n_bytes)
{
    char path[] = "/var/tmp/gpuarrayd-test-XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    cr_assert(ge(int, fd, 0));
    unlink(path);
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = write(fd, (const char *)bytes + done, n_bytes - done);
        cr_assert(lt(i64, 0, n));
        done += (size_t)n;
    }
    return fd;
}
