/* Requests in flight: from a response's id to whoever waits for it.
 *
 * A call leaves the table before its function runs, so the function may send requests, fail the
 * others or find the connection lost. Ids count up and wrap; one that is still in use after 2^32
 * others is passed over.
 *
 * Called by client.c.
 */
#include "client/lib/connection/calls.h"
#include "proto/util.h"
#include "proto/wire/map.h"

struct reply *reply_free(struct reply *reply)
{
    if (!reply)
        return NULL;
    message_deinit(&reply->message);
    free(reply->body);
    free(reply);
    return NULL;
}

void call_ignore(void *userdata, int status, struct reply *reply_take,
                 const struct gad_error *error)
{
    (void)userdata;
    (void)status;
    (void)error;
    reply_free(reply_take);
}

static struct call **find(struct calls *calls, uint32_t id)
{
    struct call **link = &calls->buckets[id % CALLS_N_BUCKETS];
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

int calls_add(struct calls *calls, call_func *func, void *userdata, uint32_t *ret_id)
{
    struct call *call = malloc(sizeof(*call));
    if (!call)
        return -ENOMEM;
    struct call **end;
    do
        end = find(calls, ++calls->last_id);
    while (*end);
    *call = (struct call){.id = calls->last_id, .func = func, .userdata = userdata};
    *end = call;
    *ret_id = call->id;
    return 0;
}

void calls_hand_over(struct calls *calls, uint32_t id, call_func *func, void *userdata)
{
    struct call *call = *find(calls, id);
    if (!call)
        return;
    call->func = func;
    call->userdata = userdata;
}

static struct call *take(struct calls *calls, uint32_t id)
{
    struct call **link = find(calls, id);
    struct call *call = *link;
    if (call)
        *link = call->next;
    return call;
}

void calls_drop(struct calls *calls, uint32_t id)
{
    free(take(calls, id));
}

static void answer(const struct call *call, const struct message *message_take, char *body_take)
{
    struct reply *reply = malloc(sizeof(*reply));
    struct reply on_stack = {.body = body_take, .message = *message_take};
    struct gad_error error;
    if (message_take->error.type != MSGPACK_OBJECT_NIL) {
        map_error(&message_take->error, &error);
        if (error.status == GAD_OK)
            error_set(&error, GAD_PROTOCOL, NULL,
                      "the daemon answered with an error without a code");
    } else if (!reply) {
        error_set(&error, GAD_NO_MEMORY, NULL, "no memory for an answer");
    } else {
        *reply = on_stack;
        call->func(call->userdata, 0, reply, NULL);
        return;
    }
    free(reply);
    message_deinit(&on_stack.message);
    free(on_stack.body);
    call->func(call->userdata, (int)error.status, NULL, &error);
}

void calls_answer(struct calls *calls, const struct message *message_take, char *body_take)
{
    struct call *call = take(calls, message_take->id);
    if (call) {
        answer(call, message_take, body_take);
        free(call);
        return;
    }
    struct message unwanted = *message_take;
    message_deinit(&unwanted);
    free(body_take);
}

void calls_fail_all(struct calls *calls, const struct gad_error *error)
{
    struct call *all = NULL;
    for (unsigned i = 0; i < CALLS_N_BUCKETS; i++)
        while (calls->buckets[i]) {
            struct call *call = calls->buckets[i];
            calls->buckets[i] = call->next;
            call->next = all;
            all = call;
        }
    while (all) {
        struct call *call = all;
        all = call->next;
        call->func(call->userdata, (int)error->status, NULL, error);
        free(call);
    }
}
