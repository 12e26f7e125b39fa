/* doctor: an NVIDIA GPU that is there, and whether it is used.
 *
 * Looked for without any library of the driver's: the kernel module says its version in /proc, and
 * the devices are files whose permissions decide. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include <glob.h>
#include <string.h>
#include <unistd.h>

static bool daemon_has_engine(const struct doctor *d, const char *name)
{
    struct json_object *engines = json_object_object_get(d->facts.info, "engines");
    size_t n =
        json_object_is_type(engines, json_type_array) ? json_object_array_length(engines) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *engine = json_object_array_get_idx(engines, i);
        const char *found = json_object_get_string(json_object_object_get(engine, "name"));
        if (found && strcmp(found, name) == 0)
            return true;
    }
    return false;
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
    if (closed)
        doctor_say(d, FINDING_WARNING,
                   "join the group that 'ls -l /dev/nvidia*' shows, then log in again",
                   "%zu GPUs, but %s is closed to you", found.gl_pathc, closed);
    else if (d->has_daemon && !daemon_has_engine(d, "cuda"))
        doctor_say(d, FINDING_NOTE, "nothing: this version has a CPU engine",
                   "%zu GPUs that you may use; the daemon computes on the CPU", found.gl_pathc);
    else
        doctor_say(d, FINDING_OK, NULL, "%zu GPUs that you may use", found.gl_pathc);
    globfree(&found);
}

void doctor_gpu(struct doctor *d)
{
    char version[160];
    if (!doctor_read("/proc/driver/nvidia/version", version, sizeof(version)))
        doctor_say(d, FINDING_OK, NULL, "no NVIDIA driver: the CPU engine computes");
    else
        check_devices(d, version);
}
