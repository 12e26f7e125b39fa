/* gpuarrayctl svd, pca, lstsq: matrices of any size.
 *
 * What is small goes into an archive: singular values and vectors, components, coefficients. What
 * has a row for each of the matrix's goes where it is asked to.
 */
#include "client/ctl/linalg/linalg_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_VECTORS = 0x600,
    OPTION_ITERATIONS,
    OPTION_OVERSAMPLES,
    OPTION_SEED,
    OPTION_TOLERANCE,
    OPTION_CHECKPOINT,
    OPTION_VALUES,
    OPTION_RIGHT,
    OPTION_RCOND,
    OPTION_RIDGE,
};

#define MOST_RIDGES 1024

struct matrix_options {
    struct linalg_words words;
    struct gad_svd_options svd;
    struct gad_lstsq_options lstsq;
    double ridges[MOST_RIDGES];
    const char *right;
    struct gad_operand b;
};

/* Words ---------------------------------------------------------------------------------------- */

#define SVD_OPTIONS                                                                                \
    {NULL, 'k', "N", 0, "how many, the largest; without it all, of few columns or rows", 0},       \
        {"iterations",                                                                             \
         OPTION_ITERATIONS,                                                                        \
         "N",                                                                                      \
         0,                                                                                        \
         "reads that improve directions, of many columns and rows; without it 4",                  \
         0},                                                                                       \
        {"oversamples", OPTION_OVERSAMPLES, "N", 0, "directions beside the k; without it 10", 0},  \
        {"seed", OPTION_SEED, "N", 0, "of the first directions; without it 0", 0},                 \
        {"tolerance",                                                                              \
         OPTION_TOLERANCE,                                                                         \
         "X",                                                                                      \
         0,                                                                                        \
         "done when so much is left, as a part of the largest value's square",                     \
         0},                                                                                       \
    {                                                                                              \
        "checkpoint", OPTION_CHECKPOINT, "FILE", 0,                                                \
            "an npz file with the directions; where it is there, go on from it", 0                 \
    }

static const struct argp_option svd_argp_options[] = {
    SVD_OPTIONS,
    {"values", OPTION_VALUES, NULL, 0, "singular values alone", 0},
    {"vectors", OPTION_VECTORS, "DEST", 0,
     "where U goes, in one read more; of few rows and over 1023 columns: Vh", 0},
    LINALG_OPTIONS,
    {0},
};

static const struct argp_option pca_argp_options[] = {
    SVD_OPTIONS,
    {"scores", OPTION_VECTORS, "DEST", 0,
     "where the rows' coordinates go, in one read more: " CTL_DESTINATIONS, 0},
    LINALG_OPTIONS,
    {0},
};

static const struct argp_option lstsq_argp_options[] = {
    {"right", OPTION_RIGHT, "SOURCE", 0, "the right side: a row, or a number, for each of A", 0},
    {"rcond", OPTION_RCOND, "X", 0, "singular values up to this part of the largest are zero", 0},
    {"ridge", OPTION_RIDGE, "X,X,X", 0,
     "for each the x with least |A x - b|^2 + X |x|^2, in the same read", 0},
    LINALG_OPTIONS,
    {0},
};

static error_t read_number(const char *name, const char *text, int64_t least, int64_t *ret,
                           const struct argp_state *state)
{
    error_t r = linalg_read_count(name, text, ret, state);
    if (r == 0 && (*ret < least || *ret > 1000000))
        r = ctl_usage_error(state, "%s is from %lld to 1000000, not %s", name, (long long)least,
                            text);
    return r;
}

static error_t parse_svd(int key, char *arg, struct argp_state *state)
{
    struct matrix_options *o = state->input;
    int64_t number;
    error_t r;
    switch (key) {
    case 'k': return read_number("-k", arg, 1, &o->svd.k, state);
    case OPTION_ITERATIONS:
        r = read_number("--iterations", arg, 1, &number, state);
        o->svd.n_iterations = (unsigned)number;
        return r;
    case OPTION_OVERSAMPLES:
        r = read_number("--oversamples", arg, 0, &number, state);
        o->svd.n_oversamples = number > 0 ? number : -1;
        return r;
    case OPTION_SEED:
        r = linalg_read_count("--seed", arg, &number, state);
        o->svd.seed = (uint64_t)number;
        return r;
    case OPTION_TOLERANCE: return linalg_read_number("--tolerance", arg, &o->svd.tolerance, state);
    case OPTION_CHECKPOINT: o->svd.checkpoint = arg; return 0;
    case OPTION_VALUES: o->svd.values_only = true; return 0;
    case OPTION_VECTORS: o->svd.to_path = arg; return 0;
    case ARGP_KEY_END: return linalg_check(&o->words, state);
    default: return linalg_parse(key, arg, &o->words, state);
    }
}

static error_t read_ridges(struct matrix_options *o, char *text, const struct argp_state *state)
{
    for (char *rest = text, *part; (part = strsep(&rest, ",")) != NULL;) {
        if (o->lstsq.n_ridges == MOST_RIDGES)
            return ctl_usage_error(state, "at most %d ridges", MOST_RIDGES);
        error_t r = linalg_read_number("--ridge", part, &o->ridges[o->lstsq.n_ridges++], state);
        if (r)
            return r;
    }
    return 0;
}

static error_t parse_lstsq(int key, char *arg, struct argp_state *state)
{
    struct matrix_options *o = state->input;
    switch (key) {
    case OPTION_RIGHT: o->right = arg; return 0;
    case OPTION_RCOND: return linalg_read_number("--rcond", arg, &o->lstsq.rcond, state);
    case OPTION_RIDGE: return read_ridges(o, arg, state);
    case ARGP_KEY_END:
        if (!o->right)
            return ctl_usage_error(state, "what is it to be near to? --right b.npy");
        return linalg_check(&o->words, state);
    default: return linalg_parse(key, arg, &o->words, state);
    }
}

#define OF_SIZE                                                                                    \
    "A matrix with at most 1023 columns, or rows, is read once, and without -k one with at most "  \
    "4096; of others each iteration reads it. --explain says how often.\n"

static const struct argp svd_argp = {
    svd_argp_options,
    parse_svd,
    "SOURCE",
    "Finds singular values and vectors of a matrix of any size, which is never held.\v" OF_SIZE
    "FILE gets s and vh; of few rows and over 1023 columns s and u. "
    "Ctrl-C leaves the checkpoint; the same command goes on from it.\n"
    "\nExamples:\n"
    "  gpuarrayctl svd samples.npy -k 20 -o f.npz\n"
    "  gpuarrayctl svd samples.npy -k 20 --vectors u.npy -o f.npz\n"
    "  gpuarrayctl svd samples.npy --values -o f.npz\n"
    "  gpuarrayctl svd samples.npy -k 20 --explain" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static const struct argp pca_argp = {
    pca_argp_options,
    parse_svd,
    "SOURCE",
    "Finds principal components: the directions in which rows differ most from their "
    "mean.\v" OF_SIZE
    "FILE gets components, explained_variance, explained_variance_ratio, singular_values and mean, "
    "as scikit-learn's PCA has them.\n"
    "\nExamples:\n"
    "  gpuarrayctl pca samples.npy -k 5 -o f.npz\n"
    "  gpuarrayctl pca x=samples.npy --of 'log(x)' -k 5 -o f.npz" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static const struct argp lstsq_argp = {
    lstsq_argp_options,
    parse_lstsq,
    "SOURCE",
    "Finds the x with least |A x - b|, of a matrix A of any number of rows.\v"
    "A has at most 4096 columns, and is read once, for all ridges and up to 15 columns of b; or at "
    "most 4096 rows, and is read twice. FILE gets x, residuals (sums of squares) and s, A's "
    "singular values.\n"
    "\nExamples:\n"
    "  gpuarrayctl lstsq samples.npy --right y.npy -o f.npz\n"
    "  gpuarrayctl lstsq samples.npy --right y.npy --ridge 0.1,1,10 -o f.npz" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Outcomes ------------------------------------------------------------------------------------- */

static struct gad_dense named(const struct gad_dense *dense, const char *name)
{
    struct gad_dense found = *dense;
    snprintf(found.name, sizeof(found.name), "%s", name);
    return found;
}

static void print_outcome(const struct linalg_words *words, struct json_object *object,
                          const struct gad_reads *reads, double seconds, const char *warning)
{
    char bytes[32];
    if (words->json) {
        linalg_add_reads(object, reads);
        json_object_object_add(object, "seconds", json_object_new_double(seconds));
        json_object_object_add(object, "to", json_object_new_string(words->destination));
        if (warning[0])
            json_object_object_add(object, "warning", json_object_new_string(warning));
        ctl_put_json(object);
        return;
    }
    json_object_put(object);
    printf("%llu read%s, %s\n", (unsigned long long)reads->n_reads, reads->n_reads == 1 ? "" : "s",
           ctl_format_bytes((double)reads->read_bytes, bytes));
    if (warning[0])
        fprintf(stderr, "gpuarrayctl: warning: %s\n", warning);
}

static void add_largest(struct json_object *object, const struct gad_dense *s)
{
    struct json_object *values = json_object_new_array();
    for (int64_t i = 0; i < s->shape[0] && i < 20; i++)
        json_object_array_add(values, json_object_new_double(s->data[i]));
    json_object_object_add(object, "s", values);
}

/* Variances of components, and their parts. */
static int save_components(const char *path, const struct gad_svd_result *result,
                           struct gad_error *error)
{
    struct gad_dense variance = named(&result->s, "explained_variance");
    struct gad_dense ratio = named(&result->s, "explained_variance_ratio");
    int64_t k = result->s.shape[0];
    variance.data = calloc((size_t)k, sizeof(double));
    ratio.data = calloc((size_t)k, sizeof(double));
    int r = variance.data && ratio.data ? 0 : GAD_NO_MEMORY;
    for (int64_t i = 0; i < k && r == 0; i++) {
        double square = result->s.data[i] * result->s.data[i];
        variance.data[i] = square / (double)(result->n_rows > 1 ? result->n_rows - 1 : 1);
        ratio.data[i] = result->squares > 0 ? square / result->squares : 0;
    }
    const struct gad_dense arrays[] = {named(&result->vectors, "components"), variance, ratio,
                                       named(&result->s, "singular_values"),
                                       named(&result->mean, "mean")};
    if (r == 0)
        r = (int)gad_dense_save(path, 5, arrays, error);
    gad_dense_deinit(&variance);
    gad_dense_deinit(&ratio);
    return r;
}

static int save_vectors(const char *path, const struct gad_svd_result *result,
                        struct gad_error *error)
{
    const struct gad_dense arrays[] = {named(&result->s, "s"),
                                       named(&result->vectors, result->has_u ? "u" : "vh")};
    return (int)gad_dense_save(path, result->vectors.data ? 2 : 1, arrays, error);
}

/* Running -------------------------------------------------------------------------------------- */

static int decompose(struct matrix_options *o, bool is_pca, struct gad_client *client,
                     struct gad_error *error)
{
    struct linalg_words *words = &o->words;
    struct gad_svd_result result = {.n_rows = 0};
    o->svd.run = words->run;
    int r = is_pca ? (int)gad_pca(client, &words->operand, &o->svd, &result, error)
                   : (int)gad_svd(client, &words->operand, &o->svd, &result, error);
    linalg_end_progress(words);
    if (r || words->explain)
        goto out;
    r = is_pca ? save_components(words->destination, &result, error)
               : save_vectors(words->destination, &result, error);
    if (r)
        goto out;
    struct json_object *object = json_object_new_object();
    add_largest(object, &result.s);
    json_object_object_add(object, "iterations", json_object_new_int64(result.n_iterations));
    json_object_object_add(object, "converged", json_object_new_boolean(result.is_converged));
    if (!words->json)
        printf("%lld values, %.6g to %.6g; ", (long long)result.s.shape[0], result.s.data[0],
               result.s.data[result.s.shape[0] - 1]);
    print_outcome(words, object, &result.reads, result.seconds, result.warning);
out:
    gad_svd_result_deinit(&result);
    return r;
}

static int solve(struct matrix_options *o, struct gad_client *client, struct gad_error *error)
{
    struct linalg_words *words = &o->words;
    struct gad_lstsq_result result = {.rank = 0};
    int r = ctl_open_source(client, o->right, words->job.masking, &o->b.array, error);
    if (r)
        return r;
    ctl_warn_packed(o->right, o->b.array);
    o->lstsq.run = words->run;
    o->lstsq.ridges = o->ridges;
    r = (int)gad_lstsq(client, &words->operand, &o->b, &o->lstsq, &result, error);
    linalg_end_progress(words);
    if (r == 0 && !words->explain) {
        const struct gad_dense arrays[] = {result.x, result.residuals, result.s};
        r = (int)gad_dense_save(words->destination, 3, arrays, error);
    }
    if (r == 0 && !words->explain) {
        struct json_object *object = json_object_new_object();
        add_largest(object, &result.s);
        json_object_object_add(object, "rank", json_object_new_int64(result.rank));
        if (!words->json)
            printf("rank %lld of %lld; ", (long long)result.rank, (long long)result.s.shape[0]);
        print_outcome(words, object, &result.reads, result.seconds, result.warning);
    }
    gad_lstsq_result_deinit(&result);
    gad_array_release(o->b.array);
    return r;
}

static int run_verb(int argc, char **argv, const char *verb, const struct argp *argp)
{
    struct matrix_options o = {.svd = {.size = sizeof(o.svd)}, .lstsq = {.size = sizeof(o.lstsq)}};
    struct gad_client *client = NULL;
    struct gad_linalg_plan plan = {.n_iterations = 0};
    struct gad_error error = {0};
    if (ctl_parse(argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = linalg_open(&o.words, verb, &client, &error);
    o.words.run.plan = o.words.explain ? &plan : NULL;
    if (r == 0)
        r = argp == &lstsq_argp ? solve(&o, client, &error)
                                : decompose(&o, argp == &pca_argp, client, &error);
    if (r == 0 && o.words.explain)
        linalg_print_plan(&o.words, &plan);
    bool json = o.words.json;
    linalg_close(&o.words, client);
    return r ? ctl_fail(&error, json) : EXIT_OK;
}

int verb_svd(int argc, char **argv)
{
    return run_verb(argc, argv, "svd", &svd_argp);
}

int verb_pca(int argc, char **argv)
{
    return run_verb(argc, argv, "pca", &pca_argp);
}

int verb_lstsq(int argc, char **argv)
{
    return run_verb(argc, argv, "lstsq", &lstsq_argp);
}
