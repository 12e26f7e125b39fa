/* The small job of the benchmarks: sqrt(a) of 1,000 float64, inline both ways, as a ready body. */
#pragma once

#include "proto/wire/conn.h"
#include "proto/wire/message.h"
#include "proto/request.h"

#include <stdint.h>

#define SMALL_ELEMENTS 1000

struct small_job {
    double elements[SMALL_ELEMENTS];
    struct message_writer body; /* a job.run request; made by small_job_encode() */
};

void small_job_init(struct small_job *job);
void small_job_deinit(struct small_job *job);
/* The body again with another id. */
void small_job_encode(struct small_job *job, uint32_t id);
/* Connects to a daemon and says hello; exits with a message when that fails. */
struct conn *small_connect(const char *path);
/* The next frame, waiting for it. Exits when the connection is lost. */
void small_receive(struct conn *conn, struct frame *ret_frame);
/* Whether the response carries the right result; ret_id is the job's. */
int small_check(const struct small_job *job, const struct frame *frame, uint32_t *ret_id);
double now_us(void);
int compare_doubles(const void *a, const void *b);
