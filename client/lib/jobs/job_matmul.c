/* Matrix products by BLAS's words: alpha * op(A) @ op(B) + beta * C.
 *
 * They are written as an expression, which one job computes:
 *
 *     (2)*(a @ b.mT) + (0.5)*c        a, b: the operands; c: the output as it was
 *
 * Matrices are transposed in the text, so that the daemon sees that a @ a.mT is symmetric. A job
 * that reads its output has a journal, so that it is never applied twice (journal.c).
 *
 * Called by programs.
 */
#include "client/lib/connection/client.h"
#include "client/lib/views/move.h"
#include "client/lib/memory/scalar.h"
#include "client/meaning.h"
#include "proto/dtype.h"
#include "proto/util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_CHARS 160

struct matmul {
    const char *right_name; /* "a" where both are one array */
    char text[TEXT_CHARS];
    struct gad_scalar alpha, beta;
    struct gad_argument args[3];
    struct gad_output output;
    struct gad_job_options job; /* points into the rest */
};

/* A number that is whole is an integer: 2 of an int32 product is int32, 2.0 float64. */
static struct gad_scalar factor(double number, const struct gad_scalar *exact)
{
    if (exact->kind != GAD_SCALAR_NONE)
        return *exact;
    if (isfinite(number) && number == trunc(number) && fabs(number) < 0x1p63)
        return (struct gad_scalar){.kind = GAD_SCALAR_INT, .int_value = (int64_t)number};
    return (struct gad_scalar){.kind = GAD_SCALAR_FLOAT, .float_value = number};
}

static void put_factor(struct matmul *m, const struct gad_scalar *number)
{
    size_t at = strlen(m->text);
    char text[SCALAR_TEXT_SIZE];
    if (number->kind == GAD_SCALAR_FLOAT || !scalar_is(number, 1))
        snprintf(m->text + at, sizeof(m->text) - at, "(%s)*", scalar_format(number, text));
}

static void put(struct matmul *m, const char *word)
{
    size_t at = strlen(m->text);
    snprintf(m->text + at, sizeof(m->text) - at, "%s", word);
}

static void put_operand(struct matmul *m, const char *name, const struct gad_array *array,
                        bool is_transposed)
{
    put(m, name);
    put(m, is_transposed && array->info.ndim > 1 ? ".mT" : "");
}

static void write_text(struct matmul *m, const struct gad_product *product)
{
    put_factor(m, &m->alpha);
    put(m, "(");
    put_operand(m, "a", product->left, product->transpose_left);
    put(m, " @ ");
    put_operand(m, m->right_name, product->right, product->transpose_right);
    put(m, ")");
    if (scalar_is(&m->beta, 0))
        return;
    put(m, " + ");
    put_factor(m, &m->beta);
    put(m, "c");
}

static void list_arguments(struct matmul *m, const struct gad_product *product,
                           const struct gad_move_options *options)
{
    unsigned n = 0;
    m->args[n++] = (struct gad_argument){.name = "a", .array = product->left};
    if (m->right_name[0] == 'b')
        m->args[n++] = (struct gad_argument){.name = "b", .array = product->right};
    if (!scalar_is(&m->beta, 0))
        m->args[n++] = (struct gad_argument){.name = "c", .array = options->to};
    m->output = (struct gad_output){
        .expr = m->text,
        .to = options->to,
        .to_path = options->to_path,
        .storage = options->storage,
    };
    m->job = (struct gad_job_options){
        .n_args = n,
        .args = m->args,
        .n_outputs = 1,
        .outputs = &m->output,
        .engine = options->engine,
        .priority = options->priority,
        .queue_timeout_ms = options->queue_timeout_ms,
        .deadline_ms = options->deadline_ms,
        .label = options->label,
        .progress = options->progress,
        .progress_data = options->progress_data,
        .progress_ms = options->progress_ms,
        .has_journal = !scalar_is(&m->beta, 0) && !product->no_journal,
        .journal_path = product->journal_path,
        .tf32 = product->tf32,
    };
}

static void matmul_init(struct matmul *m, const struct gad_product *product,
                        const struct gad_move_options *options)
{
    *m = (struct matmul){.right_name = product->left == product->right ? "a" : "b",
                         .alpha = factor(product->alpha, &product->exact_alpha),
                         .beta = factor(product->beta, &product->exact_beta)};
    write_text(m, product);
    list_arguments(m, product, options);
}

/* An integer that integers are multiplied by is of their dtype. */
static int check_bounds(const struct gad_scalar *number, enum dtype dtype, const char *name,
                        struct gad_error *error)
{
    uint64_t element;
    char text[SCALAR_TEXT_SIZE], bounds[2 * SCALAR_TEXT_SIZE];
    if (number->kind == GAD_SCALAR_FLOAT || !dtype_is_integer(dtype) ||
        scalar_put((enum gad_dtype)dtype, number, &element))
        return 0;
    scalar_format(number, text);
    error_set(error, GAD_BAD_ARGUMENT, name, "%s: %s is out of bounds for %s", name, text,
              dtype_name(dtype));
    error_expected(error, "%s", scalar_format_bounds((enum gad_dtype)dtype, bounds));
    error_found(error, "%s", text);
    return GAD_BAD_ARGUMENT;
}

static int check(const struct gad_client *client, const struct gad_product *product,
                 const struct gad_move_options *options, struct gad_error *error)
{
    if (!product)
        return error_set(error, GAD_BAD_ARGUMENT, "product", "product is NULL");
    struct gad_array *operands[] = {product->left, product->right};
    int r = move_check(client, 2, operands, options, error);
    if (r)
        return r;
    struct gad_scalar alpha = factor(product->alpha, &product->exact_alpha);
    struct gad_scalar beta = factor(product->beta, &product->exact_beta);
    bool is_added = !scalar_is(&beta, 0);
    if (is_added && !options->to) {
        error_set(error, GAD_BAD_ARGUMENT, "beta",
                  "beta is a factor of what is in the output, which is a new file");
        error_expected(error, "an array that is there");
        error_found(error, "%s", options->to_path);
        return GAD_BAD_ARGUMENT;
    }
    if (product->journal_path && (!is_added || product->no_journal))
        return error_set(error, GAD_BAD_ARGUMENT, "journal_path",
                         "a journal is for a product that is added to its output");
    enum dtype left = (enum dtype)meaning_dtype(product->left);
    r = check_bounds(&alpha, dtype_promote(left, (enum dtype)meaning_dtype(product->right)),
                     "alpha", error);
    if (r == 0 && is_added)
        r = check_bounds(&beta, (enum dtype)options->to->info.dtype, "beta", error);
    return r;
}

static int prepare(struct gad_client *client, const struct gad_product *product,
                   const struct gad_move_options *options, struct matmul *ret,
                   struct gad_error *error)
{
    int r = check(client, product, options, error);
    if (r == 0)
        matmul_init(ret, product, options);
    return r;
}

enum gad_status gad_matmul(struct gad_client *client, const struct gad_product *product,
                           const struct gad_move_options *options, struct gad_job_stats *ret_stats,
                           struct gad_error *error)
{
    struct matmul m;
    int r = prepare(client, product, options, &m, error);
    if (r)
        return (enum gad_status)r;
    return client_status(move_submit(client, &m.job, options, ret_stats, error), error);
}

enum gad_status gad_matmul_plan(struct gad_client *client, const struct gad_product *product,
                                const struct gad_move_options *options, struct gad_plan **ret_plan,
                                struct gad_error *error)
{
    struct matmul m;
    int r = prepare(client, product, options, &m, error);
    return r ? (enum gad_status)r : gad_plan(client, &m.job, ret_plan, error);
}
