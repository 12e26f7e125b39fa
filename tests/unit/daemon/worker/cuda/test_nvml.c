#include "daemon/worker/cuda/nvml.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PCI "0000:3b:00.0"

static struct nvml *nvml;

static void open_device(const char *memory)
{
    setenv("FAKE_NVML_MEMORY", memory, 1);
    cr_assert(eq(int, nvml_open(&nvml), 0));
    cr_assert(eq(int, nvml_choose(nvml, PCI), 0));
}

static void close_device(void)
{
    nvml = nvml_close(nvml);
}

Test(nvml, memory_with_what_is_reserved, .fini = close_device)
{
    struct nvml_memory m;
    open_device("1000 600 350 50");
    cr_assert(eq(int, nvml_memory(nvml, &m), 0));
    cr_assert(eq(u64, m.total_bytes, 1000));
    cr_assert(eq(u64, m.free_bytes, 600));
    cr_assert(eq(u64, m.used_bytes, 350));
    cr_assert(eq(u64, m.reserved_bytes, 50));
}

Test(nvml, memory_of_an_old_library, .fini = close_device)
{
    struct nvml_memory m;
    setenv("FAKE_NVML", "old", 1);
    open_device("1000 600 350 50");
    cr_assert(eq(int, nvml_memory(nvml, &m), 0));
    cr_assert(eq(u64, m.used_bytes, 400));
    cr_assert(eq(u64, m.reserved_bytes, 0));
}

Test(nvml, what_was_used_when_it_was_opened, .fini = close_device)
{
    uint64_t before = 0;
    setenv("FAKE_NVML_MEMORY", "1000 900 70 30", 1);
    cr_assert(eq(int, nvml_open(&nvml), 0));
    cr_assert(not(nvml_used_before(nvml, &before))); /* no device was chosen */
    setenv("FAKE_NVML_MEMORY", "1000 500 470 30", 1);
    cr_assert(eq(int, nvml_choose(nvml, PCI), 0));
    cr_assert(nvml_used_before(nvml, &before));
    cr_assert(eq(u64, before, 70));
}

Test(nvml, processes_are_merged_and_sorted_by_size, .fini = close_device)
{
    struct nvml_process list[NVML_MAX_PROCESSES];
    char text[64];
    unsigned n;
    snprintf(text, sizeof(text), "999999:100 %d:300", (int)getpid());
    setenv("FAKE_NVML_COMPUTING", text, 1);
    setenv("FAKE_NVML_DRAWING", "999999:500 999998:-", 1);
    open_device("1000 600 350 50");
    cr_assert(eq(int, nvml_processes(nvml, list, &n), 0));
    cr_assert(eq(u32, n, 3));
    cr_assert(eq(int, list[0].pid, 999999));
    cr_assert(eq(u64, list[0].bytes, 500));
    cr_assert(eq(str, list[0].name, (char *)""));
    cr_assert(eq(int, list[1].pid, getpid()));
    cr_assert(eq(u64, list[1].bytes, 300));
    cr_assert(ne(str, list[1].name, (char *)""));
    cr_assert(eq(int, list[2].pid, 999998));
    cr_assert(eq(u64, list[2].bytes, 0));
}

Test(nvml, more_processes_than_there_is_room_for_are_not_told, .fini = close_device)
{
    struct nvml_process list[NVML_MAX_PROCESSES];
    char text[NVML_MAX_PROCESSES * 16 + 64] = "";
    unsigned n;
    for (unsigned i = 0; i <= NVML_MAX_PROCESSES; i++)
        sprintf(text + strlen(text), "%u:1 ", 900000 + i);
    setenv("FAKE_NVML_COMPUTING", text, 1);
    setenv("FAKE_NVML_DRAWING", "7:1", 1);
    open_device("1000 600 350 50");
    cr_assert(eq(int, nvml_processes(nvml, list, &n), 0)); /* who draws is known */
    cr_assert(eq(u32, n, 1));
    setenv("FAKE_NVML_DRAWING", text, 1);
    cr_assert(eq(int, nvml_processes(nvml, list, &n), -EIO));
}

Test(nvml, a_driver_that_does_not_tell, .fini = close_device)
{
    struct nvml_memory m;
    struct nvml_process list[NVML_MAX_PROCESSES];
    uint64_t before;
    unsigned n;
    setenv("FAKE_NVML", "silent", 1);
    open_device("1000 600 350 50");
    cr_assert(eq(int, nvml_memory(nvml, &m), -EIO));
    cr_assert(eq(int, nvml_processes(nvml, list, &n), -EIO));
    cr_assert(not(nvml_used_before(nvml, &before)));
}

Test(nvml, another_device_is_not_found)
{
    cr_assert(eq(int, nvml_open(&nvml), 0));
    cr_assert(eq(int, nvml_choose(nvml, "0000:5e:00.0"), -ENOENT));
    close_device();
}

Test(nvml, a_library_that_does_not_work_is_none)
{
    setenv("FAKE_NVML", "absent", 1);
    cr_assert(eq(int, nvml_open(&nvml), -ENOENT));
    cr_assert(eq(ptr, nvml_close(NULL), NULL));
}
