/* What the driver tells of a device as a whole: its memory and who has it. NVML is opened at run
 * time; without it the worker runs all the same and knows less. One thread at a time. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct nvml;

struct nvml_memory { /* reserved: the driver's own; 0 where it does not tell */
    uint64_t total_bytes, free_bytes, used_bytes, reserved_bytes;
};

struct nvml_process {
    pid_t pid;
    uint64_t bytes; /* 0: the driver does not tell */
    char name[16];  /* "": not readable */
};

/* Opens the library and notes what is used of every device now. -ENOENT: there is no NVML that
 * works here. -ENOMEM. */
int nvml_open(struct nvml **ret_nvml) GAD_MUST_CHECK;
struct nvml *nvml_close(struct nvml *nvml); /* NULL */

/* From here on: the device at this PCI address ("0000:3b:00.0"). -ENOENT. */
int nvml_choose(struct nvml *nvml, const char *pci) GAD_MUST_CHECK;
/* What was used of the chosen device when NVML was opened; false: not known. */
bool nvml_used_before(const struct nvml *nvml, uint64_t *ret_bytes);
/* -EIO: the driver does not tell. */
int nvml_memory(const struct nvml *nvml, struct nvml_memory *ret_memory) GAD_MUST_CHECK;

#define NVML_MAX_PROCESSES 64u
/* The processes on the device, largest first; a process that is there more than once (it computes
 * and draws) counts once, with its largest figure. -EIO. */
int nvml_processes(const struct nvml *nvml, struct nvml_process *ret_processes,
                   unsigned *ret_n) GAD_MUST_CHECK;
