/* Where a loader is, as text.
 *
 *     {"dataset":"<32 hexadecimal digits>","shuffle":"exact","drop_last":false,"batch_size":256,
 *      "seed":7,"epoch":3,"position":12800}
 *
 * The position counts rows of all ranks together, so that any number of ranks goes on there. What
 * is read is compared with what this loader would write: it is not trusted.
 */
#include "client/lib/connection/client.h"
#include "client/lib/datasets/loader.h"
#include "proto/util.h"

#include <inttypes.h>
#include <json.h>
#include <stdio.h>
#include <string.h>

static const char *const shuffle_names[] = {
    [ROW_SHUFFLE_NONE] = "none", [ROW_SHUFFLE_EXACT] = "exact", [ROW_SHUFFLE_BLOCKS] = "blocks"};

static void fingerprint_text(const struct gad_loader *loader, char ret_text[33])
{
    for (unsigned i = 0; i < 16; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", loader->dataset->fingerprint[i]);
}

enum gad_status gad_loader_state(struct gad_loader *loader, char *ret_state,
                                 struct gad_error *error)
{
    char dataset[33];
    if (!loader || !ret_state)
        return error_set(error, GAD_BAD_ARGUMENT, loader ? "ret_state" : "loader", "is NULL");
    fingerprint_text(loader, dataset);
    pthread_mutex_lock(&loader->lock);
    uint64_t position =
        min_u64(loader->next * (uint64_t)loader->batch_size, (uint64_t)loader->n_rows);
    snprintf(ret_state, GAD_STATE_BYTES,
             "{\"dataset\":\"%s\",\"shuffle\":\"%s\",\"drop_last\":%s,\"batch_size\":%" PRId64
             ",\"seed\":%" PRIu64 ",\"epoch\":%" PRIu64 ",\"position\":%" PRIu64 "}",
             dataset, shuffle_names[loader->shuffle], loader->drop_last ? "true" : "false",
             loader->batch_size, loader->seed, loader->epoch, position);
    pthread_mutex_unlock(&loader->lock);
    return GAD_OK;
}

static int bad_state(struct gad_error *error, const char *key, const char *expected,
                     const char *found)
{
    error_set(error, GAD_BAD_ARGUMENT, "state", "the state is of another loader: its %s differs",
              key);
    error_expected(error, "%.100s", expected);
    error_found(error, "%.100s", found);
    return GAD_BAD_ARGUMENT;
}

/* The text of a value; "nothing" where there is none. */
static const char *value_of(json_object *state, const char *key)
{
    json_object *value;
    if (!json_object_object_get_ex(state, key, &value) || !value)
        return "nothing";
    return json_object_get_string(value);
}

static int check_value(json_object *state, const char *key, const char *expected,
                       struct gad_error *error)
{
    const char *found = value_of(state, key);
    return strcmp(found, expected) == 0 ? 0 : bad_state(error, key, expected, found);
}

static int read_number(json_object *state, const char *key, uint64_t *ret, struct gad_error *error)
{
    const char *found = value_of(state, key);
    char again[32], *end;
    errno = 0;
    *ret = strtoull(found, &end, 10);
    snprintf(again, sizeof(again), "%" PRIu64, *ret);
    return errno == 0 && strcmp(again, found) == 0 ? 0 : bad_state(error, key, "a number", found);
}

static int load(struct gad_loader *loader, json_object *state, struct gad_error *error)
{
    char dataset[33], size[32];
    uint64_t seed, epoch, position, batch_size = (uint64_t)loader->batch_size;
    fingerprint_text(loader, dataset);
    snprintf(size, sizeof(size), "%" PRId64, loader->batch_size);
    int r = check_value(state, "dataset", dataset, error);
    if (r == 0)
        r = check_value(state, "shuffle", shuffle_names[loader->shuffle], error);
    if (r == 0)
        r = check_value(state, "drop_last", loader->drop_last ? "true" : "false", error);
    if (r == 0)
        r = check_value(state, "batch_size", size, error);
    if (r == 0)
        r = read_number(state, "seed", &seed, error);
    if (r == 0)
        r = read_number(state, "epoch", &epoch, error);
    if (r == 0)
        r = read_number(state, "position", &position, error);
    if (r)
        return r;
    if (position > (uint64_t)loader->n_rows ||
        (position % batch_size && position != (uint64_t)loader->n_rows))
        return bad_state(error, "position", "the first row of a batch",
                         value_of(state, "position"));
    uint64_t next = (position + batch_size - 1) / batch_size;
    return loader_jump(loader, &seed, epoch, min_u64(next, loader_n_batches(loader)), error);
}

enum gad_status gad_loader_load_state(struct gad_loader *loader, const char *state,
                                      struct gad_error *error)
{
    if (!loader || !state)
        return error_set(error, GAD_BAD_ARGUMENT, loader ? "state" : "loader", "is NULL");
    json_object *parsed =
        strnlen(state, GAD_STATE_BYTES) < GAD_STATE_BYTES ? json_tokener_parse(state) : NULL;
    if (!json_object_is_type(parsed, json_type_object)) {
        json_object_put(parsed);
        return error_set(error, GAD_BAD_ARGUMENT, "state", "it is no state of a loader");
    }
    int r = load(loader, parsed, error);
    json_object_put(parsed);
    return client_status(r, error);
}
