/* A tensor as a sum of outer products: what a callback sees of each iteration, and how it stops.
 *
 *     cc -o factors factors.c $(pkg-config --cflags --libs gpuarrayd)
 *     ./factors speed.npy 3 factors.npz
 *
 * The tensor is read once an iteration and never held. gpuarrayctl cp does the same, and more.
 */
#include <gpuarrayd-linalg.h>

#include <stdio.h>
#include <stdlib.h>

#define ENOUGH 1e-3 /* a change of the relative error that is not worth another read */

static int on_iteration(void *data, const struct gad_iteration *now)
{
    (void)data;
    printf("iteration %u: fit %.4f after %llu reads\n", now->iteration, now->fit,
           (unsigned long long)now->reads.n_reads);
    return now->iteration > 1 && now->change < ENOUGH; /* anything but 0 ends it */
}

static int decompose(struct gad_client *client, struct gad_array *array, int64_t rank,
                     const char *path, struct gad_error *error)
{
    const struct gad_operand tensor = {.array = array};
    const struct gad_cp_options options = {.size = sizeof(options),
                                           .run = {.iteration = on_iteration},
                                           .rank = rank,
                                           .n_iterations = 50,
                                           .seed = 1};
    struct gad_tensor_result result;
    int status = (int)gad_cp(client, &tensor, &options, &result, error);
    if (status)
        return status;
    printf("weights");
    for (int64_t r = 0; r < rank; r++)
        printf(" %.3g", result.factors.core.data[r]);
    printf("\n");
    status = (int)gad_factors_save(path, &result.factors, error);
    gad_tensor_result_deinit(&result);
    return status;
}

int main(int argc, char **argv)
{
    struct gad_client *client = NULL;
    struct gad_array *array = NULL;
    struct gad_error error = {0};
    if (argc != 4) {
        fprintf(stderr, "usage: factors SOURCE RANK FACTORS.npz\n");
        return 2;
    }
    int status = (int)gad_connect(NULL, &client, &error);
    if (!status)
        status = (int)gad_array_open(client, argv[1], &array, &error);
    if (!status)
        status = decompose(client, array, atoll(argv[2]), argv[3], &error);
    if (status)
        fprintf(stderr, "factors: %s (%s)\n", error.message,
                gad_status_word((enum gad_status)status));
    gad_array_release(array);
    gad_close(client);
    return status != 0;
}
