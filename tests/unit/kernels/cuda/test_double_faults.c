/* The faults that the test double injects: each happens as said, when said, and looks to the
 * program like what a device would do. */
#include "tests/unit/kernels/cuda/card_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

static struct card_rig rig;

/* A path in a new folder; the test leaves no file there. */
static const char *temporary_path(char folder[static 64])
{
    static char path[128];
    strcpy(folder, "/tmp/gad-double-XXXXXX");
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(path, sizeof path, "%s/marker", folder);
    return path;
}

static void set_with_path(const char *format, const char *path)
{
    char text[512];
    snprintf(text, sizeof text, format, path, path);
    card_rig_set(text);
}

static void make(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert(ge(int, fd, 0));
    close(fd);
}

static void clean(const char *path, const char *folder)
{
    char lost[160];
    snprintf(lost, sizeof lost, "%s.lost", path);
    unlink(lost);
    unlink(path);
    cr_assert(eq(int, rmdir(folder), 0));
}

Test(double_faults, a_sticky_launch_is_told_by_the_event_and_by_every_call_after_it)
{
    card_rig_set("sticky-launch=2");
    card_rig_open(&rig, 0);
    MUST(card_rig_tile(&rig, 100, 1));
    const int error = card_rig_tile(&rig, 100, 1);
    cr_assert(eq(int, error, cudaErrorIllegalAddress));
    cr_assert(cuda_error_is_sticky(error));
    bool is_done = true;
    void *more = NULL;
    cr_assert(eq(int, cuda_event_query(rig.back, &is_done), cudaErrorIllegalAddress));
    cr_assert(eq(int, cuda_malloc(1, &more), cudaErrorIllegalAddress));
    cr_assert(eq(int, cuda_copy_to_device(rig.device_slot, rig.slot, 1, rig.to_device),
                 cudaErrorIllegalAddress));
    card_rig_close(&rig); /* ends, whatever is queued */
}

Test(double_faults, a_refused_launch_hurts_nothing)
{
    card_rig_set("fail-launch=1");
    card_rig_open(&rig, 0);
    const int error = card_rig_launch(&rig, rig.compute, 100, 1);
    cr_assert(eq(int, error, cudaErrorLaunchOutOfResources));
    cr_assert(not(cuda_error_is_sticky(error)));
    cr_assert(eq(int, cudaGetLastError(), cudaSuccess));
    MUST(card_rig_tile(&rig, 100, 3));
    cr_assert(eq(int, rig.slot[99], 3));
    card_rig_close(&rig);
}

Test(double_faults, a_copy_that_never_ends_holds_its_stream_only)
{
    card_rig_set("hang-copy=1");
    card_rig_open(&rig, 0);
    bool is_done = true;
    MUST(cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device));
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(card_rig_launch(&rig, rig.compute, 0, 1));
    MUST(cuda_event_record(rig.computed, rig.compute));
    cr_assert(eq(int, cuda_event_wait(rig.computed), 0));
    cr_assert(eq(int, cuda_event_query(rig.copied, &is_done), 0));
    cr_assert(not(is_done));
    cuda_stream_free(rig.to_device); /* does not wait for it */
}

static int count_in_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        int n = 0;
        _exit(cuda_device_count(&n));
    }
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(eq(int, !WIFEXITED(status), 0));
    return WEXITSTATUS(status);
}

static void lose_device(void)
{
    card_rig_open(&rig, 0);
    MUST(card_rig_tile(&rig, 100, 1)); /* three operations */
    const int error = cuda_copy_to_device(rig.device_slot, rig.slot, 100, rig.to_device);
    bool is_done = false;
    _exit(error == cudaErrorUnknown && cuda_error_is_sticky(error) &&
                  cuda_event_query(rig.back, &is_done) == cudaErrorUnknown
              ? 0
              : 2);
}

Test(double_faults, a_lost_device_comes_back_for_a_later_process)
{
    char folder[64];
    const char *path = temporary_path(folder);
    set_with_path("lost-after=3,back=%s", path);
    cr_assert(eq(int, count_in_child(), 0));
    const pid_t child = fork();
    if (child == 0)
        lose_device();
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(eq(int, status, 0));
    cr_assert(eq(int, count_in_child(), cudaErrorNoDevice));
    make(path);
    cr_assert(eq(int, count_in_child(), 0));
    clean(path, folder);
}

Test(double_faults, a_device_is_absent_until_a_file_is_there)
{
    char folder[64];
    const char *path = temporary_path(folder);
    set_with_path("absent-until=%s", path);
    cr_assert(eq(int, count_in_child(), cudaErrorNoDevice));
    make(path);
    cr_assert(eq(int, count_in_child(), 0));
    clean(path, folder);
}

static int malloc_in_child(void)
{
    const pid_t child = fork();
    if (child == 0) {
        struct cuda_device device;
        void *memory = NULL;
        MUST(cuda_device_open(0, &device));
        _exit(cuda_malloc(100, &memory));
    }
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(eq(int, !WIFEXITED(status), 0));
    return WEXITSTATUS(status);
}

Test(double_faults, faults_can_be_of_one_process_alone)
{
    char folder[64];
    const char *path = temporary_path(folder);
    set_with_path("fail-malloc,once=%s", path);
    cr_assert(eq(int, malloc_in_child(), cudaErrorMemoryAllocation));
    cr_assert(eq(int, malloc_in_child(), 0));
    clean(path, folder);
}

Test(double_faults, faults_count_from_when_they_are_armed)
{
    char folder[64];
    const char *path = temporary_path(folder);
    set_with_path("sticky-launch=1,armed=%s", path);
    card_rig_open(&rig, 0);
    for (int i = 0; i < 3; i++) {
        MUST(card_rig_tile(&rig, 100, 1));
    }
    make(path);
    cr_assert(eq(int, card_rig_tile(&rig, 100, 1), cudaErrorIllegalAddress));
    card_rig_close(&rig);
    clean(path, folder);
}

Test(double_faults, counters_are_in_a_file_while_it_runs)
{
    char folder[64], name[160];
    const char *path = temporary_path(folder);
    set_with_path("stats=%s", path);
    card_rig_open(&rig, 0);
    MUST(card_rig_tile(&rig, 100, 1));
    snprintf(name, sizeof name, "%s.0", path);
    struct double_stats seen;
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, (int)read(fd, &seen, sizeof seen), (int)sizeof seen));
    close(fd);
    cr_assert(eq(u64, seen.n_to_device, 1));
    cr_assert(eq(u64, seen.bytes_from_device, 100));
    cr_assert(eq(u64, seen.n_launches, 1));
    cr_assert(eq(u64, seen.n_mallocs + seen.n_host_allocs, 2));
    cr_assert(eq(u64, seen.n_streams + seen.n_events, 6));
    card_rig_close(&rig);
    unlink(name);
    clean(path, folder);
}

Test(double_faults, a_launch_can_fail_by_what_it_reads)
{
    const uint64_t mark = 0x4059000000000001;
    card_rig_set("sticky-data=4059000000000001");
    card_rig_open(&rig, 0);
    memcpy(rig.slot + 804, &mark, sizeof mark); /* not at a multiple of 8 */
    MUST(card_rig_tile(&rig, 1000, 0));
    memcpy(rig.slot + 800, &mark, sizeof mark);
    MUST(card_rig_tile(&rig, 800, 0));
    cr_assert(eq(int, card_rig_tile(&rig, 1000, 0), cudaErrorIllegalAddress));
    card_rig_close(&rig);
}

Test(double_faults, a_device_can_be_lost_by_what_a_launch_reads)
{
    const uint64_t mark = 0x4059000000000001;
    card_rig_set("lost-data=4059000000000001");
    card_rig_open(&rig, 0);
    MUST(card_rig_tile(&rig, 1000, 0));
    memcpy(rig.slot, &mark, sizeof mark);
    cr_assert(eq(int, card_rig_tile(&rig, 1000, 0), cudaErrorUnknown));
    card_rig_close(&rig);
}

Test(double_faults, a_launch_can_hang_by_what_it_reads)
{
    const uint64_t mark = 0x4059000000000001;
    bool is_done = true;
    card_rig_set("hang-data=4059000000000001");
    card_rig_open(&rig, 0);
    memcpy(rig.slot, &mark, sizeof mark);
    MUST(card_rig_in(&rig, 100));
    MUST(card_rig_launch(&rig, rig.compute, 100, 0));
    MUST(card_rig_out(&rig, 100));
    MUST(cuda_copy_to_device((char *)rig.device_slot + 4096, rig.slot + 4096, 100, rig.to_device));
    MUST(cuda_event_record(rig.copied, rig.to_device));
    MUST(cuda_event_wait(rig.copied));
    MUST(cuda_event_query(rig.back, &is_done));
    cr_assert(not(is_done));
}

static void use_plain_memory(void)
{
    static char plain[100];
    card_rig_open(&rig, 0);
    MUST(cuda_copy_to_device(rig.device_slot, plain, sizeof plain, rig.to_device));
}

Test(double_faults, what_is_said_before_an_abort_is_in_the_report)
{
    char folder[64], text[256] = "";
    const char *path = temporary_path(folder);
    set_with_path("report=%s", path);
    dies_saying("are not pinned", use_plain_memory);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(ge(int, (int)read(fd, text, sizeof text - 1), 20));
    close(fd);
    cr_assert(ne(ptr, strstr(text, "are not pinned"), NULL));
    clean(path, folder);
}
