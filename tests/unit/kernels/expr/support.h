/* What the tests of the expression compiler share: requests made of a few standard arguments. */
#pragma once

#include "kernels/program.h"

/* Arguments b i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 of shape (3, 4) and those dtypes; row (4,) and column
 * (3, 1) of float64; small (5,) and empty (0,) of int32; point () of float32; k: the Python
 * integer 3. */
struct fixture {
    struct request_arg args[REQUEST_MAX_ARGS];
    struct request_output outputs[REQUEST_MAX_OUTPUTS];
    struct job_request request;
    struct gad_error error;
    struct program *program;
    char text[8192]; /* of the program */
};

struct fixture *fixture_new(void);
void fixture_free(struct fixture *f);

struct array *fixture_add_array(struct fixture *f, const char *name, enum dtype dtype, int ndim,
                                const int64_t *shape);
void fixture_add_scalar(struct fixture *f, const char *name, enum dtype dtype, union scalar value);

/* The outputs are what ';' separates. Keeps pointers into `exprs`. The program, if there is one, is
 * checked with program_validate() and printed into f->text. Returns program_compile()'s result. */
int fixture_compile(struct fixture *f, const char *exprs);
/* As set in f->request. */
int fixture_compile_request(struct fixture *f);

/* What one expression alone must give: "float32 (3, 4)", or the status' word and the message:
 * "bad-shape: column 3: ...". */
struct expected {
    const char *expr, *result;
};
void expect_result(struct fixture *f, const char *expr, const char *result);
void expect_results(const struct expected *cases, size_t n);

/* The program of these expressions is printed so, or with this in it. */
void check_text(const char *exprs, const char *text);
void check_contains(const char *expr, const char *part);

#define EXPECT_RESULTS(cases) expect_results(cases, sizeof(cases) / sizeof((cases)[0]))
