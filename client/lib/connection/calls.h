/* Requests that were sent and are not answered yet. */
#pragma once

#include "proto/wire/message.h"

/* A response's body with its message, which points into it. */
struct reply {
    char *body;
    struct message message;
};
struct reply *reply_free(struct reply *reply); /* NULL */

/* status 0: reply_take is the callee's. Positive: *error, reply_take NULL; GAD_DISCONNECTED when
 * the connection went first. Called exactly once for every call. */
typedef void call_func(void *userdata, int status, struct reply *reply_take,
                       const struct gad_error *error);

/* For requests whose answer nobody waits for. */
call_func call_ignore;

#define CALLS_N_BUCKETS 64u

struct call {
    struct call *next;
    uint32_t id;
    call_func *func;
    void *userdata;
};

struct calls { /* zeroed: none */
    struct call *buckets[CALLS_N_BUCKETS];
    uint32_t last_id;
};

/* -ENOMEM. */
int calls_add(struct calls *calls, call_func *func, void *userdata,
              uint32_t *ret_id) GAD_MUST_CHECK;
/* Another function is called when its answer comes, or none will. */
void calls_hand_over(struct calls *calls, uint32_t id, call_func *func, void *userdata);
/* Forgets one whose request was not sent: its function is not called. */
void calls_drop(struct calls *calls, uint32_t id);

/* A response: calls the function that waits for it; takes the body. An answer that nobody waits for
 * is dropped. */
void calls_answer(struct calls *calls, const struct message *message_take, char *body_take);
/* No answer will come any more. New calls made meanwhile are not touched. */
void calls_fail_all(struct calls *calls, const struct gad_error *error);
