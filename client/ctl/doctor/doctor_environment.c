/* doctor: variables that bend what libraries do.
 *
 * A private daemon and its worker inherit the environment of whoever starts them; the service does
 * not. So a variable that was set for one program works on all jobs of the private daemon, until it
 * leaves. Called by doctor.c.
 */
#include "client/ctl/doctor/doctor.h"

#include "proto/util.h"

#include <stdlib.h>
#include <string.h>

#define INHERITED " A private daemon that is started here inherits it; the service does not."

static const struct pin {
    const char *name;
    enum finding_level level;
    const char *effect, *advice;
} pins[] = {
    {"OPENBLAS_CORETYPE", FINDING_WARNING,
     "pins OpenBLAS to the kernels of one processor, right or not." INHERITED,
     "unset OPENBLAS_CORETYPE: OpenBLAS finds out by itself"},
    {"OPENBLAS_L2_SIZE", FINDING_WARNING, "pins the block sizes of OpenBLAS." INHERITED,
     "unset OPENBLAS_L2_SIZE"},
    {"OPENBLAS_NUM_THREADS", FINDING_NOTE, "pins the threads of OpenBLAS." INHERITED,
     "nothing, if it is meant for your own programs: gpuarrayd has its own threads"},
    {"OMP_NUM_THREADS", FINDING_NOTE, "pins the threads of OpenMP." INHERITED,
     "nothing, if it is meant for your own programs: gpuarrayd has its own threads"},
    {"MKL_NUM_THREADS", FINDING_NOTE, "pins the threads of MKL." INHERITED,
     "nothing, if it is meant for your own programs: gpuarrayd has its own threads"},
    {"MKL_DEBUG_CPU_TYPE", FINDING_WARNING, "pins the kernels of MKL." INHERITED,
     "unset MKL_DEBUG_CPU_TYPE"},
    {"MKL_ENABLE_INSTRUCTIONS", FINDING_WARNING, "pins the kernels of MKL." INHERITED,
     "unset MKL_ENABLE_INSTRUCTIONS"},
    {"MKL_CBWR", FINDING_NOTE, "pins the code paths of MKL." INHERITED,
     "nothing, if the same bits on all processors are meant"},
    {"HDF5_USE_FILE_LOCKING", FINDING_NOTE,
     "decides whether HDF5 locks files: without locks a file that another program is writing is "
     "read as it happens to be.",
     "unset HDF5_USE_FILE_LOCKING, where the file system can lock"},
    {"HDF5_PLUGIN_PATH", FINDING_NOTE, "decides where HDF5 finds filters for compressed datasets.",
     "check that the folder holds plugins of the HDF5 version that is loaded"},
    {"HDF5_DISABLE_VERSION_CHECK", FINDING_WARNING,
     "lets HDF5 go on with a library that it was not compiled for.",
     "unset HDF5_DISABLE_VERSION_CHECK"},
};

static void say_pin(struct doctor *d, const struct pin *pin, const char *value)
{
    doctor_say(d, pin->level, pin->advice, "%s=%.80s %s", pin->name, value, pin->effect);
}

void doctor_environment(struct doctor *d)
{
    unsigned n_set = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(pins); i++) {
        const char *value = getenv(pins[i].name);
        if (!value)
            continue;
        n_set++;
        say_pin(d, &pins[i], value);
    }
    if (n_set == 0)
        doctor_say(d, FINDING_OK, NULL, "no variable pins the BLAS or HDF5");
}
