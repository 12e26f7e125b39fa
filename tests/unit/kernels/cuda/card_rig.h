/* A device with three streams and a slot, on the test double: what tests of the runtime start from.
 */
#pragma once

#include "tests/double/double.h"

#define RIG_BYTES ((size_t)64 * 1024)

struct card_rig {
    struct cuda_device device;
    cuda_stream to_device, compute, from_device;
    cuda_event copied, computed, back;
    void *device_slot;
    char *slot; /* pinned */
};

/* settings: of GPUARRAYD_DOUBLE; before the first call of the runtime in the process. */
void card_rig_set(const char *settings);
void card_rig_open(struct card_rig *rig, int index);
void card_rig_close(struct card_rig *rig);
/* A tile's parts; they wait for nothing. The kernel adds `add` to each of the first n_bytes bytes.
 */
int card_rig_in(struct card_rig *rig, size_t n_bytes);
int card_rig_launch(struct card_rig *rig, cuda_stream stream, size_t n_bytes, char add);
int card_rig_out(struct card_rig *rig, size_t n_bytes);
/* All three in order, and waits for the end. An error may be met at any step. */
int card_rig_tile(struct card_rig *rig, size_t n_bytes, char add);

/* Ends the process where a call that cannot fail has failed. */
void card_rig_must(int result, const char *what);
#define MUST(call) card_rig_must(call, #call)

/* Runs `function` in a child, which must be killed or fail, and say `words` on stderr. */
void dies_saying(const char *words, void (*function)(void));
