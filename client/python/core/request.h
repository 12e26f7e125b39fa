/* A job's description, from Python's objects to the library's options. With the GIL. */
#pragma once

#include "core/array.h"

#define REQUEST_MAX_ARGS    64
#define REQUEST_MAX_OUTPUTS 16

struct storage {
    struct gad_storage asked; /* points into the rest, and to the object's texts */
    int64_t chunks[GAD_MAX_NDIM], shards[GAD_MAX_SHARD_LEVELS * GAD_MAX_NDIM];
};
/* (chunks, shards of each level, compress, shuffle, fletcher32, sync); the first three may be None.
 * Returns false with an exception. */
bool request_read_storage(PyObject *tuple, struct storage *ret_storage);

struct request {
    struct gad_job_options options; /* points into the rest and into the objects */
    struct gad_argument args[REQUEST_MAX_ARGS];
    struct gad_output outputs[REQUEST_MAX_OUTPUTS];
    struct gad_beyond beyond;
    PyObject *paths[REQUEST_MAX_OUTPUTS + 1]; /* of to_path and of the journal, as bytes */
    unsigned n_paths;
    struct storage storages[REQUEST_MAX_OUTPUTS];
    PyObject *output_tuple, *arg_tuple; /* references; they hold arrays and texts */
};

/* Fills in what the lists say; engine, priority and label may be None or NULL. Returns false with
 * an exception; request_deinit() either way. The texts of engine and label must be held by the
 * caller. */
bool request_init(struct request *request, struct session *session, PyObject *outputs,
                  PyObject *args, PyObject *engine, PyObject *priority, PyObject *label);
/* set_times(): of all requests that this thread makes from now on. */
PyObject *request_set_times(PyObject *module, PyObject *args);
void request_get_times(uint32_t *ret_queue_timeout_ms, uint32_t *ret_deadline_ms);
/* None and False: no journal; True: where the library puts it; a path. Returns false with an
 * exception. */
bool request_add_journal(struct request *request, PyObject *journal);
/* Whether it may be multiplied with TF32. Returns false with an exception. */
bool request_add_tf32(struct request *request, PyObject *tf32);
/* None, or an enum gad_pad_mode and what lies beyond the ends with GAD_PAD_CONSTANT. Returns false
 * with an exception. */
bool request_add_beyond(struct request *request, PyObject *beyond);
void request_deinit(struct request *request);
/* Hands the references of the tuples over. */
void request_move_tuples(struct request *request, void *ret_keeps[2]);
