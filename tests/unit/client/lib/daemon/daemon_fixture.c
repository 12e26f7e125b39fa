/* A daemon of the test's own, a scratch directory, and short words for what tests do all the time.
 */
#include "tests/unit/client/lib/daemon/daemon_fixture.h"

#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dirent.h>
#include <ftw.h>
#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

char scratch[64];
struct gad_client *client;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static struct json_object *info(void)
{
    char *text;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_info_json(client, &text, &error)), "%s", error.message);
    struct json_object *object = json_tokener_parse(text);
    free(text);
    return object;
}

pid_t daemon_pid(void)
{
    struct json_object *object = info();
    pid_t pid = (pid_t)json_object_get_int(json_object_object_get(object, "pid"));
    json_object_put(object);
    return pid;
}

pid_t worker_pid(void)
{
    struct json_object *object = info();
    struct json_object *engines = json_object_object_get(object, "engines");
    struct json_object *cpu = json_object_array_get_idx(engines, 0);
    pid_t pid = (pid_t)json_object_get_int(json_object_object_get(cpu, "pid"));
    json_object_put(object);
    return pid;
}

int count(const char *name)
{
    struct json_object *object = info();
    struct json_object *counts = json_object_object_get(object, "counts");
    int value = json_object_get_int(json_object_object_get(counts, name));
    json_object_put(object);
    return value;
}

void set_up(void)
{
    struct gad_error error = {0};
    snprintf(scratch, sizeof(scratch), "/tmp/gad-client.XXXXXX");
    cr_assert(ne(ptr, mkdtemp(scratch), NULL));
    setenv("XDG_RUNTIME_DIR", scratch, 1);
    unsetenv("GPUARRAYD_SOCKET");
    cr_assert(zero(int, (int)gad_connect(NULL, &client, &error)), "%s", error.message);
}

void tear_down(void)
{
    pid_t pid = daemon_pid();
    gad_close(client);
    kill(pid, SIGKILL);
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *path_in(const char *name)
{
    static char paths[4][128];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", scratch, name);
    return path;
}

struct gad_array *wrap(void *data, int ndim, const int64_t *shape, const int64_t *strides)
{
    struct gad_array *array;
    struct gad_error error = {0};
    struct gad_layout layout = {
        .dtype = GAD_FLOAT64, .ndim = ndim, .shape = shape, .strides = strides};
    cr_assert(zero(int, (int)gad_array_from_memory(client, &layout, data, true, &array, &error)),
              "%s", error.message);
    return array;
}

struct gad_array *open_npy(const char *path)
{
    struct gad_array *array;
    struct gad_error error = {0};
    cr_assert(zero(int, (int)gad_array_open(client, path, &array, &error)), "%s", error.message);
    return array;
}

/* One expression over one array. */
enum gad_status run(const char *expr, struct gad_array *a, struct gad_array *to,
                    const char *to_path, struct gad_error *error)
{
    struct gad_argument args[] = {{.name = "a", .array = a}};
    struct gad_output outputs[] = {{.expr = expr, .to = to, .to_path = to_path}};
    struct gad_job_options options = {
        .n_args = 1, .args = args, .n_outputs = 1, .outputs = outputs};
    return gad_run(client, &options, NULL, error);
}

void run_well(const char *expr, struct gad_array *a, struct gad_array *to, const char *to_path)
{
    struct gad_error error = {0};
    cr_assert(zero(int, (int)run(expr, a, to, to_path, &error)), "%s: %s", expr, error.message);
}

/* A scalar result of one array. */
double ask(const char *expr, struct gad_array *a)
{
    double result = NAN;
    struct gad_array *to = wrap(&result, 0, NULL, NULL);
    run_well(expr, a, to, NULL);
    gad_array_release(to);
    return result;
}

/* A file of n float64: 0, 1, 2, ... */
void make_npy(const char *path, int64_t n)
{
    int64_t shape[] = {n};
    struct gad_array *array;
    cr_assert(zero(int, (int)gad_array_new(client, GAD_FLOAT64, 1, shape, &array, NULL)));
    double *data = gad_array_data(array);
    for (int64_t i = 0; i < n; i++)
        data[i] = (double)i;
    run_well("a", array, NULL, path);
    gad_array_release(array);
}

int n_files(void)
{
    int n = 0;
    DIR *directory = opendir(scratch);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n - 3; /* . .. and the daemon's directory */
}
