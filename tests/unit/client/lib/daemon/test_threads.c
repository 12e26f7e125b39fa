/* Different clients in different threads at the same time, with a real daemon: what each does is
 * its own. And one client that goes from thread to thread. */
#include "tests/unit/client/lib/daemon/spawned_daemon.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_THREADS 4
#define N_TURNS   12
#define N         20000 /* float64 that do not travel in a message */

struct part {
    pthread_t thread;
    struct gad_client *client;
    struct gad_error error;
    int number, status;
    const char *what; /* that went wrong */
};

static int run_one(struct part *p, const char *expr, struct gad_array *a, struct gad_array *to,
                   const char *to_path)
{
    struct gad_argument args[] = {{.name = "a", .array = a}};
    struct gad_output outputs[] = {{.expr = expr, .to = to, .to_path = to_path}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    return (int)gad_run(p->client, &options, NULL, &p->error);
}

/* Ordinary memory, which threads of the library read and write. */
static const char *in_memory(struct part *p, double *data)
{
    const int64_t shape[] = {N}, one[] = {1};
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = shape};
    const struct gad_layout single = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = one};
    struct gad_array *a, *to, *sum;
    double total[1] = {0};
    for (int i = 0; i < N; i++)
        data[i] = p->number;
    if (gad_array_from_memory(p->client, &layout, data, true, &a, &p->error) ||
        gad_array_from_memory(p->client, &layout, data + N, true, &to, &p->error) ||
        gad_array_from_memory(p->client, &single, total, true, &sum, &p->error))
        return "from memory";
    if (run_one(p, "a * 2 + 1", a, to, NULL) || run_one(p, "sum(a, keepdims=True)", to, sum, NULL))
        return "run in memory";
    gad_array_release(a);
    gad_array_release(to);
    gad_array_release(sum);
    return *total == (2.0 * p->number + 1) * N ? NULL : "the sum in memory";
}

/* A file of each format, written and read. */
static const char *in_files(struct part *p, const double *data)
{
    static const char *const formats[] = {"%s/%d.npy", "%s/%d.h5:/x"};
    const int64_t shape[] = {N}, one[] = {1};
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = shape};
    const struct gad_layout single = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = one};
    for (size_t i = 0; i < ARRAY_LENGTH(formats); i++) {
        char path[128];
        struct gad_array *a, *file, *sum;
        double total[1] = {0};
        snprintf(path, sizeof(path), formats[i], scratch, p->number);
        if (gad_array_from_memory(p->client, &layout, (double *)data, false, &a, &p->error) ||
            run_one(p, "a + 1", a, NULL, path) ||
            gad_array_open(p->client, path, &file, &p->error) ||
            gad_array_from_memory(p->client, &single, total, true, &sum, &p->error) ||
            run_one(p, "sum(a, keepdims=True)", file, sum, NULL))
            return "run in files";
        gad_array_release(a);
        gad_array_release(file);
        gad_array_release(sum);
        if (*total != (p->number + 1.0) * N)
            return "the sum in a file";
    }
    return NULL;
}

static void *take_turns(void *argument)
{
    struct part *p = argument;
    double *data = malloc(2 * N * sizeof(*data));
    for (int i = 0; i < N_TURNS && !p->what; i++) {
        p->client = connect_soon();
        if (!p->client) {
            p->what = "connect";
            break;
        }
        p->what = in_memory(p, data);
        if (!p->what)
            p->what = in_files(p, data);
        gad_close(p->client);
    }
    free(data);
    return gad_versions()[0] ? NULL : p;
}

Test(threads, have_clients_of_their_own, .timeout = 120)
{
    static struct part parts[N_THREADS];
    struct gad_client *first = spawn_daemon();
    for (int i = 0; i < N_THREADS; i++) {
        parts[i].number = i + 1;
        cr_assert(eq(int, pthread_create(&parts[i].thread, NULL, take_turns, &parts[i]), 0));
    }
    for (int i = 0; i < N_THREADS; i++) {
        cr_assert(eq(int, pthread_join(parts[i].thread, NULL), 0));
        bool is_well = parts[i].what == NULL;
        cr_assert(is_well, "%s: %s", parts[i].what, parts[i].error.message);
    }
    end_daemon(first);
}

static void *use_it(void *argument)
{
    struct part *p = argument;
    double *data = malloc(2 * N * sizeof(*data));
    p->what = in_memory(p, data);
    free(data);
    return NULL;
}

Test(threads, may_have_a_client_one_after_the_other, .timeout = 60)
{
    static struct part part;
    part.client = spawn_daemon();
    for (int i = 0; i < N_THREADS; i++) {
        part.number = i;
        cr_assert(eq(int, pthread_create(&part.thread, NULL, use_it, &part), 0));
        cr_assert(eq(int, pthread_join(part.thread, NULL), 0));
        bool is_well = part.what == NULL;
        cr_assert(is_well, "%s: %s", part.what, part.error.message);
    }
    end_daemon(part.client);
}

/* Streams: the client's thread waits for the job, others push and take. */

#define N_STREAMED 1200000 /* more than the ring has */

struct ends {
    struct gad_stream *source, *sink;
    const double *elements;
    enum gad_status pushed, taken;
    double sum;
};

static void *push_all(void *argument)
{
    struct ends *e = argument;
    for (size_t i = 0; i < N_STREAMED && !e->pushed; i += 1000)
        e->pushed = gad_stream_push(e->source, e->elements + i, 1000, -1, NULL, NULL);
    if (!e->pushed)
        e->pushed = gad_stream_end(e->source, NULL);
    return NULL;
}

static void *take_all(void *argument)
{
    struct ends *e = argument;
    double block[700];
    size_t n = 1;
    while (n > 0 && !e->taken) {
        e->taken = gad_stream_take(e->sink, block, ARRAY_LENGTH(block), -1, &n, NULL);
        for (size_t i = 0; i < n && !e->taken; i++)
            e->sum += block[i];
    }
    return NULL;
}

static struct gad_stream *new_stream(struct gad_client *client, bool is_output)
{
    const int64_t shape[] = {N_STREAMED};
    const struct gad_layout layout = {.dtype = GAD_FLOAT64, .ndim = 1, .shape = shape};
    const struct gad_stream_options options = {.in_other_thread = true};
    struct gad_stream *stream;
    cr_assert(eq(int, (int)gad_stream_new(client, &layout, is_output, &options, &stream, NULL), 0));
    return stream;
}

/* leaves: the job is cancelled on its way, as somebody pushes or takes. */
static void stream_through(struct gad_client *client, const double *elements, bool leaves)
{
    struct ends ends = {new_stream(client, false), new_stream(client, true), elements};
    struct gad_argument arg = {.name = "a", .array = gad_stream_array(ends.source)};
    struct gad_output output = {.expr = "a * 2", .to = gad_stream_array(ends.sink)};
    const struct gad_job_options options = {
        .n_args = 1, .args = &arg, .n_outputs = 1, .outputs = &output};
    struct gad_job *job;
    pthread_t pusher, taker;
    cr_assert(eq(int, pthread_create(&pusher, NULL, push_all, &ends), 0));
    cr_assert(eq(int, pthread_create(&taker, NULL, take_all, &ends), 0));
    cr_assert(eq(int, (int)gad_submit(client, &options, &job, NULL), 0));
    if (leaves) {
        (void)gad_job_wait(job, 1, NULL);
        (void)gad_job_cancel(job, NULL);
    }
    enum gad_status status = gad_job_wait(job, -1, NULL);
    cr_assert(eq(int, pthread_join(pusher, NULL), 0));
    cr_assert(eq(int, pthread_join(taker, NULL), 0));
    cr_assert(status == GAD_OK || (leaves && status == GAD_CANCELLED));
    cr_assert(ends.pushed == status || (leaves && ends.pushed == GAD_OK)); /* all were pushed */
    if (status == GAD_OK)
        cr_assert(eq(dbl, ends.sum, (double)N_STREAMED * (N_STREAMED - 1)));
    gad_job_free(job);
    gad_stream_free(ends.source);
    gad_stream_free(ends.sink);
}

Test(threads, push_and_take_streams_while_another_waits, .timeout = 120)
{
    struct gad_client *client = spawn_daemon();
    double *elements = malloc(N_STREAMED * sizeof(*elements));
    for (int i = 0; i < N_STREAMED; i++)
        elements[i] = i;
    for (int i = 0; i < N_TURNS; i++)
        stream_through(client, elements, i % 2 == 1);
    free(elements);
    end_daemon(client);
}

struct pipe_end {
    int fd;
    double sum;
    size_t n_bytes;
};

static void *write_npy(void *argument)
{
    struct pipe_end *end = argument;
    char header[128];
    double block[1000];
    int n = snprintf(header, sizeof(header),
                     "\x93NUMPY\x01%cv%c{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }",
                     0, 0, N_STREAMED);
    memset(header + n, ' ', sizeof(header) - (size_t)n);
    header[127] = '\n';
    bool is_well = write(end->fd, header, sizeof(header)) == sizeof(header);
    for (int i = 0; i < N_STREAMED && is_well; i++) {
        block[i % 1000] = i;
        if (i % 1000 == 999)
            is_well = write(end->fd, block, sizeof(block)) == sizeof(block);
    }
    close(end->fd);
    return NULL;
}

static void *read_npy(void *argument)
{
    struct pipe_end *end = argument;
    static double all[N_STREAMED + 512];
    ssize_t n = 1;
    while (n > 0) {
        n = read(end->fd, (char *)all + end->n_bytes, sizeof(all) - end->n_bytes);
        end->n_bytes += n > 0 ? (size_t)n : 0;
    }
    for (int i = 0; i < N_STREAMED; i++)
        end->sum += all[512 + i]; /* behind a header of 4096 bytes */
    return NULL;
}

Test(threads, carry_streams_from_pipe_to_pipe, .timeout = 60)
{
    struct gad_client *client = spawn_daemon();
    const int64_t shape[] = {N_STREAMED};
    for (int i = 0; i < N_TURNS / 4; i++) {
        int in[2], out[2];
        pthread_t writer, reader;
        cr_assert(eq(int, pipe(in), 0));
        cr_assert(eq(int, pipe(out), 0));
        struct pipe_end write_end = {.fd = in[1]}, read_end = {.fd = out[0]};
        cr_assert(eq(int, pthread_create(&writer, NULL, write_npy, &write_end), 0));
        cr_assert(eq(int, pthread_create(&reader, NULL, read_npy, &read_end), 0));
        struct gad_stream *source, *sink;
        cr_assert(eq(int, (int)gad_stream_read_npy(client, in[0], "in", &source, NULL), 0));
        cr_assert(eq(
            int, (int)gad_stream_write_npy(client, out[1], GAD_FLOAT64, 1, shape, &sink, NULL), 0));
        close(out[1]);
        struct gad_argument arg = {.name = "a", .array = gad_stream_array(source)};
        struct gad_output output = {.expr = "a * 2", .to = gad_stream_array(sink)};
        const struct gad_job_options options = {
            .n_args = 1, .args = &arg, .n_outputs = 1, .outputs = &output};
        cr_assert(eq(int, (int)gad_run(client, &options, NULL, NULL), 0));
        cr_assert(eq(int, (int)gad_stream_join(sink, NULL), 0));
        gad_stream_free(source);
        gad_stream_free(sink); /* with it the last descriptor that writes goes */
        cr_assert(eq(int, pthread_join(writer, NULL), 0));
        cr_assert(eq(int, pthread_join(reader, NULL), 0));
        cr_assert(eq(sz, read_end.n_bytes, 4096 + N_STREAMED * sizeof(double)));
        cr_assert(eq(dbl, read_end.sum, (double)N_STREAMED * (N_STREAMED - 1)));
        close(in[0]);
        close(out[0]);
    }
    end_daemon(client);
}
