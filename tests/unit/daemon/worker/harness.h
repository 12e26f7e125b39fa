/* A worker in this process, with the test in the broker's place, and jobs made from C. Its engine
 * is the CPU, or CUDA on the test double: the tests are built once for each. */
#pragma once

#include "daemon/worker/worker.h"
#include "proto/request.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

struct harness {
    struct worker *worker;
    pthread_t thread;
    struct conn *conn;
    struct crashpage *page;
    int page_fd;
    uint32_t n_messages;
};

/* harness_cpu.c, harness_cuda.c: the engine, its slots as many as a CPU engine's of such a pool. */
struct engine *harness_engine(uint64_t pool_bytes, unsigned n_threads);

void harness_start(struct harness *h, uint64_t pool_bytes, unsigned n_threads);
void harness_stop(struct harness *h); /* end of file, and everything is given back */

/* Criterion compares texts as char pointers. */
#define text(s) ((char *)(s))

#define JOB_MAX 8

struct test_job {
    struct job_request request;
    struct request_arg args[JOB_MAX];
    struct request_output outputs[JOB_MAX];
    int fds[FRAME_MAX_FDS]; /* copies are sent */
    unsigned n_fds;
    uint64_t id;
    uint32_t user;
    bool in_place;    /* an output lies on an argument */
    bool needs_carry; /* carry_bytes of the pool (0: CARRY_BYTES) at carry_offset */
    uint64_t carry_offset, carry_bytes;
    /* Of a device's own memory, with needs_carry; 0: as many as a job may have. */
    uint64_t device_carry_offset, device_carry_bytes;
};

#define CARRY_BYTES (256u * 1024u)

void job_init(struct test_job *j, uint64_t id);
/* Arguments: a dense C-ordered array of `shape`, then its location. Both return the array, so that
 * a test can change it. */
struct array *job_arg(struct test_job *j, const char *name, enum dtype dtype, int ndim,
                      const int64_t *shape);
struct array *job_output(struct test_job *j, const char *expr, const char *name);
struct array *job_output_to(struct test_job *j, const char *expr, const char *name,
                            enum dtype dtype, int ndim, const int64_t *shape);
void job_scalar(struct test_job *j, const char *name, double value);
void at_inline(struct array *array, const void *bytes, size_t n_bytes);
void at_region(struct array *array, uint64_t id, uint64_t offset_bytes);
void at_file(struct test_job *j, struct array *array, int fd, uint64_t offset_bytes);

/* What came back: of a job, a region or a stats request. */
struct outcome {
    uint32_t id;
    int status; /* 0 or a gad_status */
    struct gad_error error;
    struct frame frame;
    struct message message;
};

uint32_t harness_send(struct harness *h, struct test_job *j);
/* The next response; notifications before it are counted in *ret_n_progress (may be NULL). */
void harness_receive(struct harness *h, struct outcome *ret, unsigned *ret_n_progress);
void harness_run(struct harness *h, struct test_job *j, struct outcome *ret);
void outcome_free(struct outcome *o);
/* An inline output's bytes. */
const void *outcome_data(const struct outcome *o, unsigned output, size_t *ret_n_bytes);
uint64_t outcome_u64(const struct outcome *o, const char *key);

int harness_attach(struct harness *h, uint64_t id, int fd, uint64_t size_bytes, bool is_writable);
void harness_detach(struct harness *h, uint64_t id);
void harness_cancel(struct harness *h, uint64_t job);
uint64_t harness_stat(struct harness *h, const char *key);

/* A memfd of n_bytes with `seals`, its memory allocated and zero. */
int make_memfd(size_t n_bytes, int seals);
/* A temporary file on the disk (not tmpfs) with these bytes; already unlinked. */
int make_file(const void *bytes, size_t n_bytes);
