/* The daemon's numbers, one request.
 *
 * Whoever watches a daemon asks again and again and must not stand still with it, so the answer is
 * waited for no longer than for a connection. A late one is dropped.
 */
#include "client/lib/client.h"
#include "client/lib/json.h"
#include "proto/util.h"

static int ask(struct gad_client *client, struct reply **ret_reply, struct gad_error *error)
{
    struct client_call call;
    uint32_t id;
    int64_t deadline = deadline_after_ms(client->timeout_ms);
    int r = client_ensure(client, deadline, 0, error);
    if (r == 0)
        r = client_begin_call(client, "server.stats", &call, &id, error);
    if (r)
        return r;
    msgpack_pack_map(&client->writer.packer, 0);
    return client_finish_call(client, &call, id, NULL, 0, deadline, ret_reply, error);
}

enum gad_status gad_stats_json(struct gad_client *client, char **ret_json, struct gad_error *error)
{
    struct reply *reply;
    if (!client || !ret_json)
        return error_set(error, GAD_BAD_ARGUMENT, client ? "ret_json" : "client", "%s is NULL",
                         client ? "ret_json" : "client");
    int r = ask(client, &reply, error);
    if (r)
        return client_status(r, error);
    r = json_from_msgpack(&reply->message.result, ret_json);
    reply_free(reply);
    if (r == -EPROTO)
        r = error_set(error, GAD_PROTOCOL, NULL, "the daemon's map has a key that is no text");
    return client_status(r, error);
}
