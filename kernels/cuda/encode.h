/* A pass as the device's interpreter reads it: kernels/cuda/code.h. Pure code. */
#pragma once

#include "kernels/engine.h"
#include "kernels/cuda/code.h"
#include "kernels/program.h"

enum encode_what {
    ENCODE_INPUT,   /* index: of the input */
    ENCODE_NEAR,    /* of program->nears */
    ENCODE_WINDOW,  /* of program->windows */
    ENCODE_REDUCED, /* of an earlier pass's reduction */
    ENCODE_INDEX,   /* an axis, or OPERAND_INDEX_FLAT */
    ENCODE_STORE,   /* of program->stores */
    ENCODE_VALUE,   /* of one of program->reductions that reads it: stored, then read by a task */
    ENCODE_WEIGHT,  /* the same, of its weights */
    ENCODE_STATE,   /* of one of program->reductions, a scan: what came before the grain */
};

struct encode_place {
    uint8_t what, dtype;
    uint16_t index;
};

/* Numbers of places have 8 bits. Nears have what all others leave, which is always enough for
 * ENCODE_MAX_READ - ENCODE_MAX_OTHERS of them. */
#define ENCODE_NOT_THERE  UINT8_MAX
#define ENCODE_MAX_PLACES UINT8_MAX
#define ENCODE_MAX_READ   (ENCODE_MAX_PLACES - PASS_MAX_STORES - 2 * PASS_MAX_REDUCTIONS)
#define ENCODE_MAX_OTHERS                                                                          \
    (REQUEST_MAX_ARGS + PASS_MAX_RESULTS + ARRAY_MAX_NDIM + 1 + PROGRAM_MAX_WINDOWS)
_Static_assert(ENCODE_MAX_OTHERS <= ENCODE_MAX_READ, "every pass without nears fits");

/* What of a pass has a place in a grain's record, in this order: what is loaded, what tasks read
 * where it is and no instruction reads, outputs, values. The interpreter stores the last n_stored:
 * outputs and values, where the pass scans values alone. */
struct encode_places {
    unsigned n_loads, n_stored, n_places;
    unsigned n_values;   /* the last of those that are stored */
    bool reduces_axes;   /* some axes are kept: by the kernel for that */
    bool scans;          /* outputs are of scans */
    bool has_tasks;      /* for the kernels behind the interpreter */
    bool needs_position; /* the flat index is loaded for ARGMIN or ARGMAX */
    struct encode_place places[ENCODE_MAX_PLACES];
    /* Where they are in places; ENCODE_NOT_THERE. */
    uint8_t input[REQUEST_MAX_ARGS], reduced[PROGRAM_MAX_REDUCTIONS], axis[ARRAY_MAX_NDIM], flat;
    uint8_t near[PASS_MAX_NEARS]; /* of the pass's */
    uint8_t window[PROGRAM_MAX_WINDOWS];
    /* Of the pass's i-th reduction, if it is a task; weights, or a scan's states. */
    uint8_t source[PASS_MAX_REDUCTIONS], other[PASS_MAX_REDUCTIONS];
    uint8_t output[PASS_MAX_STORES]; /* the pass's i-th store */
    unsigned n_tables;
    uint16_t tables[PASS_MAX_RESULTS]; /* program->reductions */
};

/* Where the planes of a grain's node are that the device writes: of tasks. */
struct encode_nodes {
    uint32_t plane_bytes;                 /* of a plane that is not of counts */
    uint64_t n_bytes;                     /* 0 without tasks */
    uint64_t planes[PASS_MAX_REDUCTIONS]; /* of the pass's i-th reduction: the first */
};

/* encode_places.c: -EINVAL for a pass that reads near with so many offsets that there is no number
 * for each, and for a program that the compiler cannot have made. */
int encode_places_of(const struct program *program, const struct pass *pass,
                     struct encode_places *ret_places) GAD_MUST_CHECK;
/* Where an operand is that has a place of its own; ENCODE_NOT_THERE: it has none. */
uint8_t encode_place_of(const struct encode_places *places, const struct pass *pass,
                        const struct operand *operand);
/* Whether the pass's i-th reduction is done by a kernel behind the interpreter. */
bool encode_is_task(const struct encode_places *places, const struct reduction *reduction);
/* What is stored to a value's place. */
const struct operand *encode_value(const struct program *program, const struct encode_place *place);
/* Calls visit() for the operands that instructions, reductions and stores of a pass read. */
typedef int encode_visit_fn(void *context, const struct operand *operand);
int encode_visit_reading(const struct program *program, const struct pass *pass,
                         encode_visit_fn *visit, void *context) GAD_MUST_CHECK;

/* encode_tasks.c: of nodes of n_cells cells. */
void encode_nodes_init(struct encode_nodes *nodes, const struct program *program,
                       const struct pass *pass, const struct encode_places *places,
                       uint64_t n_cells);
/* How many tasks of each kind there are, into the header. Writes them; NULL: only counts. -EINVAL
 * as above. */
int encode_tasks(const struct program *program, const struct pass *pass,
                 const struct encode_places *places, const struct encode_nodes *nodes,
                 struct code_task *tasks, struct code_header *h) GAD_MUST_CHECK;
/* enum code_reduction. */
int encode_reduction_kind(const struct reduction *reduction, uint8_t *ret_kind) GAD_MUST_CHECK;

/* encode_windows.c: why the device does not make the window, for people; NULL: it does. */
const char *encode_no_window(const struct program *program, const struct program_window *window);
/* What a window is made of where it is an input, as it is or cast to the window's dtype; NULL: its
 * operand is made before. */
const struct operand *encode_window_operand(const struct program *program,
                                            const struct program_window *window);
enum code_window_kind encode_window_kind(const struct program_window *window);
/* How many numbers of kernels the windows have among the first n places. Writes them; NULL: only
 * counts. */
unsigned encode_weights(const struct program *program, const struct encode_places *places,
                        unsigned n_places, uint64_t *weights);

/* encode.c: writes cells, instructions, tasks and operands to `code`, which is the slot's
 * beginning; NULL: only counts. The header lacks what the grains decide: place and grain sizes,
 * results, nodes; and tables, for which there is room, have no values. reduced: results of earlier
 * passes' reductions; nodes: of the largest grain; both may be NULL where code is. -EINVAL as
 * above. */
int encode_pass(const struct program *program, const struct pass *pass,
                const struct encode_places *places, const struct engine_view *reduced,
                const struct encode_nodes *nodes, char *code, struct code_header *ret_header,
                uint64_t *ret_n_bytes) GAD_MUST_CHECK;
