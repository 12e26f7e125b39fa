/* The mean of an array of any size and any format, in some lines.
 *
 *     cc -o first first.c $(pkg-config --cflags --libs gpuarrayd)
 *     ./first speed.npy
 */
#include <gpuarrayd.h>

#include <stdio.h>

int main(int argc, char **argv)
{
    struct gad_client *client = NULL;
    struct gad_array *array = NULL;
    struct gad_job *job = NULL;
    struct gad_error error = {0};
    struct gad_plan_output what;
    int status = argc == 2 ? (int)gad_connect(NULL, &client, &error) : GAD_BAD_ARGUMENT;

    if (!status)
        status = (int)gad_array_open(client, argv[1], &array, &error);
    if (!status) {
        const struct gad_argument a = {.name = "a", .array = array};
        const struct gad_output mean = {.expr = "float64(mean(a))"};
        const struct gad_job_options options = {
            .n_args = 1, .args = &a, .n_outputs = 1, .outputs = &mean};
        status = (int)gad_submit(client, &options, &job, &error);
    }
    if (!status)
        status = (int)gad_job_wait(job, -1, &error);
    if (!status)
        printf("%.6f\n", *(const double *)gad_job_result(job, 0, &what));
    else
        fprintf(stderr, "first: %s (%s)\n", argc == 2 ? error.message : "usage: first SOURCE",
                gad_status_word((enum gad_status)status));
    gad_job_free(job);
    gad_array_release(array);
    gad_close(client);
    return status != 0;
}
