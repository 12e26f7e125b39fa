/* gpuarrayctl cp, tucker, reconstruct: tensors as factors, and back.
 *
 * The loops are the library's. Ctrl-C ends one between two parts of a read; what --checkpoint names
 * then has the last iteration, and the same command goes on from there.
 */
#include "client/ctl/linalg/linalg_words.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPTION_RANK = 0x600,
    OPTION_RANKS,
    OPTION_NONNEGATIVE,
    OPTION_RIDGE,
    OPTION_INIT,
    OPTION_SEED,
    OPTION_ITERATIONS,
    OPTION_TOLERANCE,
    OPTION_CHECKPOINT,
    OPTION_READS,
    OPTION_DTYPE,
};

struct tensor_options {
    struct linalg_words words;
    struct gad_cp_options cp;
    struct gad_tucker_options tucker;
    int n_ranks;
};

/* Words ---------------------------------------------------------------------------------------- */

static const struct argp_option cp_argp_options[] = {
    {"rank", OPTION_RANK, "R", 0, "how many outer products: 1 to 512", 0},
    {"nonnegative", OPTION_NONNEGATIVE, NULL, 0, "no element of a factor is below 0", 0},
    {"ridge", OPTION_RIDGE, "X", 0, "added to the diagonal of each normal matrix", 0},
    {"init", OPTION_INIT, "HOW", 0, "random, or svd: of a sketch, in one read more", 0},
    {"seed", OPTION_SEED, "N", 0, "of random numbers; without it 0", 0},
    {"iterations", OPTION_ITERATIONS, "N", 0, "at most so many; without it 100", 0},
    {"tolerance", OPTION_TOLERANCE, "X", 0,
     "it is done when the relative error changes by less (1e-8); 0: until nothing changes; -1: all",
     0},
    {"checkpoint", OPTION_CHECKPOINT, "FILE", 0,
     "an npz file with the factors as they are; where it is there, go on from it", 0},
    LINALG_OPTIONS,
    {0},
};

static const struct argp_option tucker_argp_options[] = {
    {"ranks", OPTION_RANKS, "R,R,R", 0, "of each axis", 0},
    {"tolerance", OPTION_TOLERANCE, "X", 0, "instead: the relative error that ranks are chosen for",
     0},
    {"reads", OPTION_READS, "N", 0,
     "of the data, at most: 1 is a sketch, 2 (without it) mostly as good as can be", 0},
    {"seed", OPTION_SEED, "N", 0, "of the sketch; without it 0", 0},
    {"checkpoint", OPTION_CHECKPOINT, "FILE", 0,
     "an npz file with the factors as they are; where it is there, go on from it", 0},
    LINALG_OPTIONS,
    {0},
};

static error_t read_ranks(struct tensor_options *o, char *text, const struct argp_state *state)
{
    for (char *rest = text, *part; (part = strsep(&rest, ",")) != NULL;) {
        if (o->n_ranks == GAD_MAX_FACTORS)
            return ctl_usage_error(state, "at most %d ranks", GAD_MAX_FACTORS);
        error_t r = linalg_read_count("a rank", part, &o->tucker.ranks[o->n_ranks++], state);
        if (r)
            return r;
    }
    return 0;
}

static error_t read_seed(const char *text, uint64_t *ret, const struct argp_state *state)
{
    int64_t number;
    error_t r = linalg_read_count("--seed", text, &number, state);
    *ret = (uint64_t)number;
    return r;
}

static error_t parse_cp(int key, char *arg, struct argp_state *state)
{
    struct tensor_options *o = state->input;
    int64_t number;
    error_t r;
    switch (key) {
    case OPTION_RANK: return linalg_read_count("--rank", arg, &o->cp.rank, state);
    case OPTION_NONNEGATIVE: o->cp.nonnegative = true; return 0;
    case OPTION_RIDGE: return linalg_read_number("--ridge", arg, &o->cp.ridge, state);
    case OPTION_INIT:
        if (strcmp(arg, "random") != 0 && strcmp(arg, "svd") != 0)
            return ctl_usage_error(state, "--init is random or svd, not '%s'", arg);
        o->cp.init = strcmp(arg, "svd") == 0 ? GAD_CP_SVD : GAD_CP_RANDOM;
        return 0;
    case OPTION_SEED: return read_seed(arg, &o->cp.seed, state);
    case OPTION_ITERATIONS:
        r = linalg_read_count("--iterations", arg, &number, state);
        if (r == 0 && (number < 1 || number > 1000000))
            r = ctl_usage_error(state, "1 to 1000000 iterations, not %s", arg);
        o->cp.n_iterations = (unsigned)number;
        return r;
    case OPTION_TOLERANCE:
        r = linalg_read_number("--tolerance", arg, &o->cp.tolerance, state);
        if (o->cp.tolerance == 0) /* until nothing changes; to the library it is the usual */
            o->cp.tolerance = DBL_MIN;
        return r;
    case OPTION_CHECKPOINT: o->cp.checkpoint = arg; return 0;
    case ARGP_KEY_END:
        if (o->cp.rank == 0)
            return ctl_usage_error(state, "how many outer products? --rank 10");
        return linalg_check(&o->words, state);
    default: return linalg_parse(key, arg, &o->words, state);
    }
}

static error_t parse_tucker(int key, char *arg, struct argp_state *state)
{
    struct tensor_options *o = state->input;
    int64_t number;
    error_t r;
    switch (key) {
    case OPTION_RANKS: return read_ranks(o, arg, state);
    case OPTION_TOLERANCE:
        return linalg_read_number("--tolerance", arg, &o->tucker.tolerance, state);
    case OPTION_SEED: return read_seed(arg, &o->tucker.seed, state);
    case OPTION_CHECKPOINT: o->tucker.checkpoint = arg; return 0;
    case OPTION_READS:
        r = linalg_read_count("--reads", arg, &number, state);
        if (r == 0 && (number < 1 || number > 1000000))
            r = ctl_usage_error(state, "1 to 1000000 reads, not %s", arg);
        o->tucker.n_reads = (unsigned)number;
        return r;
    case ARGP_KEY_END:
        if (o->n_ranks == 0 && o->tucker.tolerance == 0)
            return ctl_usage_error(state, "how small? --ranks 10,10,10 or --tolerance 1e-3");
        if (o->n_ranks > 0 && o->tucker.tolerance != 0)
            return ctl_usage_error(state, "--ranks or --tolerance, not both");
        return linalg_check(&o->words, state);
    default: return linalg_parse(key, arg, &o->words, state);
    }
}

static const struct argp cp_argp = {
    cp_argp_options,
    parse_cp,
    "SOURCE",
    "Decomposes a tensor of 3 to 8 axes into a sum of outer products (CP, PARAFAC).\v"
    "The tensor is never held: it is read once an iteration where the daemon's pool has room, else "
    "twice, or twice for each part of the rank; --explain says. FILE gets weights, factor_0, "
    "factor_1 ...\n"
    "Ctrl-C leaves the checkpoint; the same command goes on from it.\n"
    "\nExamples:\n"
    "  gpuarrayctl cp t.npy --rank 10 -o f.npz\n"
    "  gpuarrayctl cp t.npy --rank 10 --iterations 50 --checkpoint c.npz -o f.npz\n"
    "  gpuarrayctl cp t=t.npy --of 'where(t < -900, 0, t)' --rank 5 -o f.npz\n"
    "  gpuarrayctl cp t.npy --rank 10 --explain" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

static const struct argp tucker_argp = {
    tucker_argp_options,
    parse_tucker,
    "SOURCE",
    "Decomposes a tensor of 3 to 8 axes into a small core and a factor for each axis (Tucker).\v"
    "The tensor is read twice, or more often in a small pool, and never held. FILE gets core, "
    "factor_0, factor_1 ... with "
    "orthonormal columns.\n"
    "\nExamples:\n"
    "  gpuarrayctl tucker t.npy --ranks 10,10,10 -o f.npz\n"
    "  gpuarrayctl tucker t.npy --tolerance 1e-3 -o f.npz" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Running -------------------------------------------------------------------------------------- */

static void print_result(const struct linalg_words *words, const struct gad_tensor_result *result)
{
    char bytes[32];
    if (words->json) {
        struct json_object *object = json_object_new_object();
        json_object_object_add(object, "relative_error",
                               json_object_new_double(result->relative_error));
        json_object_object_add(object, "iterations",
                               json_object_new_int64((int64_t)result->n_iterations));
        json_object_object_add(object, "converged", json_object_new_boolean(result->is_converged));
        json_object_object_add(object, "ridge_added", json_object_new_double(result->ridge_added));
        if (result->warning[0])
            json_object_object_add(object, "warning", json_object_new_string(result->warning));
        linalg_add_reads(object, &result->reads);
        json_object_object_add(object, "seconds", json_object_new_double(result->seconds));
        json_object_object_add(object, "to", json_object_new_string(words->destination));
        ctl_put_json(object);
        return;
    }
    printf("relative error %.6g after %u %s%s; %llu reads, %s\n", result->relative_error,
           result->n_iterations, result->factors.is_tucker ? "reads" : "iterations",
           result->is_converged ? ", converged" : "", (unsigned long long)result->reads.n_reads,
           ctl_format_bytes((double)result->reads.read_bytes, bytes));
    if (result->warning[0])
        fprintf(stderr, "gpuarrayctl: warning: %s\n", result->warning);
}

static int decompose(struct tensor_options *o, bool is_tucker, struct gad_client *client,
                     struct gad_error *error)
{
    struct linalg_words *words = &o->words;
    struct gad_tensor_result result = {.seconds = 0};
    o->cp.run = o->tucker.run = words->run;
    int r = is_tucker ? (int)gad_tucker(client, &words->operand, &o->tucker, &result, error)
                      : (int)gad_cp(client, &words->operand, &o->cp, &result, error);
    linalg_end_progress(words);
    if (r)
        return r;
    r = (int)gad_factors_save(words->destination, &result.factors, error);
    if (r == 0)
        print_result(words, &result);
    gad_tensor_result_deinit(&result);
    return r;
}

static int explain(struct tensor_options *o, bool is_tucker, struct gad_client *client,
                   struct gad_error *error)
{
    struct linalg_words *words = &o->words;
    struct gad_linalg_plan plan;
    o->cp.run = o->tucker.run = words->run;
    int r = is_tucker ? (int)gad_tucker_explain(client, &words->operand, &o->tucker, &plan, error)
                      : (int)gad_cp_explain(client, &words->operand, &o->cp, &plan, error);
    if (r == 0)
        linalg_print_plan(words, &plan);
    return r;
}

static int check_ranks(const struct tensor_options *o, struct gad_error *error)
{
    const struct gad_array_info *info = gad_array_info(o->words.operand.array);
    if (o->words.of || o->n_ranks == 0 || !info || info->ndim == o->n_ranks)
        return 0;
    error_set(error, GAD_BAD_RANK, "ranks", "%d ranks for a tensor of %d axes", o->n_ranks,
              info->ndim);
    error_expected(error, "%d", info->ndim);
    error_found(error, "%d", o->n_ranks);
    return GAD_BAD_RANK;
}

static int run_verb(int argc, char **argv, const char *verb, const struct argp *argp)
{
    struct tensor_options o = {.cp = {.size = sizeof(o.cp)}, .tucker = {.size = sizeof(o.tucker)}};
    bool is_tucker = argp == &tucker_argp;
    struct gad_client *client = NULL;
    struct gad_error error = {0};
    if (ctl_parse(argp, argc, argv, &o))
        return EXIT_USAGE;
    int r = linalg_open(&o.words, verb, &client, &error);
    if (r == 0)
        r = check_ranks(&o, &error);
    if (r == 0)
        r = o.words.explain ? explain(&o, is_tucker, client, &error)
                            : decompose(&o, is_tucker, client, &error);
    bool json = o.words.json;
    linalg_close(&o.words, client);
    return r ? ctl_fail(&error, json) : EXIT_OK;
}

int verb_cp(int argc, char **argv)
{
    return run_verb(argc, argv, "cp", &cp_argp);
}

int verb_tucker(int argc, char **argv)
{
    return run_verb(argc, argv, "tucker", &tucker_argp);
}
