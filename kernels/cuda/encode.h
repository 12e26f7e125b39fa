/* A pass as the device's interpreter reads it: kernels/cuda/code.h. Pure code. */
#pragma once

#include "kernels/cpu/engine.h"
#include "kernels/cuda/code.h"
#include "kernels/program.h"

enum encode_what {
    ENCODE_INPUT,   /* index: of the input */
    ENCODE_REDUCED, /* of an earlier pass's reduction */
    ENCODE_INDEX,   /* an axis, or OPERAND_INDEX_FLAT */
    ENCODE_STORE,   /* of program->stores */
    ENCODE_VALUE,   /* of one of program->reductions that reads it: stored, then reduced */
};

struct encode_place {
    uint8_t what, dtype;
    uint16_t index;
};

#define ENCODE_MAX_READ   (REQUEST_MAX_ARGS + PROGRAM_MAX_REDUCTIONS + ARRAY_MAX_NDIM + 1)
#define ENCODE_MAX_PLACES (ENCODE_MAX_READ + REQUEST_MAX_OUTPUTS + PROGRAM_MAX_REDUCTIONS)
#define ENCODE_NOT_THERE  UINT8_MAX

/* What of a pass has a place in a grain's record, in this order: what is loaded, what is reduced
 * where it is and by no instruction read, what is stored. */
struct encode_places {
    unsigned n_loads, n_stored, n_places;
    unsigned n_values;   /* the last of those that are stored */
    bool reduces_axes;   /* some axes are kept: by the kernel for that */
    bool needs_position; /* the flat index is loaded for ARGMIN or ARGMAX */
    struct encode_place places[ENCODE_MAX_PLACES];
    /* Where they are in places; ENCODE_NOT_THERE. */
    uint8_t input[REQUEST_MAX_ARGS], reduced[PROGRAM_MAX_REDUCTIONS], axis[ARRAY_MAX_NDIM], flat;
    uint8_t source[PROGRAM_MAX_REDUCTIONS]; /* of the pass's i-th reduction along axes */
};

/* encode_places.c: -EINVAL for a program that the compiler cannot have made. */
int encode_places_of(const struct program *program, unsigned pass,
                     struct encode_places *ret_places) GAD_MUST_CHECK;
/* Whether a reduction's result is one element, which the code holds. */
bool encode_is_uniform(const struct program *program, unsigned reduction);
/* Calls visit() for the operands that instructions, reductions and stores of a pass read. */
typedef int encode_visit_fn(void *context, const struct operand *operand);
int encode_visit_reading(const struct program *program, const struct pass *pass,
                         encode_visit_fn *visit, void *context) GAD_MUST_CHECK;

/* encode.c: writes cells, instructions and operands to `code`, which is the slot's beginning; NULL:
 * only counts. The header lacks what the grains decide: place and grain sizes, results, nodes.
 * reduced: results of earlier passes' reductions, may be NULL where code is. -EINVAL as above. */
int encode_pass(const struct program *program, unsigned pass, const struct encode_places *places,
                const struct cpu_view *reduced, char *code, struct code_header *ret_header,
                uint64_t *ret_n_bytes) GAD_MUST_CHECK;
