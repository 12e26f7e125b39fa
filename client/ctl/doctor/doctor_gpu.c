/* doctor: an NVIDIA GPU that is there, and whether it is used.
 *
 * Looked for without any library of the driver's: the bus lists the devices, the kernel module says
 * its version in /proc, and the devices are files whose permissions decide. What the daemon made of
 * it is in its answer: each engine has a state, and says why when it is not there.
 *
 *     device on the bus -> driver, not too old -> /dev/nvidia* -> permitted -> engine of the daemon
 *
 * The first step that fails is the finding. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OLDEST_DRIVER 525 /* the first with CUDA 12 */

static struct json_object *engine_at(const struct doctor *d, size_t i)
{
    struct json_object *engines = json_object_object_get(d->facts.info, "engines");
    size_t n =
        json_object_is_type(engines, json_type_array) ? json_object_array_length(engines) : 0;
    return i < n ? json_object_array_get_idx(engines, i) : NULL;
}

static const char *text(struct json_object *map, const char *key)
{
    const char *found = json_object_get_string(json_object_object_get(map, key));
    return found ? found : "";
}

static bool is_device(struct json_object *engine)
{
    return strncmp(text(engine, "name"), "cuda", 4) == 0;
}

/* Display controllers and accelerators of NVIDIA's. */
static unsigned count_on_bus(void)
{
    glob_t found;
    unsigned n = 0;
    if (glob("/sys/bus/pci/devices/*/vendor", 0, NULL, &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char vendor[16], class[16], path[256];
        const char *at = found.gl_pathv[i];
        snprintf(path, sizeof(path), "%.*s/class", (int)(strrchr(at, '/') - at), at);
        n += doctor_read(at, vendor, sizeof(vendor)) && strncmp(vendor, "0x10de", 6) == 0 &&
             doctor_read(path, class, sizeof(class)) &&
             (strncmp(class, "0x03", 4) == 0 || strncmp(class, "0x12", 4) == 0);
    }
    globfree(&found);
    return n;
}

static const char *advice_for(struct json_object *engine)
{
    const char *state = text(engine, "state"), *why = text(engine, "why");
    if (strcmp(state, "waiting-for-device-memory") == 0)
        return "'nvidia-smi' shows who has the memory; or a smaller device-bytes in gpuarrayd.conf";
    if (strstr(why, "permi") || strstr(why, "Permi"))
        return "the daemon's user needs the group that 'ls -l /dev/nvidia*' shows";
    if (strstr(why, "driver"))
        return "a driver for the CUDA version that the message names, or gpuarrayd built with an "
               "older CUDA toolkit";
    return "the daemon's log: journalctl -u gpuarrayd, or 'gpuarrayctl daemon log' for a private "
           "one";
}

static void check_engines(struct doctor *d, size_t n_gpus)
{
    unsigned n_engines = 0, n_there = 0;
    struct json_object *engine;
    for (size_t i = 0; (engine = engine_at(d, i)) != NULL; i++) {
        const char *state = text(engine, "state"), *why = text(engine, "why");
        if (!is_device(engine))
            continue;
        n_engines++;
        if (why[0])
            doctor_say(d, FINDING_WARNING, advice_for(engine), "engine %s is %s: %s",
                       text(engine, "name"), state, why);
        else
            n_there++;
    }
    if (n_engines == 0)
        doctor_say(d, FINDING_NOTE,
                   "'engine' and 'devices' in gpuarrayd.conf; is gpuarrayd-worker-cuda installed "
                   "beside gpuarrayd-worker-cpu?",
                   "%zu GPUs that you may use; the daemon computes on the CPU", n_gpus);
    else if (n_there > 0)
        doctor_say(d, FINDING_OK, NULL, "%zu GPUs that you may use, %u used by the daemon", n_gpus,
                   n_there);
}

/* The devices that a process needs: the control device and at least one GPU. */
static void check_devices(struct doctor *d, const char *version)
{
    glob_t found;
    const char *closed = NULL;
    if (glob("/dev/nvidia[0-9]*", 0, NULL, &found) != 0) {
        doctor_say(d, FINDING_WARNING,
                   "sudo nvidia-modprobe -c 0 -u, or hand the devices to the "
                   "container",
                   "the driver is loaded (%s), but there is no /dev/nvidia0", version);
        return;
    }
    if (access("/dev/nvidiactl", R_OK | W_OK))
        closed = "/dev/nvidiactl";
    for (size_t i = 0; i < found.gl_pathc && !closed; i++)
        if (access(found.gl_pathv[i], R_OK | W_OK))
            closed = found.gl_pathv[i];
    if (closed && d->facts.kind != DAEMON_SERVICE)
        doctor_say(d, FINDING_WARNING,
                   "join the group that 'ls -l /dev/nvidia*' shows, then log in again",
                   "%zu GPUs, but %s is closed to you", found.gl_pathc, closed);
    else if (d->has_daemon)
        check_engines(d, found.gl_pathc);
    else
        doctor_say(d, FINDING_OK, NULL, "%zu GPUs that you may use", found.gl_pathc);
    globfree(&found);
}

/* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu ..."; 0: not understood. */
static unsigned long driver_major(const char *version)
{
    const char *at = strstr(version, "Module");
    at = at ? strpbrk(at, "0123456789") : NULL;
    return at ? strtoul(at, NULL, 10) : 0;
}

void doctor_gpu(struct doctor *d)
{
    char version[160];
    unsigned n_on_bus = count_on_bus();
    if (!doctor_read("/proc/driver/nvidia/version", version, sizeof(version))) {
        if (n_on_bus > 0)
            doctor_say(d, FINDING_NOTE,
                       "install NVIDIA's driver, or load it: sudo modprobe nvidia-uvm",
                       "%u NVIDIA GPUs are on the bus, and their driver is not loaded: the CPU "
                       "engine computes",
                       n_on_bus);
        else
            doctor_say(d, FINDING_OK, NULL, "no NVIDIA driver: the CPU engine computes");
        return;
    }
    unsigned long major = driver_major(version);
    if (major > 0 && major < OLDEST_DRIVER)
        doctor_say(d, FINDING_WARNING, "a newer driver from NVIDIA or the distribution",
                   "the NVIDIA driver %lu is too old: CUDA 12 needs %d", major, OLDEST_DRIVER);
    else
        check_devices(d, version);
}
