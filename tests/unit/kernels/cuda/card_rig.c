/* The rig of the runtime's tests (card_rig.h). Children use it too, so a step that fails aborts,
 * without Criterion; nothing is waited for but what a test asks. A child's death is looked at with
 * its words, so that a test of a refusal cannot pass by dying of something else. */
#include "tests/unit/kernels/cuda/card_rig.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct addition {
    size_t n_bytes;
    char add;
};

static void add_to_each(char *slot, const void *arguments)
{
    const struct addition *a = arguments;
    for (size_t i = 0; i < a->n_bytes; i++)
        slot[i] = (char)(slot[i] + a->add);
}

void card_rig_must(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: %s\n", what, cuda_error_name(result));
    abort();
}

void card_rig_set(const char *settings)
{
    MUST(setenv("GPUARRAYD_DOUBLE", settings, 1));
}

void card_rig_open(struct card_rig *rig, int index)
{
    void *slot = NULL;
    MUST(cuda_device_open(index, &rig->device));
    MUST(cuda_stream_new(CUDA_USUAL, &rig->to_device));
    MUST(cuda_stream_new(CUDA_USUAL, &rig->compute));
    MUST(cuda_stream_new(CUDA_URGENT, &rig->from_device));
    MUST(cuda_event_new(true, &rig->copied));
    MUST(cuda_event_new(true, &rig->computed));
    MUST(cuda_event_new(true, &rig->back));
    MUST(cuda_malloc(RIG_BYTES, &rig->device_slot));
    MUST(cuda_host_alloc(RIG_BYTES, &slot));
    rig->slot = slot;
}

void card_rig_close(struct card_rig *rig)
{
    cuda_stream_free(rig->to_device);
    cuda_stream_free(rig->compute);
    cuda_stream_free(rig->from_device);
    cuda_event_free(rig->copied);
    cuda_event_free(rig->computed);
    cuda_event_free(rig->back);
    cuda_free(rig->device_slot);
    cuda_host_free(rig->slot);
}

int card_rig_launch(struct card_rig *rig, cuda_stream stream, size_t n_bytes, char add)
{
    const struct addition addition = {n_bytes, add};
    const struct cuda_host_launch launch = {
        .kernel = add_to_each,
        .arguments = &addition,
        .n_argument_bytes = sizeof addition,
        .device_slot = rig->device_slot,
        .slot_bytes = RIG_BYTES,
        .read_bytes = n_bytes,
        .write_bytes = n_bytes,
    };
    return cuda_host_launch(&launch, stream);
}

int card_rig_in(struct card_rig *rig, size_t n_bytes)
{
    int r = cuda_copy_to_device(rig->device_slot, rig->slot, n_bytes, rig->to_device);
    if (r == 0)
        r = cuda_event_record(rig->copied, rig->to_device);
    return r ? r : cuda_stream_wait(rig->compute, rig->copied);
}

int card_rig_out(struct card_rig *rig, size_t n_bytes)
{
    int r = cuda_event_record(rig->computed, rig->compute);
    if (r == 0)
        r = cuda_stream_wait(rig->from_device, rig->computed);
    if (r == 0)
        r = cuda_copy_from_device(rig->slot, rig->device_slot, n_bytes, rig->from_device);
    return r ? r : cuda_event_record(rig->back, rig->from_device);
}

int card_rig_tile(struct card_rig *rig, size_t n_bytes, char add)
{
    int r = card_rig_in(rig, n_bytes);
    if (r == 0)
        r = card_rig_launch(rig, rig->compute, n_bytes, add);
    if (r == 0)
        r = card_rig_out(rig, n_bytes);
    return r ? r : cuda_event_wait(rig->back);
}

static void read_all(int fd, char *text, size_t room)
{
    size_t used = 0;
    ssize_t n;
    char rest[256];
    while ((n = read(fd, used + 1 < room ? text + used : rest,
                     used + 1 < room ? room - 1 - used : sizeof rest)) > 0)
        if (used + 1 < room)
            used += (size_t)n;
    text[used] = '\0';
}

void dies_saying(const char *words, void (*function)(void))
{
    int ends[2], status = 0;
    char text[8192];
    cr_assert(eq(int, pipe(ends), 0));
    const pid_t child = fork();
    cr_assert(ge(int, child, 0));
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        function();
        _exit(0);
    }
    close(ends[1]);
    read_all(ends[0], text, sizeof text);
    close(ends[0]);
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_assert(ne(int, status, 0), "lived, and said: %s", text);
    cr_assert(ne(ptr, strstr(text, words), NULL), "died, but said: %s", text);
}
