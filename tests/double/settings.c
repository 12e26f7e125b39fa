/* The settings of the test double. Read once, at the first call of the runtime in a process; a key
 * or number that is not known ends the program: a test that sets what is not there tests nothing.
 *
 * GPUARRAYD_DOUBLE="key=value,key,..."
 * - devices=1: how many there are; 0: none. no-driver, old-driver: what the driver is
 * - device_bytes=N: of a device; used_bytes=N: by others, context_bytes=N: by a context
 * - register_bytes=N: what may be registered together. capability=90: compute capability
 * - absent-until=PATH: there is no device until PATH exists
 * - allocations=N: the N+1st call that takes memory, a stream or an event aborts
 * - slow-link=N: bytes a second, of copies from and to the host
 * - seed=N, delay-us=200: each operation waits at random before it begins, up to so long
 * - stats=PATH: counters, live, in PATH.DEVICE (double.h)
 * - machine=NAME: copies and kernels take what they would on it, and move and compute little
 *   (timeline.c); pace=N: from when armed= says so, N times slower than there; timeline=PATH: then
 *   a line for each: "to", "from" or "kernel", when it was issued and ended, what it took
 *   (nanoseconds), a copy's bytes or what the kernel would take if it filled the device
 * - no-blas: cuBLAS is not there; fail-blas: it does not start; fail-gemm: it multiplies nothing
 * - report=PATH: what is said before an abort is appended there too
 * Faults; =N: the N-th in the process, from 1; without: each
 * - fail-malloc, fail-host-alloc, fail-register: out of memory
 * - strange-register: what fail-register refuses is an "unknown error", and hurts nothing
 * - fail-launch: a launch is refused, and hurts nothing
 * - sticky-launch, sticky-copy: ends with an illegal address, the context is lost
 * - hang-launch, hang-copy: never ends
 * - lost-after=N: the device is lost behind N copies and launches
 * - sticky-data=HEX, hang-data=HEX, lost-data=HEX: the same for a launch that reads these 8 bytes
 *   (16 digits, as a number) at a multiple of 8 in its slot
 * - back=PATH: a lost device is lost for later processes too, until PATH exists; makes PATH.lost
 * - once=PATH: faults only in the process that makes PATH
 * - armed=PATH: faults only from when PATH exists; N counts from there
 */
#include "tests/double/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum type { TYPE_NUMBER, TYPE_NTH, TYPE_HEX, TYPE_FLAG, TYPE_PATH };

#define KEY(key, member, type)                                                                     \
    {                                                                                              \
        key, offsetof(struct settings, member), type                                               \
    }

static const struct key {
    const char *name;
    size_t offset;
    enum type type;
} keys[] = {
    KEY("devices", devices, TYPE_NUMBER),
    KEY("device_bytes", device_bytes, TYPE_NUMBER),
    KEY("used_bytes", used_bytes, TYPE_NUMBER),
    KEY("context_bytes", context_bytes, TYPE_NUMBER),
    KEY("register_bytes", register_bytes, TYPE_NUMBER),
    KEY("capability", capability, TYPE_NUMBER),
    KEY("no-driver", no_driver, TYPE_FLAG),
    KEY("old-driver", old_driver, TYPE_FLAG),
    KEY("no-blas", no_blas, TYPE_FLAG),
    KEY("fail-blas", fail_blas, TYPE_FLAG),
    KEY("fail-gemm", fail_gemm, TYPE_FLAG),
    KEY("fail-malloc", fail_malloc, TYPE_NTH),
    KEY("fail-host-alloc", fail_host_alloc, TYPE_NTH),
    KEY("fail-register", fail_register, TYPE_NTH),
    KEY("strange-register", strange_register, TYPE_FLAG),
    KEY("fail-launch", fail_launch, TYPE_NTH),
    KEY("sticky-launch", sticky_launch, TYPE_NTH),
    KEY("sticky-copy", sticky_copy, TYPE_NTH),
    KEY("hang-launch", hang_launch, TYPE_NTH),
    KEY("hang-copy", hang_copy, TYPE_NTH),
    KEY("lost-after", lost_after, TYPE_NUMBER),
    KEY("sticky-data", sticky_data, TYPE_HEX),
    KEY("hang-data", hang_data, TYPE_HEX),
    KEY("lost-data", lost_data, TYPE_HEX),
    KEY("slow-link", slow_link, TYPE_NUMBER),
    KEY("seed", seed, TYPE_NUMBER),
    KEY("delay-us", delay_us, TYPE_NUMBER),
    KEY("allocations", allocations, TYPE_NUMBER),
    KEY("machine", machine, TYPE_PATH),
    KEY("pace", pace, TYPE_NUMBER),
    KEY("timeline", timeline, TYPE_PATH),
    KEY("once", once, TYPE_PATH),
    KEY("armed", armed, TYPE_PATH),
    KEY("back", back, TYPE_PATH),
    KEY("absent-until", absent_until, TYPE_PATH),
    KEY("stats", stats, TYPE_PATH),
    KEY("report", report, TYPE_PATH),
};

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_make(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    close(fd);
    return true;
}

static const struct key *find_key(const char *name)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    double_abort("GPUARRAYD_DOUBLE: there is no key %s", name);
}

static uint64_t read_number(const char *name, const char *value, int base)
{
    char *end = NULL;
    errno = 0;
    const unsigned long long number = value ? strtoull(value, &end, base) : 0;
    if (!value || end == value || *end || errno)
        double_abort("GPUARRAYD_DOUBLE: %s wants a number", name);
    return number;
}

static void set(struct settings *s, const char *name, const char *value)
{
    const struct key *key = find_key(name);
    char *member = (char *)s + key->offset;
    if (key->type == TYPE_FLAG && !value) {
        *(bool *)member = true;
    } else if (key->type == TYPE_PATH && value && strlen(value) < sizeof s->once) {
        strcpy(member, value);
    } else if (key->type == TYPE_NTH && !value) {
        *(uint64_t *)member = EVERY;
    } else if (key->type == TYPE_NTH || key->type == TYPE_NUMBER) {
        *(uint64_t *)member = read_number(name, value, 10);
    } else if (key->type == TYPE_HEX) {
        *(uint64_t *)member = read_number(name, value, 16);
    } else {
        double_abort("GPUARRAYD_DOUBLE: %s=%s cannot be", name, value ? value : "");
    }
}

static void forget_faults(struct settings *s)
{
    s->fail_malloc = s->fail_host_alloc = s->fail_register = s->fail_launch = 0;
    s->sticky_launch = s->sticky_copy = s->hang_launch = s->hang_copy = s->lost_after = 0;
    s->sticky_data = s->hang_data = s->lost_data = 0;
}

void settings_read(struct settings *s)
{
    *s = (struct settings){
        .devices = 1,
        .device_bytes = UINT64_C(8) << 30,
        .used_bytes = UINT64_C(1) << 30,
        .context_bytes = UINT64_C(256) << 20,
        .register_bytes = UINT64_C(64) << 30,
        .capability = 90,
        .delay_us = 200,
    };
    const char *text = getenv("GPUARRAYD_DOUBLE");
    char copy[2048];
    if (text && (size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy)
        double_abort("GPUARRAYD_DOUBLE is too long");
    char *rest = NULL;
    for (char *word = text ? strtok_r(copy, ",", &rest) : NULL; word;
         word = strtok_r(NULL, ",", &rest)) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        set(s, word, value);
    }
    if (*s->once && !file_make(s->once))
        forget_faults(s);
}
