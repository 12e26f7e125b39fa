/* Calls of the library that are loops of many jobs: decompositions. With the GIL. */
#pragma once

#include "core/session.h"

/* Between jobs and some times a second others get the session, signals are looked at, and the
 * caller's function is called. */
struct loop {
    struct session *session;
    struct section section;
    PyObject *callback; /* borrowed; NULL: none */
    bool has_failed;    /* with an exception, which ends the loop */
};

/* Enters; the session is not to be closed by others, and is not. Returns false with an exception.
 * callback: None or what is called with (iteration, n_iterations, fit, change, reads, read_bytes,
 * seconds, seconds_left); what it returns, if true, ends the loop. */
bool loop_begin(struct loop *loop, struct session *session, PyObject *callback,
                struct gad_linalg_run *run);
/* Leaves. status: of the call. Returns false with an exception: the call's, or the callback's. */
bool loop_end(struct loop *loop, enum gad_status status, const struct gad_error *error);

/* (shape, bytearray) of a small array. NULL with an exception. */
PyObject *loop_dense(const struct gad_dense *dense);
/* A dict of n_jobs, n_reads, read_bytes, write_bytes. */
PyObject *loop_reads(const struct gad_reads *reads);
/* Of gad_..._explain(). */
PyObject *loop_plan(const struct gad_linalg_plan *plan);
