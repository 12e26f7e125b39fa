/* A libnvidia-ml.so.1 for tests: two devices, and what it says of them is in the environment at
 * each call, so that a test changes it in between.
 *
 *     FAKE_NVML            "absent": nvmlInit fails; "old": no nvmlDeviceGetMemoryInfo_v2;
 *                          "silent": neither memory nor processes are told
 *     FAKE_NVML_MEMORY     "total free used reserved" of device 1; device 0 has nothing
 *     FAKE_NVML_COMPUTING  "pid:bytes pid:bytes"; bytes "-": not available
 *     FAKE_NVML_DRAWING    the same
 *     FAKE_NVML_SLOW_MS    so long it takes to tell of the memory
 *     FAKE_NVML_PCI        the address of device 1; "0000:3b:00.0" else
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUCCESS           0
#define NOT_SUPPORTED     3
#define NOT_FOUND         6
#define INSUFFICIENT_SIZE 7

struct fake_device {
    unsigned index;
};

struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

struct memory_v1 {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct fake_device **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct fake_device **device);
int nvmlDeviceGetIndex(struct fake_device *device, unsigned *index);
int nvmlDeviceGetMemoryInfo(struct fake_device *device, struct memory_v1 *memory);
int nvmlDeviceGetMemoryInfo_v2(struct fake_device *device, struct memory_v2 *memory);
int nvmlDeviceGetComputeRunningProcesses_v3(struct fake_device *device, unsigned *n,
                                            struct process_info *list);
int nvmlDeviceGetGraphicsRunningProcesses_v3(struct fake_device *device, unsigned *n,
                                             struct process_info *list);

static struct fake_device devices[] = {{0}, {1}};

static const char *setting(const char *name, const char *other)
{
    const char *value = getenv(name);
    return value ? value : other;
}

static bool is_mode(const char *mode)
{
    return strcmp(setting("FAKE_NVML", ""), mode) == 0;
}

int nvmlInit_v2(void)
{
    return is_mode("absent") ? NOT_FOUND : SUCCESS;
}

int nvmlShutdown(void)
{
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct fake_device **device)
{
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, struct fake_device **device)
{
    if (strcmp(pci, setting("FAKE_NVML_PCI", "0000:3b:00.0")) != 0)
        return NOT_FOUND;
    *device = &devices[1];
    return SUCCESS;
}

int nvmlDeviceGetIndex(struct fake_device *device, unsigned *index)
{
    *index = device->index;
    return SUCCESS;
}

static bool read_memory(const struct fake_device *device, struct memory_v2 *m)
{
    memset(m, 0, sizeof(*m));
    usleep((useconds_t)atoi(setting("FAKE_NVML_SLOW_MS", "0")) * 1000);
    return device->index == 1 && !is_mode("silent") &&
           sscanf(setting("FAKE_NVML_MEMORY", ""), "%llu %llu %llu %llu", &m->total, &m->free,
                  &m->used, &m->reserved) == 4;
}

int nvmlDeviceGetMemoryInfo(struct fake_device *device, struct memory_v1 *memory)
{
    struct memory_v2 m;
    if (!read_memory(device, &m))
        return NOT_SUPPORTED;
    *memory = (struct memory_v1){m.total, m.free, m.used + m.reserved};
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(struct fake_device *device, struct memory_v2 *memory)
{
    if (memory->version != (sizeof(*memory) | 2u << 24) || is_mode("old"))
        return NOT_SUPPORTED;
    return read_memory(device, memory) ? SUCCESS : NOT_SUPPORTED;
}

static int read_processes(const struct fake_device *device, const char *text, unsigned *n,
                          struct process_info *list)
{
    unsigned room = *n, found = 0;
    int used = 0;
    struct process_info p = {0};
    char bytes[32];
    if (device->index != 1 || is_mode("silent"))
        return NOT_SUPPORTED;
    for (; sscanf(text, " %u:%31s%n", &p.pid, bytes, &used) == 2; text += used) {
        p.used_bytes = strcmp(bytes, "-") == 0 ? UINT64_MAX : strtoull(bytes, NULL, 10);
        if (found < room)
            list[found] = p;
        found++;
    }
    *n = found;
    return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct fake_device *device, unsigned *n,
                                            struct process_info *list)
{
    return read_processes(device, setting("FAKE_NVML_COMPUTING", ""), n, list);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct fake_device *device, unsigned *n,
                                             struct process_info *list)
{
    return read_processes(device, setting("FAKE_NVML_DRAWING", ""), n, list);
}
