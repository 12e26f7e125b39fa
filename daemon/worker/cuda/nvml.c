/* NVML, as little of it as is needed, by dlopen().
 *
 * The declarations below are this file's own: the library's interface is stable, its header is not
 * everywhere. Versioned functions are asked for by their newest name and then by the older one of
 * the same layout. A device is found by its PCI address, because the numbers that CUDA gives are
 * its own and an environment variable can change them.
 *
 * The driver may not tell: of a part of a device (MIG), in a container, on some platforms. Then
 * figures are absent, which callers must be ready for. In a container the process ids are those of
 * the host, so that even this process is not found in the list.
 *
 * Called by card.c and card_memory.c.
 */
#include "daemon/worker/cuda/nvml.h"
#include "proto/util.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define MAX_DEVICES       64u
#define SUCCESS           0
#define INSUFFICIENT_SIZE 7
#define NOT_AVAILABLE     UINT64_MAX

struct device_handle; /* the library's */

struct memory_v1 {
    unsigned long long total, free, used;
};

struct memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};
#define MEMORY_V2_VERSION ((unsigned)sizeof(struct memory_v2) | 2u << 24)

struct process_info {
    unsigned pid;
    unsigned long long used_bytes;
    unsigned gpu_instance, compute_instance;
};

typedef int processes_function(struct device_handle *device, unsigned *n,
                               struct process_info *list);

struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *ret_n);
    int (*by_index)(unsigned index, struct device_handle **ret_device);
    int (*by_pci)(const char *pci, struct device_handle **ret_device);
    int (*index_of)(struct device_handle *device, unsigned *ret_index);
    int (*memory_v1)(struct device_handle *device, struct memory_v1 *ret_memory);
    int (*memory_v2)(struct device_handle *device, struct memory_v2 *ret_memory); /* or NULL */
    processes_function *computing, *drawing;                                      /* or NULL */
    struct device_handle *device;                                                 /* the chosen */
    unsigned index, n_devices;
    uint64_t used_before[MAX_DEVICES];
};

static void *symbol(const struct nvml *n, const char *newer, const char *older)
{
    void *found = dlsym(n->library, newer);
    return found || !older ? found : dlsym(n->library, older);
}

/* A function pointer has the size of an object's wherever there is a dlsym(). */
static void find(const struct nvml *n, void *ret_function, const char *newer, const char *older)
{
    void *found = symbol(n, newer, older);
    memcpy(ret_function, &found, sizeof(found));
}

static bool find_all(struct nvml *n)
{
    find(n, &n->init, "nvmlInit_v2", NULL);
    find(n, &n->shutdown, "nvmlShutdown", NULL);
    find(n, &n->count, "nvmlDeviceGetCount_v2", NULL);
    find(n, &n->by_index, "nvmlDeviceGetHandleByIndex_v2", NULL);
    find(n, &n->by_pci, "nvmlDeviceGetHandleByPciBusId_v2", NULL);
    find(n, &n->index_of, "nvmlDeviceGetIndex", NULL);
    find(n, &n->memory_v1, "nvmlDeviceGetMemoryInfo", NULL);
    find(n, &n->memory_v2, "nvmlDeviceGetMemoryInfo_v2", NULL);
    find(n, &n->computing, "nvmlDeviceGetComputeRunningProcesses_v3",
         "nvmlDeviceGetComputeRunningProcesses_v2");
    find(n, &n->drawing, "nvmlDeviceGetGraphicsRunningProcesses_v3",
         "nvmlDeviceGetGraphicsRunningProcesses_v2");
    return n->init && n->shutdown && n->count && n->by_index && n->by_pci && n->index_of &&
           n->memory_v1;
}

static int memory_of(const struct nvml *n, struct device_handle *device, struct nvml_memory *ret)
{
    struct memory_v2 newer = {.version = MEMORY_V2_VERSION};
    struct memory_v1 older = {0};
    if (n->memory_v2 && n->memory_v2(device, &newer) == SUCCESS) {
        *ret = (struct nvml_memory){newer.total, newer.free, newer.used, newer.reserved};
        return 0;
    }
    if (n->memory_v1(device, &older) != SUCCESS)
        return -EIO;
    *ret = (struct nvml_memory){older.total, older.free, older.used, 0};
    return 0;
}

static void note_used(struct nvml *n)
{
    struct nvml_memory memory;
    struct device_handle *device;
    if (n->count(&n->n_devices) != SUCCESS)
        n->n_devices = 0;
    n->n_devices = n->n_devices < MAX_DEVICES ? n->n_devices : MAX_DEVICES;
    for (unsigned i = 0; i < n->n_devices; i++) {
        bool is_known = n->by_index(i, &device) == SUCCESS && memory_of(n, device, &memory) == 0;
        n->used_before[i] = is_known ? memory.used_bytes : NOT_AVAILABLE;
    }
}

int nvml_open(struct nvml **ret_nvml)
{
    struct nvml *n = calloc(1, sizeof(*n));
    if (!n)
        return -ENOMEM;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!n->library || !find_all(n) || n->init() != SUCCESS) {
        if (n->library)
            dlclose(n->library);
        free(n);
        return -ENOENT;
    }
    note_used(n);
    *ret_nvml = n;
    return 0;
}

struct nvml *nvml_close(struct nvml *n)
{
    if (n) {
        n->shutdown();
        dlclose(n->library);
        free(n);
    }
    return NULL;
}

int nvml_choose(struct nvml *n, const char *pci)
{
    struct device_handle *device;
    if (n->by_pci(pci, &device) != SUCCESS || n->index_of(device, &n->index) != SUCCESS)
        return -ENOENT;
    n->device = device;
    return 0;
}

bool nvml_used_before(const struct nvml *n, uint64_t *ret_bytes)
{
    if (!n->device || n->index >= n->n_devices || n->used_before[n->index] == NOT_AVAILABLE)
        return false;
    *ret_bytes = n->used_before[n->index];
    return true;
}

int nvml_memory(const struct nvml *n, struct nvml_memory *ret_memory)
{
    return n->device ? memory_of(n, n->device, ret_memory) : -EIO;
}

static void read_name(pid_t pid, char *ret_name, size_t n_bytes)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    ret_name[0] = '\0';
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    if (fgets(ret_name, (int)n_bytes, file))
        ret_name[strcspn(ret_name, "\n")] = '\0';
    fclose(file);
}

static void add_process(const struct process_info *info, struct nvml_process *list, unsigned *n)
{
    uint64_t bytes = info->used_bytes == NOT_AVAILABLE ? 0 : info->used_bytes;
    unsigned i = 0;
    while (i < *n && list[i].pid != (pid_t)info->pid)
        i++;
    if (i == *n) {
        if (*n == NVML_MAX_PROCESSES)
            return;
        list[(*n)++] = (struct nvml_process){.pid = (pid_t)info->pid};
        read_name(list[i].pid, list[i].name, sizeof(list[i].name));
    }
    list[i].bytes = max_u64(list[i].bytes, bytes);
}

static int add_processes(const struct nvml *n, processes_function *function,
                         struct nvml_process *list, unsigned *n_list)
{
    struct process_info infos[NVML_MAX_PROCESSES];
    unsigned n_infos = NVML_MAX_PROCESSES;
    int r = function ? function(n->device, &n_infos, infos) : -1;
    if (r == INSUFFICIENT_SIZE) /* there are more: those that fit were not all written */
        return -EIO;
    for (unsigned i = 0; r == SUCCESS && i < n_infos; i++)
        add_process(&infos[i], list, n_list);
    return r == SUCCESS ? 0 : -EIO;
}

static int by_size(const void *a, const void *b)
{
    uint64_t left = ((const struct nvml_process *)a)->bytes;
    uint64_t right = ((const struct nvml_process *)b)->bytes;
    return left < right ? 1 : left > right ? -1 : 0;
}

int nvml_processes(const struct nvml *n, struct nvml_process *ret_processes, unsigned *ret_n)
{
    *ret_n = 0;
    if (!n->device)
        return -EIO;
    int r = add_processes(n, n->computing, ret_processes, ret_n);
    int drawing = add_processes(n, n->drawing, ret_processes, ret_n);
    qsort(ret_processes, *ret_n, sizeof(*ret_processes), by_size);
    return r == 0 || drawing == 0 ? 0 : -EIO;
}
