/* Arrays in shared memory: the program writes a field, the daemon computes on the same pages, the
 * program reads the result where the daemon put it. Nothing is copied between the two.
 *
 *     cc -o shared shared.c $(pkg-config --cflags --libs gpuarrayd)
 *     ./shared
 *
 * A field with one hot spot relaxes: in each step every value moves halfway to the mean of the
 * whole field. The result of a step is the source of the next.
 */
#include <gpuarrayd.h>

#include <stdio.h>

#define N_ROWS  1024
#define N_STEPS 10

static void heat(float *field)
{
    for (size_t i = 0; i < (size_t)N_ROWS * N_ROWS; i++)
        field[i] = 0;
    field[(size_t)N_ROWS / 2 * N_ROWS + N_ROWS / 2] = 1e6f;
}

static int step(struct gad_client *client, struct gad_array *from, struct gad_array *to,
                struct gad_error *error)
{
    const struct gad_argument args[] = {{.name = "t", .array = from}};
    const struct gad_output outputs[] = {{.expr = "t + 0.5 * (mean(t) - t)", .to = to}};
    const struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    return (int)gad_run(client, &options, NULL, error);
}

static int relax(struct gad_client *client, struct gad_array *fields[2], struct gad_error *error)
{
    heat(gad_array_data(fields[0]));
    for (int i = 0; i < N_STEPS; i++)
        if (step(client, fields[i % 2], fields[(i + 1) % 2], error))
            return 1;
    const float *field = gad_array_data(fields[N_STEPS % 2]);
    printf("after %d steps: %.4f at the centre, %.4f at the edge\n", N_STEPS,
           field[(size_t)N_ROWS / 2 * N_ROWS + N_ROWS / 2], field[0]);
    return 0;
}

int main(void)
{
    static const int64_t shape[] = {N_ROWS, N_ROWS};
    struct gad_client *client = NULL;
    struct gad_array *fields[2] = {NULL, NULL};
    struct gad_error error = {0};

    int r = (int)gad_connect(NULL, &client, &error);
    for (int i = 0; i < 2 && r == GAD_OK; i++)
        r = (int)gad_array_new(client, GAD_FLOAT32, 2, shape, &fields[i], &error);
    if (r == GAD_OK)
        r = relax(client, fields, &error);
    if (r)
        fprintf(stderr, "shared: %s (%s)\n", error.message, gad_status_word(error.status));
    gad_array_release(fields[0]);
    gad_array_release(fields[1]);
    gad_close(client);
    return r ? 1 : 0;
}
