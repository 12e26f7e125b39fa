/* A job in the background: submitted, watched, and cancelled when it has taken long enough.
 *
 *     cc -o progress progress.c $(pkg-config --cflags --libs gpuarrayd)
 *     ./progress 2.5        (seconds that the job may take; 0: as long as it wants)
 *
 * Progress is reported from within gad_job_wait(), in this thread. A program with an event loop of
 * its own polls gad_fd() and calls gad_dispatch() instead.
 */
#include <gpuarrayd.h>

#include <stdio.h>
#include <stdlib.h>

static void on_progress(void *data, const struct gad_progress *progress)
{
    unsigned *n_calls = data;
    ++*n_calls;
    printf("job %llu: %llu of %llu tiles\n", (unsigned long long)progress->job,
           (unsigned long long)progress->tiles_done, (unsigned long long)progress->n_tiles);
}

/* 32 million elements that exist nowhere: index(0) counts them. */
static int start(struct gad_client *client, struct gad_array *ones, unsigned *n_calls,
                 struct gad_job **ret_job, struct gad_error *error)
{
    const struct gad_argument args[] = {{.name = "a", .array = ones}};
    const struct gad_output outputs[] = {{.expr = "sum(gamma(sin(a * index(0)) + 2))"}};
    const struct gad_job_options options = {.n_args = 1,
                                            .args = args,
                                            .n_outputs = 1,
                                            .outputs = outputs,
                                            .progress = on_progress,
                                            .progress_data = n_calls,
                                            .progress_ms = 50,
                                            .label = "progress example"};
    return (int)gad_submit(client, &options, ret_job, error);
}

/* GAD_TIMEOUT is no failure of the job: it goes on until it is told to end. */
static int finish(struct gad_job *job, double seconds, struct gad_error *error)
{
    int r = (int)gad_job_wait(job, seconds > 0 ? (int)(seconds * 1000) : -1, error);
    if (r == GAD_TIMEOUT) {
        r = (int)gad_job_cancel(job, error);
        if (r == GAD_OK)
            r = (int)gad_job_wait(job, -1, error);
    }
    if (r == GAD_OK)
        printf("the sum is %.17g\n", *(const double *)gad_job_result(job, 0, NULL));
    return r;
}

int main(int argc, char **argv)
{
    static const int64_t shape[] = {32 * 1024 * 1024};
    static const int64_t strides[] = {0}; /* one element in memory, seen everywhere */
    static const struct gad_layout layout = {
        .dtype = GAD_FLOAT64, .ndim = 1, .shape = shape, .strides = strides};
    double one = 1, seconds = argc > 1 ? atof(argv[1]) : 0;
    unsigned n_calls = 0;
    struct gad_client *client = NULL;
    struct gad_array *ones = NULL;
    struct gad_job *job = NULL;
    struct gad_error error = {0};

    int r = (int)gad_connect(NULL, &client, &error);
    if (r == GAD_OK)
        r = (int)gad_array_from_memory(client, &layout, &one, false, &ones, &error);
    if (r == GAD_OK)
        r = start(client, ones, &n_calls, &job, &error);
    if (r == GAD_OK)
        r = finish(job, seconds, &error);
    if (r)
        fprintf(stderr, "progress: %s (%s)\n", error.message, gad_status_word(error.status));
    printf("%u reports of progress\n", n_calls);
    gad_job_free(job);
    gad_array_release(ones);
    gad_close(client);
    return r == GAD_OK ? 0 : 1;
}
