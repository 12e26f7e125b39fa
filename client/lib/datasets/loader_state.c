/* Where a loader is, as text.
 *
 *     {"dataset":"<32 hexadecimal digits>","files":"<16 for each part>",
 *      "rows":"<8 for each part>","shuffle":"exact","drop_last":false,"batch_size":256,"seed":7,
 *      "epoch":3,"position":12800}
 *
 * The position counts rows of all ranks together, so that any number of ranks goes on there. What
 * is read is compared with what this loader would write: it is not trusted.
 *
 * Of the files of each part there are two sums, of their names and of their sizes and times. Where
 * the names are the same the rest has to be. Files of other names are another copy of the data, in
 * whatever format, where a few rows have the same sum (row_samples.c; zero: it is not known). Of
 * more than N_SUMS parts some have a sum in common.
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

#define N_SUMS      8u
#define SUM_DIGITS  8 /* of either */
#define FILES_BYTES (N_SUMS * 2 * SUM_DIGITS + 1)
#define ROWS_BYTES  (N_SUMS * SUM_DIGITS + 1)

/* Part i is in sum i % N_SUMS. Returns how many there are. */
static unsigned sums_text(const struct gad_dataset *dataset, char ret_text[FILES_BYTES])
{
    struct file_sums sums[N_SUMS] = {0};
    unsigned n = dataset->n_parts < N_SUMS ? dataset->n_parts : N_SUMS;
    for (unsigned i = 0; i < dataset->n_parts; i++)
        file_sums_add(&sums[i % N_SUMS], &dataset->parts[i].sums);
    for (unsigned i = 0; i < n; i++)
        snprintf(ret_text + i * 2 * SUM_DIGITS, 2 * SUM_DIGITS + 1, "%08" PRIx32 "%08" PRIx32,
                 (uint32_t)sums[i].names, (uint32_t)sums[i].contents);
    return n;
}

/* Likewise of rows. Parts with a sum in common have none where one of them has none. */
static unsigned rows_text(struct gad_dataset *dataset, char ret_text[ROWS_BYTES])
{
    unsigned n = dataset->n_parts < N_SUMS ? dataset->n_parts : N_SUMS;
    dataset_sample(dataset);
    for (unsigned i = 0; i < n; i++) {
        uint32_t sum = dataset->parts[i].rows_sum;
        for (unsigned j = i + N_SUMS; j < dataset->n_parts && sum != DATASET_NO_SUM; j += N_SUMS) {
            uint32_t next = dataset->parts[j].rows_sum;
            sum = next == DATASET_NO_SUM ? next : sum * 31 + next;
        }
        snprintf(ret_text + i * SUM_DIGITS, SUM_DIGITS + 1, "%08" PRIx32, sum);
    }
    return n;
}

enum gad_status gad_loader_state(struct gad_loader *loader, char *ret_state,
                                 struct gad_error *error)
{
    char dataset[33], files[FILES_BYTES], rows[ROWS_BYTES];
    if (!loader || !ret_state)
        return error_set(error, GAD_BAD_ARGUMENT, loader ? "ret_state" : "loader", "is NULL");
    fingerprint_text(loader, dataset);
    sums_text(loader->dataset, files);
    rows_text(loader->dataset, rows);
    pthread_mutex_lock(&loader->lock);
    uint64_t position =
        min_u64(loader->next * (uint64_t)loader->batch_size, (uint64_t)loader->n_rows);
    memset(ret_state, 0, GAD_STATE_BYTES);
    snprintf(ret_state, GAD_STATE_BYTES,
             "{\"dataset\":\"%s\",\"files\":\"%s\",\"rows\":\"%s\",\"shuffle\":\"%s\","
             "\"drop_last\":%s,\"batch_size\":%" PRId64 ",\"seed\":%" PRIu64 ",\"epoch\":%" PRIu64
             ",\"position\":%" PRIu64 "}",
             dataset, files, rows, shuffle_names[loader->shuffle],
             loader->drop_last ? "true" : "false", loader->batch_size, loader->seed, loader->epoch,
             position);
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

static int check_files(const struct gad_loader *loader, json_object *state, struct gad_error *error)
{
    const struct gad_dataset *dataset = loader->dataset;
    char files[FILES_BYTES];
    const char *found = value_of(state, "files");
    unsigned n = sums_text(dataset, files);
    for (unsigned i = 0; i < n && strlen(found) == strlen(files); i++) {
        const char *was = found + i * 2 * SUM_DIGITS, *now = files + i * 2 * SUM_DIGITS;
        const struct dataset_part *part = &dataset->parts[i];
        if (strncmp(was, now, SUM_DIGITS) != 0 || strncmp(was, now, (size_t)2 * SUM_DIGITS) == 0)
            continue;
        error_set(error, GAD_DATASET_CHANGED, part->name,
                  "%.200s was written to since the state was taken",
                  part->file.path ? part->file.path : part->name);
        error_expected(error, "files of the same sizes and times");
        error_found(error, "others of the same names");
        return GAD_DATASET_CHANGED;
    }
    return 0;
}

/* Other data in files of the same layout, elsewhere or in none. */
static int check_rows(const struct gad_loader *loader, json_object *state, struct gad_error *error)
{
    static const char none[] = "00000000";
    const struct gad_dataset *dataset = loader->dataset;
    char rows[ROWS_BYTES];
    const char *found = value_of(state, "rows");
    unsigned n = rows_text(loader->dataset, rows);
    for (unsigned i = 0; i < n && strlen(found) == strlen(rows); i++) {
        const char *was = found + i * SUM_DIGITS, *now = rows + i * SUM_DIGITS;
        if (strncmp(was, now, SUM_DIGITS) == 0 || strncmp(was, none, SUM_DIGITS) == 0 ||
            strncmp(now, none, SUM_DIGITS) == 0)
            continue;
        int64_t first[DATASET_SAMPLES] = {0};
        dataset_sampled_rows(dataset->n_rows, first);
        error_set(error, GAD_BAD_ARGUMENT, "state",
                  "the state is of other data: its '%s' has other rows, row %" PRId64
                  " or others of a few that were compared",
                  dataset->parts[i].name, first[0]);
        error_expected(error, "rows with the sum %.8s", now);
        error_found(error, "rows with the sum %.8s", was);
        return GAD_BAD_ARGUMENT;
    }
    return 0;
}

static int load(struct gad_loader *loader, json_object *state, struct gad_error *error)
{
    char dataset[33], size[32];
    uint64_t seed, epoch, position, batch_size = (uint64_t)loader->batch_size;
    fingerprint_text(loader, dataset);
    snprintf(size, sizeof(size), "%" PRId64, loader->batch_size);
    int r = check_files(loader, state, error); /* first: a file may have another shape now */
    if (r == 0)
        r = check_value(state, "dataset", dataset, error);
    if (r == GAD_BAD_ARGUMENT && error)
        snprintf(error->message, sizeof(error->message),
                 "the state is of another dataset: names, dtypes or shapes of parts differ");
    if (r == 0)
        r = check_rows(loader, state, error);
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
