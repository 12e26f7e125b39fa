/* The functions of mathematics at every level: as near to exact as kernels/ACCURACY.md says.
 *
 * Samples the first of the arguments that the table was measured with. An error must be within
 * what its row says, rounded up to whole ulp, and within 4 ulp wherever the table does not say: a
 * level that is made of another library than the row names, or another glibc than the table's.
 * Special values must be right and results must not depend on their place.
 */
#include "tests/unit/kernels/cpu/accuracy/accuracy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#define MAX_ROWS        128
#define SAMPLES_A_TRIAL 2000

struct row {
    char function[16], dtype[16];
    double error[ACCURACY_LEVELS];
    char source[ACCURACY_LEVELS][32];
};

static struct row rows[MAX_ROWS];
static unsigned n_rows;
static bool has_other_libc = true;

/* "| exp | float32 | 0.51 libm | 2.70 libmvec | 2.39 libmvec | 2.39 libmvec |" */
static bool parse_row(const char *line, struct row *row)
{
    return sscanf(line,
                  "| %15[a-z0-9] | %15[a-z0-9] | %lf %31[^|]| %lf %31[^|]| %lf %31[^|]| %lf "
                  "%31[^|]|",
                  row->function, row->dtype, &row->error[0], row->source[0], &row->error[1],
                  row->source[1], &row->error[2], row->source[2], &row->error[3],
                  row->source[3]) == 10;
}

static void read_table(void)
{
    FILE *file = fopen(ACCURACY_TABLE, "re");
    char line[512], version[32];
    n_rows = 0;
    while (file && n_rows < MAX_ROWS && fgets(line, sizeof(line), file)) {
#if defined(__GLIBC__)
        if (sscanf(line, "- glibc %31[0-9.],", version) == 1)
            has_other_libc = strcmp(version, gnu_get_libc_version()) != 0;
#endif
        if (!parse_row(line, &rows[n_rows]))
            continue;
        for (int level = 0; level < ACCURACY_LEVELS; level++) /* sscanf leaves a blank behind */
            rows[n_rows].source[level][strcspn(rows[n_rows].source[level], "\n")] = '\0';
        n_rows++;
    }
    if (file)
        fclose(file);
}

static double bound(const struct accuracy_function *f, enum dtype dtype, enum cpu_level level,
                    bool *ret_is_in_table)
{
    const char *source = accuracy_source(f, dtype, level);
    size_t n_chars = strlen(source);
    *ret_is_in_table = false;
    for (unsigned i = 0; i < n_rows; i++) {
        if (strcmp(rows[i].function, op_info(f->op)->name) ||
            strcmp(rows[i].dtype, dtype_name(dtype)))
            continue;
        *ret_is_in_table = true;
        const char *said = rows[i].source[level];
        if (!has_other_libc && !strncmp(said, source, n_chars) && !strcmp(said + n_chars, " "))
            return ceil(rows[i].error[level]);
    }
    return ACCURACY_MAX_ULP;
}

static void check_function(struct check *c, const struct accuracy_function *f, enum dtype dtype)
{
    struct accuracy_worst worst[ACCURACY_LEVELS] = {0};
    accuracy_run(f, dtype, 0, (uint64_t)c->n_trials * SAMPLES_A_TRIAL, worst);
    for (int level = 0; level < ACCURACY_LEVELS; level++) {
        const struct accuracy_worst *w = &worst[level];
        if (!w->is_there)
            continue;
        bool is_in_table;
        double most = bound(f, dtype, (enum cpu_level)level, &is_in_table);
        bool is_failed = w->error > most || w->n_unstable || !is_in_table;
        c->n_run++;
        c->n_failed += is_failed;
        if (is_failed || c->filter)
            printf("%s%s %s, level %s (%s): %.3f ulp at %a, %a (got %a), %g allowed%s%s\n",
                   is_failed ? "FAILED " : "", op_info(f->op)->name, dtype_name(dtype),
                   cpu_level_name((enum cpu_level)level),
                   accuracy_source(f, dtype, (enum cpu_level)level), w->error, w->x[0], w->x[1],
                   w->got, most, w->n_unstable ? ", depends on its place" : "",
                   is_in_table ? "" : ", not in the table");
    }
}

void check_accuracy(struct check *c)
{
    read_table();
    for (unsigned i = 0; i < accuracy_n_functions; i++) {
        if (c->filter && !strstr(op_info(accuracy_functions[i].op)->name, c->filter))
            continue;
        check_function(c, &accuracy_functions[i], DTYPE_FLOAT32);
        check_function(c, &accuracy_functions[i], DTYPE_FLOAT64);
    }
}
