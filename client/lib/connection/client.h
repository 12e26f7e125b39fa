/* The connection to the daemon, as the rest of the library sees it. */
#pragma once

#include "client/lib/memory/arena.h"
#include "client/lib/connection/calls.h"
#include "client/lib/memory/rings.h"
#include "client/clock.h"
#include "client/gpuarrayd.h"
#include "proto/wire/conn.h"

struct pump;

struct gad_client {
    char *socket, *daemon_path, *name; /* as given; NULL: not */
    bool no_private_daemon;
    int timeout_ms, restart_ms; /* the latter 0: a daemon that restarts is not waited for */
    int answer_ms;              /* for plans and regions, which no other job holds up */

    struct conn *conn;    /* NULL: lost */
    bool had_service;     /* the last connection was not to a private daemon */
    int64_t missed_since; /* by the first call that did not find it; 0: none is missed */
    uint64_t session;     /* number of the connection, from 1 */
    uint64_t refusing;    /* the one in which the daemon said that it leaves; 0: none did */
    struct calls calls;
    struct message_writer writer; /* of the request that is being made */

    struct arena arena;
    struct rings rings;   /* for jobs to come */
    struct pump *pump;    /* NULL: no job has needed it */
    struct gad_job *jobs; /* those that have not ended, for progress */
};

/* Connects where the connection was lost, within the client's own time-out and the deadline. A
 * daemon that is not there and may be restarting (the last connection was to it, or its socket
 * refuses) is waited for until `patience`, and for restart_ms after it was first missed. */
int client_ensure(struct gad_client *client, int64_t deadline, int64_t patience,
                  struct gad_error *error) GAD_MUST_CHECK;

/* A request: begin, pack one map with client->writer.packer, send. After client_send() returned 0
 * func is called exactly once, maybe before it returns; else not at all. The descriptors are taken
 * in any case. */
int client_begin(struct gad_client *client, const char *method, call_func *func, void *userdata,
                 uint32_t *ret_id, struct gad_error *error) GAD_MUST_CHECK;
int client_send(struct gad_client *client, uint32_t id, const int *fds_take, unsigned n_fds,
                struct gad_error *error) GAD_MUST_CHECK;

/* Handles what has come, waiting for it until the deadline. 0: something was handled; GAD_TIMEOUT,
 * GAD_DISCONNECTED; -EINTR: a signal. */
int client_wait(struct gad_client *client, int64_t deadline,
                struct gad_error *error) GAD_MUST_CHECK;

/* client_begin() for a request that is then waited for. */
struct client_call {
    const char *method;
    call_func *late; /* gets the client, and what comes after the deadline; NULL: that is dropped */
    bool is_done;
    int status;
    struct reply *reply;
    struct gad_error error;
};
int client_begin_call(struct gad_client *client, const char *method, struct client_call *call,
                      uint32_t *ret_id, struct gad_error *error) GAD_MUST_CHECK;
/* Sends it and waits; *ret_reply (may be NULL) is the caller's. GAD_TIMEOUT: the daemon is there
 * and does not answer. */
int client_finish_call(struct gad_client *client, struct client_call *call, uint32_t id,
                       const int *fds_take, unsigned n_fds, int64_t deadline,
                       struct reply **ret_reply, struct gad_error *error) GAD_MUST_CHECK;

/* A negative errno of an internal function as a status of the public interface. */
enum gad_status client_status(int r, struct gad_error *error);
