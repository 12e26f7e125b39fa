/* What tests of files share. */
#pragma once

#include "tests/unit/daemon/worker/harness.h"

/* A file of n floats, 0.5 apart. */
static inline int make_floats(unsigned n, float **ret_values)
{
    float *values = malloc(n * sizeof(float));
    for (unsigned i = 0; i < n; i++)
        values[i] = (float)(i % 1000003) * 0.5f;
    int fd = make_file(values, n * sizeof(float));
    *ret_values = values;
    return fd;
}

static inline float *read_floats(int fd, unsigned n)
{
    float *values = malloc(n * sizeof(float));
    size_t n_bytes = n * sizeof(float);
    for (size_t done = 0; done < n_bytes;) {
        ssize_t got = pread(fd, (char *)values + done, n_bytes - done, (off_t)done);
        cr_assert(lt(i64, 0, got), "the output is short");
        done += (size_t)got;
    }
    return values;
}

static inline void check_unused(struct harness *h, uint64_t descriptors)
{
    cr_assert(eq(u64, harness_stat(h, "slots_lent"), 0));
    cr_assert(eq(u64, harness_stat(h, "carries"), 0));
    cr_assert(eq(u64, harness_stat(h, "jobs"), 0));
    cr_assert(eq(u64, harness_stat(h, "mappings"), 0));
    cr_assert(eq(u64, harness_stat(h, "descriptors"), descriptors));
}

static inline void run_ok(struct harness *h, struct test_job *j)
{
    struct outcome o;
    harness_run(h, j, &o);
    cr_assert(eq(int, o.status, 0), "%s: %s", o.error.argument, o.error.message);
    outcome_free(&o);
}

static inline void run_refused(struct harness *h, struct test_job *j, int status,
                               const char *argument)
{
    struct outcome o;
    harness_run(h, j, &o);
    cr_assert(eq(str, text(error_word(o.status)), text(error_word(status))), "%s", o.error.message);
    cr_assert(eq(str, o.error.argument, text(argument)));
    outcome_free(&o);
}
