/* The daemon's ring of samples: server.samples, asked again and again until there are no more.
 *
 * Each question goes on behind the last sample of the answer before. What the daemon takes
 * meanwhile is read too, so the list is of the moment of the last answer, and so is its uptime. A
 * daemon that was replaced between two answers has other times: its samples are then all later or
 * none come, and the list ends there.
 */
#include "client/lib/asking/ask.h"
#include "client/lib/asking/json.h"
#include "proto/util.h"

#include <json-c/json.h>
#include <string.h>

#define MOST_PAGES 64u /* far more than a daemon keeps */

static struct json_object *list_in(struct json_object *page)
{
    struct json_object *list = NULL;
    bool is_there = json_object_object_get_ex(page, "samples", &list);
    return is_there && json_object_is_type(list, json_type_array) ? list : NULL;
}

static int no_samples(struct gad_error *error)
{
    return error_set(error, GAD_PROTOCOL, NULL, "the daemon's answer is no list of samples");
}

static int ask_page(struct gad_client *client, uint64_t last_ms, uint64_t after_ms,
                    struct json_object **ret_page, struct gad_error *error)
{
    const struct question question = {.method = "server.samples",
                                      .n_numbers = 2,
                                      .numbers = {{"last_ms", last_ms}, {"after_ms", after_ms}}};
    struct reply *reply;
    int r = client_ask(client, &question, &reply, error);
    if (r)
        return r;
    struct json_object *page;
    r = json_object_from_msgpack(&reply->message.result, &page);
    reply_free(reply);
    if (r == -EPROTO || (r == 0 && !list_in(page)))
        r = no_samples(error);
    if (r) {
        json_object_put(page);
        return r;
    }
    *ret_page = page;
    return 0;
}

/* Of the last sample; 0 where there is none. */
static uint64_t end_of(struct json_object *page)
{
    struct json_object *list = list_in(page);
    size_t n = json_object_array_length(list);
    struct json_object *last = n > 0 ? json_object_array_get_idx(list, n - 1) : NULL;
    if (!json_object_is_type(last, json_type_array) || json_object_array_length(last) == 0)
        return 0;
    return json_object_get_uint64(json_object_array_get_idx(last, 0));
}

static bool has_more(struct json_object *page)
{
    struct json_object *more = NULL;
    return json_object_object_get_ex(page, "more", &more) && json_object_get_boolean(more);
}

/* The samples of `page` behind those of `all`, whose other numbers become those of `page`. */
static int append(struct json_object *all, struct json_object *page)
{
    struct json_object *to = list_in(all), *from = list_in(page);
    int r = 0;
    for (size_t i = 0; i < json_object_array_length(from) && r == 0; i++)
        if (json_object_array_add(to, json_object_get(json_object_array_get_idx(from, i))))
            r = -ENOMEM;
    json_object_object_foreach(page, key, value)
    {
        bool is_kept = strcmp(key, "samples") == 0;
        if (!is_kept && r == 0 && json_object_object_add(all, key, json_object_get(value)))
            r = -ENOMEM;
    }
    return r;
}

static int ask_all(struct gad_client *client, uint64_t last_ms, struct json_object **ret_all,
                   struct gad_error *error)
{
    struct json_object *all;
    int r = ask_page(client, last_ms, 0, &all, error);
    if (r)
        return r;
    for (unsigned i = 1; i < MOST_PAGES && r == 0 && has_more(all); i++) {
        struct json_object *page;
        r = ask_page(client, 0, end_of(all), &page, error);
        if (r)
            break;
        r = append(all, page);
        json_object_put(page);
    }
    json_object_object_del(all, "more");
    if (r) {
        json_object_put(all);
        return r;
    }
    *ret_all = all;
    return 0;
}

enum gad_status gad_samples_json(struct gad_client *client, uint64_t last_ms, char **ret_json,
                                 struct gad_error *error)
{
    struct json_object *all;
    if (!ret_json)
        return error_set(error, GAD_BAD_ARGUMENT, "ret_json", "ret_json is NULL");
    int r = ask_all(client, last_ms, &all, error);
    if (r)
        return client_status(r, error);
    r = json_text(all, ret_json);
    json_object_put(all);
    return client_status(r, error);
}
