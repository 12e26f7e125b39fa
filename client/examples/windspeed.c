/* Wind speeds: from two datasets of an HDF5 file to a .npy file, and the mean beside it.
 *
 *     cc -o windspeed windspeed.c $(pkg-config --cflags --libs gpuarrayd)
 *     ./windspeed winds.h5 /UWND /VWND speed.npy
 *
 * Both results come from one pass over the data, which may be larger than the memory of any device.
 * The file appears whole or not at all; the mean, a single number, comes back in the answer.
 */
#include <gpuarrayd.h>

#include <stdio.h>

static int complain(const struct gad_error *error)
{
    fprintf(stderr, "windspeed: %s (%s)\n", error->message, gad_status_word(error->status));
    return 1;
}

/* "winds.h5" and "/UWND" make the source "winds.h5:/UWND". */
static int open_dataset(struct gad_client *client, const char *file, const char *dataset,
                        struct gad_array **ret_array, struct gad_error *error)
{
    char spec[4096];
    int n = snprintf(spec, sizeof(spec), "%s:%s", file, dataset);
    if (n < 0 || (size_t)n >= sizeof(spec)) {
        *error = (struct gad_error){.status = GAD_BAD_ARGUMENT, .message = "the name is too long"};
        return GAD_BAD_ARGUMENT;
    }
    return (int)gad_array_open(client, spec, ret_array, error);
}

static int compute(struct gad_client *client, struct gad_array *u, struct gad_array *v,
                   const char *to, struct gad_error *error)
{
    const struct gad_argument args[] = {{.name = "u", .array = u}, {.name = "v", .array = v}};
    const struct gad_output outputs[] = {
        {.name = "speed", .expr = "sqrt(u*u + v*v)", .to_path = to},
        {.name = "mean", .expr = "mean(sqrt(u*u + v*v))"},
    };
    const struct gad_job_options options = {
        .n_args = 2, .args = args, .n_outputs = 2, .outputs = outputs, .label = "wind speeds"};
    struct gad_job *job;
    struct gad_plan_output what;

    if (gad_submit(client, &options, &job, error))
        return 1;
    int r = (int)gad_job_wait(job, -1, error);
    if (r == GAD_OK) {
        const void *mean = gad_job_result(job, 1, &what);
        double value = what.dtype == GAD_FLOAT32 ? *(const float *)mean : *(const double *)mean;
        printf("mean speed %.3f, %.1f MB read in %.3f s\n", value,
               (double)gad_job_stats(job)->read_bytes / 1e6, gad_job_stats(job)->total_s);
    }
    gad_job_free(job);
    return r;
}

int main(int argc, char **argv)
{
    struct gad_client *client = NULL;
    struct gad_array *u = NULL, *v = NULL;
    struct gad_error error = {0};

    if (argc != 5) {
        fputs("usage: windspeed FILE.h5 DATASET DATASET SPEED.npy\n", stderr);
        return 2;
    }
    int r = (int)gad_connect(NULL, &client, &error);
    if (r == GAD_OK)
        r = open_dataset(client, argv[1], argv[2], &u, &error);
    if (r == GAD_OK)
        r = open_dataset(client, argv[1], argv[3], &v, &error);
    if (r == GAD_OK)
        r = compute(client, u, v, argv[4], &error);
    gad_array_release(u);
    gad_array_release(v);
    gad_close(client);
    return r == GAD_OK ? 0 : complain(&error);
}
