/* doctor: the daemon itself: whether it answers, and with what behind it.
 *
 * Asked once, by doctor.c, with server.info; here its answer is read. Without a daemon the question
 * is whether one could be started. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"
#include "proto/system/beside.h"

#include <string.h>

static uint64_t number(struct json_object *map, const char *key)
{
    return json_object_get_uint64(json_object_object_get(map, key));
}

static void check_version(struct doctor *d)
{
    const char *version = facts_text(&d->facts, "version");
    if (strcmp(version, gad_version()) == 0)
        return;
    doctor_say(d, FINDING_WARNING,
               "restart the daemon after an upgrade; a service: sudo systemctl restart gpuarrayd",
               "the daemon is version %s, this command %s", version, gad_version());
}

/* Of a device that is not there, or sleeps until it is needed, doctor_gpu() speaks. */
static bool is_device_away(const char *name, const char *state)
{
    return name && state && strncmp(name, "cuda", 4) == 0 &&
           (strcmp(state, "absent") == 0 || strcmp(state, "asleep") == 0 ||
            strcmp(state, "waiting-for-device-memory") == 0);
}

static void check_engine(struct doctor *d, struct json_object *engine)
{
    const char *name = json_object_get_string(json_object_object_get(engine, "name"));
    const char *state = json_object_get_string(json_object_object_get(engine, "state"));
    uint64_t restarts = number(engine, "restarts"), failed = number(engine, "failed_starts");
    if (is_device_away(name, state))
        return;
    if (failed > 0)
        doctor_say(d, FINDING_PROBLEM,
                   "the daemon's log says why: journalctl -u gpuarrayd, or 'gpuarrayctl daemon "
                   "log' for a private one",
                   "the worker of engine %s has failed to start %llu times", name,
                   (unsigned long long)failed);
    else if (!state || strcmp(state, "ready") != 0)
        doctor_say(d, FINDING_NOTE, "a moment's patience; jobs wait in the queue",
                   "the worker of engine %s is %s", name, state ? state : "unknown");
    if (restarts > 0)
        doctor_say(d, FINDING_WARNING,
                   "the daemon's log names what ended it: a job, a lack of memory, a fault",
                   "the worker of engine %s was replaced %llu times", name,
                   (unsigned long long)restarts);
}

static void check_engines(struct doctor *d)
{
    struct json_object *engines = json_object_object_get(d->facts.info, "engines");
    size_t n =
        json_object_is_type(engines, json_type_array) ? json_object_array_length(engines) : 0;
    for (size_t i = 0; i < n; i++)
        check_engine(d, json_object_array_get_idx(engines, i));
}

static void say_scans(struct doctor *d)
{
    struct json_object *scans = json_object_object_get(d->facts.info, "scans");
    size_t n = json_object_is_type(scans, json_type_array) ? json_object_array_length(scans) : 0;
    uint64_t n_readers = 0;
    for (size_t i = 0; i < n; i++)
        n_readers += number(json_object_array_get_idx(scans, i), "readers");
    if (n > 0)
        doctor_say(d, FINDING_OK, NULL, "%zu files are decoded once for %llu readers", n,
                   (unsigned long long)n_readers);
}

static void say_there(struct doctor *d)
{
    char pool[32];
    struct json_object *map = json_object_object_get(d->facts.info, "pool");
    doctor_say(d, FINDING_OK, NULL, "gpuarrayd %s answers (%s), pool %s",
               facts_text(&d->facts, "version"), facts_kind_name(d->facts.kind),
               ctl_format_bytes((double)number(map, "bytes"), pool));
    check_version(d);
    check_engines(d);
    say_scans(d);
}

static bool is_on_path(const char *name)
{
    const char *list = getenv("PATH");
    while (list && *list) {
        char path[512];
        size_t n = strcspn(list, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)n, list, name);
        if (n > 0 && beside_is_program(path))
            return true;
        list += n + (list[n] == ':');
    }
    return false;
}

static void say_startable(struct doctor *d)
{
    const char *given = getenv("GPUARRAYD_DAEMON");
    char found[512];
    if (given && given[0] && !beside_is_program(given))
        doctor_say(d, FINDING_PROBLEM,
                   "name the program gpuarrayd in GPUARRAYD_DAEMON, or unset it",
                   "no daemon runs, and %s (GPUARRAYD_DAEMON) is no program", given);
    else if ((given && given[0]) ||
             beside_find("gpuarrayd", DOCTOR_BINDIR "/gpuarrayd", found, sizeof(found)) ||
             is_on_path("gpuarrayd"))
        doctor_say(d, FINDING_OK, NULL, "none runs; the first job starts a private one");
    else
        doctor_say(d, FINDING_PROBLEM,
                   "install gpuarrayd, or name the program: export GPUARRAYD_DAEMON=/.../gpuarrayd",
                   "no daemon runs, and the program gpuarrayd is neither in " DOCTOR_BINDIR
                   " nor on the PATH");
}

void doctor_daemon(struct doctor *d)
{
    char advice[CTL_HINT_SIZE];
    if (d->has_daemon) {
        say_there(d);
    } else if (d->error.status == GAD_NO_DAEMON && !d->is_given) {
        say_startable(d);
    } else {
        ctl_hint(&d->error, advice, sizeof(advice));
        doctor_say(d, FINDING_PROBLEM, advice[0] ? advice : "the daemon's log", "%s [%s]",
                   d->error.message, gad_status_word((int)d->error.status));
    }
}
