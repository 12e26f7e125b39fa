/* Linear regression by gradient steps, from arrays of any size, with a checkpoint between any two.
 *
 *     cc -o train train.c $(pkg-config --cflags --libs gpuarrayd)
 *     ./train images.npy labels.h5:/y 3 model.bin [STEPS]
 *
 * The first source has a row for each label of the second; both are float32, and may be in any
 * format. Three epochs, each in an order of its own. model.bin has the state of the loader and then
 * the weights: a program that ends in between, after STEPS steps or killed, goes on from there when
 * it is run again, and ends at the same weights to the bit.
 */
#include <gpuarrayd.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct model {
    char state[GAD_STATE_BYTES];
    int64_t n;       /* of the weights, the last of which is the constant */
    double *weights; /* not in the file's first part */
};

static int fail(struct gad_error *error, int status, const char *text)
{
    *error = (struct gad_error){.status = (enum gad_status)status};
    snprintf(error->message, sizeof(error->message), "%s", text);
    return status;
}

/* An error says what is wrong, with which argument, what was expected and what was found; any of
 * the last three may be empty. */
static void complain(const struct gad_error *error)
{
    fprintf(stderr, "train: %s (%s)\n", error->message, gad_status_word(error->status));
    if (error->expected[0] || error->found[0])
        fprintf(stderr, "train: %s: expected %s, found %s\n", error->argument, error->expected,
                error->found);
}

/* A batch is memory that is this program's until it is released. */
static int step(struct gad_batch *batch, struct model *model, double *gradient,
                struct gad_error *error)
{
    const float *x = gad_batch_data(batch, 0), *y = gad_batch_data(batch, 1);
    int64_t n_rows = gad_batch_length(batch), n = model->n - 1;
    double loss = 0;

    for (int64_t j = 0; j <= n; j++)
        gradient[j] = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        double miss = model->weights[n] - (double)y[i];
        for (int64_t j = 0; j < n; j++)
            miss += model->weights[j] * (double)x[i * n + j];
        for (int64_t j = 0; j < n; j++)
            gradient[j] += miss * (double)x[i * n + j];
        gradient[n] += miss;
        loss += miss * miss;
    }
    for (int64_t j = 0; j <= n; j++)
        model->weights[j] -= 0.1 * gradient[j] / (double)n_rows;
    if (!(loss < 1e300))
        return fail(error, GAD_BAD_ARGUMENT, "the loss is no number: scale the rows");
    return 0;
}

/* The file is the old one or the new one, whole, whenever the program ends. */
static int save(struct gad_loader *loader, const char *path, struct model *model,
                struct gad_error *error)
{
    char next[4096];
    if (snprintf(next, sizeof(next), "%s.new", path) >= (int)sizeof(next))
        return fail(error, GAD_BAD_ARGUMENT, "the path is too long");
    int r = (int)gad_loader_state(loader, model->state, error);
    if (r)
        return r;
    FILE *file = fopen(next, "wb");
    bool is_written =
        file && fwrite(model->state, sizeof(model->state), 1, file) == 1 &&
        fwrite(model->weights, sizeof(double), (size_t)model->n, file) == (size_t)model->n;
    if (file && fclose(file))
        is_written = false;
    if (!is_written || rename(next, path)) {
        remove(next);
        return fail(error, GAD_NO_SPACE, "the model cannot be written");
    }
    return 0;
}

/* Of another data set, of other options, or no state at all: the library says so. */
static int load(struct gad_loader *loader, const char *path, struct model *model,
                struct gad_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0; /* the first run */
    bool is_read =
        fread(model->state, sizeof(model->state), 1, file) == 1 &&
        fread(model->weights, sizeof(double), (size_t)model->n, file) == (size_t)model->n;
    fclose(file);
    model->state[GAD_STATE_BYTES - 1] = '\0';
    return is_read ? (int)gad_loader_load_state(loader, model->state, error)
                   : fail(error, GAD_BAD_FORMAT, "this is no file of a model");
}

/* Batches until the epoch ends, or n_left are done. A batch that cannot be read, as its chunk is
 * damaged, is left out here; the next call goes on behind it. What else there is ends the run. */
static int train_epoch(struct gad_loader *loader, struct model *model, long *n_left,
                       bool *ret_at_end, struct gad_error *error)
{
    double *gradient = malloc(sizeof(double) * (size_t)model->n);
    if (!gradient)
        return fail(error, GAD_NO_MEMORY, "no memory");
    int r = 0;
    *ret_at_end = false;
    while (r == 0 && *n_left != 0) {
        struct gad_batch *batch;
        r = (int)gad_loader_next(loader, -1, &batch, error);
        if (r == GAD_PROVIDER_FAILED || r == GAD_SHORT_READ) {
            fprintf(stderr, "train: left out: %s\n", error->message);
            r = 0;
            continue;
        }
        if (r || !batch) {
            *ret_at_end = r == 0;
            break;
        }
        r = step(batch, model, gradient, error);
        gad_batch_release(batch);
        --*n_left;
    }
    free(gradient);
    return r;
}

static int train(struct gad_loader *loader, long n_epochs, const char *path, long n_left,
                 struct model *model, struct gad_error *error)
{
    int r = load(loader, path, model, error);
    while (r == 0 && n_left != 0 && gad_loader_epoch(loader) < (uint64_t)n_epochs) {
        bool is_at_end;
        r = train_epoch(loader, model, &n_left, &is_at_end, error);
        if (r == 0 && is_at_end)
            r = (int)gad_loader_set_epoch(loader, gad_loader_epoch(loader) + 1, error);
        if (r == 0)
            r = save(loader, path, model, error);
    }
    if (r == 0)
        printf("epoch %" PRIu64 ", weights %.4f ... %.4f, constant %.4f\n",
               gad_loader_epoch(loader), model->weights[0], model->weights[model->n - 2],
               model->weights[model->n - 1]);
    return r;
}

/* Dtypes and shapes are known before anything is read. */
static int check(const struct gad_array *x, const struct gad_array *y, int64_t *ret_n,
                 struct gad_error *error)
{
    const struct gad_array_info *of_x = gad_array_info(x), *of_y = gad_array_info(y);

    if (of_x->dtype != GAD_FLOAT32 || of_y->dtype != GAD_FLOAT32)
        return fail(error, GAD_BAD_DTYPE, "both sources are float32");
    if (of_x->ndim != 2 || of_x->shape[1] < 1 || of_y->ndim != 1)
        return fail(error, GAD_BAD_SHAPE, "rows have one axis, labels have none");
    *ret_n = of_x->shape[1] + 1;
    return 0;
}

static int run(struct gad_client *client, char **words, long n_left, struct gad_error *error)
{
    struct gad_dataset_part parts[] = {{.name = "x"}, {.name = "y"}};
    struct gad_dataset *dataset = NULL;
    struct gad_loader *loader = NULL;
    struct model model = {0};
    const struct gad_loader_options options = {.batch_size = 64,
                                               .shuffle = GAD_SHUFFLE_EXACT,
                                               .seed = 7,
                                               .drop_last = true,
                                               .memory_bytes = 8 << 20};

    int r = (int)gad_array_open(client, words[1], &parts[0].array, error);
    if (r == 0)
        r = (int)gad_array_open(client, words[2], &parts[1].array, error);
    if (r == 0)
        r = check(parts[0].array, parts[1].array, &model.n, error);
    if (r == 0)
        r = (int)gad_dataset_new(client, 2, parts, &dataset, error);
    if (r == 0)
        r = (int)gad_loader_new(dataset, &options, &loader, error);
    if (r == 0 && !(model.weights = calloc((size_t)model.n, sizeof(double))))
        r = fail(error, GAD_NO_MEMORY, "no memory");
    if (r == 0)
        r = train(loader, strtol(words[3], NULL, 10), words[4], n_left, &model, error);
    free(model.weights);
    gad_loader_free(loader);
    gad_dataset_free(dataset);
    gad_array_release(parts[0].array);
    gad_array_release(parts[1].array);
    return r;
}

int main(int argc, char **argv)
{
    struct gad_client *client = NULL;
    struct gad_error error = {0};

    if (argc != 5 && argc != 6) {
        fputs("usage: train ROWS LABELS EPOCHS MODEL [STEPS]\n", stderr);
        return 2;
    }
    int r = (int)gad_connect(NULL, &client, &error);
    if (r == 0)
        r = run(client, argv, argc == 6 ? strtol(argv[5], NULL, 10) : -1, &error);
    gad_close(client);
    if (r)
        complain(&error);
    return r ? 1 : 0;
}
