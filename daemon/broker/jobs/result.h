/* A job's result: the worker's message, kept by the job and sent from where it is to everybody who
 * waits for it. */
#pragma once

#include "daemon/broker/sessions/account.h"
#include "proto/wire/shared.h"

struct result {
    struct shared shared; /* a reference for each connection that has still to send it */
    char *body;
    size_t n_body_bytes;
    const char *map; /* in it */
    size_t n_map_bytes;
    bool is_kept;         /* its job has it */
    struct charge charge; /* while connections have to send it */
};

/* Empty, made before the job begins, so that it is there at its end; NULL: without memory. */
struct result *result_new(void);
/* The job's from now on. */
void result_fill(struct result *result, char *body_take, size_t n_body_bytes, const char *map,
                 size_t n_map_bytes);
/* The job gives it up; who has still to send it goes on with it. NULL; takes NULL. */
struct result *result_drop(struct result *result);
