/* gpuarrayctl matmul: matrix products by BLAS's words, C = alpha * op(A) @ op(B) + beta * C.
 *
 * The product is the library's. With --beta the output is there already and is added to in place; a
 * journal beside it then keeps what is being added, so that a command that was stopped, or whose
 * daemon or machine's processes ended, goes on where it was when it is given again.
 */
#include "client/ctl/run/run.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPTION_ALPHA = 0x300,
    OPTION_BETA,
    OPTION_TRANSPOSE_A,
    OPTION_TRANSPOSE_B,
    OPTION_JOURNAL,
    OPTION_NO_JOURNAL,
    OPTION_TF32,
    OPTION_EXPLAIN,
};

struct matmul_options {
    struct gad_product product;
    struct ctl_output out;
    bool explain, show;
    unsigned n_sources;
    const char *sources[2];
    char label[64];
};

static const struct argp_option options[] = {
    CTL_OUTPUT_OPTIONS,
    {"alpha", OPTION_ALPHA, "X", 0, "what the product is multiplied by; without it 1", 0},
    {"beta", OPTION_BETA, "X", 0,
     "what is in DEST before is multiplied by this and added; without it 0: a new file", 0},
    {"transpose-a", OPTION_TRANSPOSE_A, NULL, 0, "the last two axes of A exchanged", 0},
    {"transpose-b", OPTION_TRANSPOSE_B, NULL, 0, "the last two axes of B exchanged", 0},
    {"journal", OPTION_JOURNAL, "FILE", 0,
     "with --beta: what is being added is kept here; without it in DEST.journal", 0},
    {"no-journal", OPTION_NO_JOURNAL, NULL, 0,
     "with --beta: nothing is kept; what ends early leaves DEST added to in part", 0},
    {"tf32", OPTION_TF32, NULL, 0,
     "a device may round float32 to the 10 bits of TF32 before it multiplies: faster", 0},
    CTL_SHOW_OPTION,
    {"explain", OPTION_EXPLAIN, NULL, 0,
     "print the plan: tiles, bytes of each operand, time and what it goes to; run nothing", 0},
    {"verbose", 'v', NULL, 0, "say how long it took, with which library, what was moved", 0},
    {0},
};

/* Words ---------------------------------------------------------------------------------------- */

static int read_factor(const char *name, const char *text, double *ret,
                       struct gad_scalar *ret_exact, const struct argp_state *state)
{
    struct gad_scalar number;
    if (!ctl_read_scalar(text, &number))
        return ctl_usage_error(state, "%s is a number, not '%s'", name, text);
    if (number.kind == GAD_SCALAR_NONE)
        return ctl_usage_error(
            state, "%s does not fit 64 bits: '%s'; a number so large is a float, as 1e30", name,
            text);
    *ret_exact = (struct gad_scalar){.kind = GAD_SCALAR_NONE};
    if (number.kind == GAD_SCALAR_FLOAT)
        *ret = number.float_value;
    else
        *ret_exact = number;
    return 0;
}

/* Whether what is in DEST before has a part in the result. */
static bool is_added(const struct matmul_options *o)
{
    const struct gad_scalar *beta = &o->product.exact_beta;
    return beta->kind == GAD_SCALAR_NONE ? o->product.beta != 0 : beta->int_value != 0;
}

static int add_source(struct matmul_options *o, const char *text, const struct argp_state *state)
{
    if (o->n_sources == 2)
        return ctl_usage_error(state, "two sources: '%s' is too much", text);
    o->sources[o->n_sources++] = text;
    return 0;
}

static int check_end(const struct matmul_options *o, const struct argp_state *state)
{
    if (o->n_sources < 2)
        return ctl_usage_error(state, "two sources are needed, as in A.npy B.npy");
    if (!o->out.destination)
        return ctl_usage_error(state, "a destination is needed: -o C.npy");
    if (!is_added(o) && (o->product.journal_path || o->product.no_journal))
        return ctl_usage_error(state, "a journal is for what is added to DEST: --beta 1");
    if (o->show && o->out.json)
        return ctl_usage_error(state, "--show and --json together");
    if (o->product.journal_path && o->product.no_journal)
        return ctl_usage_error(state, "--journal and --no-journal together");
    return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct matmul_options *o = state->input;
    switch (key) {
    case OPTION_ALPHA:
        return read_factor("--alpha", arg, &o->product.alpha, &o->product.exact_alpha, state);
    case OPTION_BETA:
        return read_factor("--beta", arg, &o->product.beta, &o->product.exact_beta, state);
    case OPTION_TRANSPOSE_A: o->product.transpose_left = true; return 0;
    case OPTION_TRANSPOSE_B: o->product.transpose_right = true; return 0;
    case OPTION_JOURNAL: o->product.journal_path = arg; return 0;
    case OPTION_NO_JOURNAL: o->product.no_journal = true; return 0;
    case OPTION_TF32: o->product.tf32 = true; return 0;
    case OPTION_EXPLAIN: o->explain = true; return 0;
    case CTL_OPTION_SHOW: o->show = true; return 0;
    case ARGP_KEY_ARG: return add_source(o, arg, state);
    case ARGP_KEY_END: return check_end(o, state);
    default: return ctl_parse_output(key, arg, &o->out, state);
    }
}

static const struct argp argp = {
    options,
    parse,
    "A B",
    "Multiplies matrices of any size, as numpy.matmul: C = alpha * A @ B + beta * C.\v"
    "Matrices are the last two axes, the others broadcast; one axis is a row on the left and a "
    "column on the right. A and B may be one file: with --transpose-b the product is symmetric and "
    "computed once. With expressions around it: gpuarrayctl run 'maximum(a @ b + c, 0)'.\n"
    "With --beta the result is added into a file that is there. A command that ended too early "
    "leaves a journal beside it and goes on from there when it is given again; nothing is added "
    "twice.\n"
    "\nExamples:\n"
    "  gpuarrayctl matmul A.npy B.npy -o C.npy\n"
    "  gpuarrayctl matmul x.h5:/x x.h5:/x --transpose-a -o gram.npy\n"
    "  gpuarrayctl matmul A.npy B.npy -o C.npy --alpha 0.5 --beta 1\n"
    "  gpuarrayctl matmul A.npy B.npy -o C.npy --explain" CTL_EXIT_CODES,
    NULL,
    NULL,
    NULL};

/* Running -------------------------------------------------------------------------------------- */

/* A source that is named twice is one array, so that its product with itself is seen. */
static int open_all(struct matmul_options *o, struct gad_client *client, struct gad_error *error)
{
    bool is_one = strcmp(o->sources[0], o->sources[1]) == 0;
    int r = ctl_open_output(client, &o->out, o->out.in_place || is_added(o), error);
    if (r == 0)
        r = ctl_open_source(client, o->sources[0], o->out.masking, &o->product.left, error);
    if (r == 0 && !is_one)
        r = ctl_open_source(client, o->sources[1], o->out.masking, &o->product.right, error);
    else
        o->product.right = o->product.left;
    if (r == 0)
        ctl_warn_packed_sources(2, o->sources,
                                (struct gad_array *const[]){o->product.left, o->product.right});
    return r;
}

static void close_all(struct matmul_options *o)
{
    if (o->product.right != o->product.left)
        gad_array_release(o->product.right);
    gad_array_release(o->product.left);
    gad_array_release(o->out.move.to);
}

static void print_verbose(const struct gad_job_stats *s)
{
    char left[32], right[32], written[32];
    fprintf(stderr, "%s: %.3f s, %s in %s\n", s->engine, s->total_s, s->product_library,
            s->product_precision);
    fprintf(stderr, "%s of A, %s of B read; %s written; %llu tiles of (%lld, %lld, %lld)\n",
            ctl_format_bytes((double)s->left_bytes, left),
            ctl_format_bytes((double)s->right_bytes, right),
            ctl_format_bytes((double)s->write_bytes, written),
            (unsigned long long)s->n_product_tiles, (long long)s->product_tile[0],
            (long long)s->product_tile[1], (long long)s->product_tile[2]);
    fprintf(stderr, "%s\n", s->engine_why);
}

static void print_outcome(const struct matmul_options *o, const struct gad_job_stats *stats)
{
    if (o->out.json) {
        struct json_object *object = ctl_stats_json(stats);
        json_object_object_add(object, "to", json_object_new_string(o->out.destination));
        ctl_put_json(object);
        return;
    }
    ctl_print_journal(stats);
    if (o->out.verbose)
        print_verbose(stats);
}

static int multiply(struct matmul_options *o, struct gad_client *client, struct gad_error *error)
{
    struct gad_job_stats stats = {0};
    struct ctl_progress progress;
    ctl_watch_output(&o->out, &progress);
    struct ctl_journal journal = {.path = NULL};
    if (is_added(o) && !o->product.no_journal)
        ctl_look_at_journal(o->out.move.to, o->out.destination, o->product.journal_path, &journal);
    int r = (int)gad_matmul(client, &o->product, &o->out.move, &stats, error);
    ctl_progress_end(&progress);
    if (!r) {
        print_outcome(o, &stats);
        r = o->show ? ctl_show_file(client, o->out.destination, error) : 0;
    } else if (!o->out.json)
        ctl_note_journal(&journal, r);
    ctl_journal_deinit(&journal);
    return r;
}

static int explain(struct matmul_options *o, struct gad_client *client, struct gad_error *error)
{
    struct gad_plan *plan;
    int r = (int)gad_matmul_plan(client, &o->product, &o->out.move, &plan, error);
    if (r)
        return r;
    run_print_plan(plan, o->out.json);
    gad_plan_free(plan);
    return 0;
}

int verb_matmul(int argc, char **argv)
{
    struct matmul_options o = {.product.alpha = 1};
    struct gad_error error = {0};
    struct gad_client *client = NULL;
    if (ctl_parse(&argp, argc, argv, &o))
        return EXIT_USAGE;
    if (!o.out.move.label) {
        snprintf(o.label, sizeof(o.label), "matmul %s", o.sources[0]);
        o.out.move.label = o.label;
    }
    ctl_watch_signals();
    int r = ctl_connect(&client, &error);
    if (!r)
        r = open_all(&o, client, &error);
    if (!r)
        r = o.explain ? explain(&o, client, &error) : multiply(&o, client, &error);
    close_all(&o);
    gad_close(client);
    return r ? ctl_fail(&error, o.out.json) : EXIT_OK;
}
