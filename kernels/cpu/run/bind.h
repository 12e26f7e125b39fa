/* What binding and layout share: the books kept while a pass is bound to a box. */
#pragma once

#include "kernels/cpu/run/run.h"

#define NO_SLOT             UINT16_MAX
#define NEVER               UINT16_MAX
#define BIND_MAX_INPUTS     REQUEST_MAX_ARGS
#define BIND_MAX_STREAMS    (BIND_MAX_INPUTS + PASS_MAX_NEARS + PASS_MAX_RESULTS + PROGRAM_MAX_WINDOWS)
#define BIND_MAX_CELL_BYTES (256u << 10) /* of what reductions keep beside a node */
#define BIND_MAX_QR_BYTES   PROGRAM_QR_BYTES
#define BIND_INDEX_FLAT     ARRAY_MAX_NDIM /* in index_slot */
#define BIND_MAX_DRAWS      32             /* of a pass; more are as any other instruction */
#define BIND_PERIOD_FEW     32 /* longest period that is kept; more where a pass has few values */
#define BIND_PERIOD_MANY    512
#define BIND_FEW_VALUES     16

struct binding {
    struct run *run;
    char *scratch;
    size_t used_bytes;
    size_t register_bytes; /* of one item */
    uint16_t register_slot[PROGRAM_MAX_REGISTERS], spare_slot;
    uint16_t last_definition[PROGRAM_MAX_REGISTERS], last_read[PROGRAM_MAX_REGISTERS];
    uint16_t input_slot[BIND_MAX_INPUTS], input_last_use[BIND_MAX_INPUTS];
    uint16_t near_slot[PASS_MAX_NEARS], near_last_use[PASS_MAX_NEARS]; /* of the pass's */
    uint16_t const_slot[PROGRAM_MAX_CONSTS], reduced_slot[PROGRAM_MAX_REDUCTIONS];
    uint16_t window_slot[PROGRAM_MAX_WINDOWS];
    uint16_t table_slot[PROGRAM_MAX_REDUCTIONS]; /* its elements'; the next one: its length's */
    uint16_t index_slot[ARRAY_MAX_NDIM + 1];     /* the last one: OPERAND_INDEX_FLAT */
    unsigned n_values;     /* inputs, consts and reduced values that are used */
    size_t counter_room;   /* bytes for what BINCOUNTs have beside a node */
    size_t qr_bytes;       /* of QR_Rs' rows, so far */
    uint16_t *loop_places; /* what loops share; */
    size_t loop_at;        /* and their buffers, from there on in the scratch */
    bool is_valid;
};

/* The next bytes of the scratch, 64-byte aligned. */
void *layout_take(struct binding *b, size_t n_bytes);

/* The strip's length, from what is left of the scratch. */
void layout_choose_strip(struct binding *b);

/* Gives every slot its strip and fills those that are the same for all strips. */
void layout_fill(struct binding *b);

/* Where an operand's strip is when the instruction at hand is bound. */
uint16_t bind_slot_of(const struct binding *b, const struct operand *operand);

/* Whether the slot holds the same element everywhere: a number's. */
bool bind_is_number(const struct binding *b, uint16_t slot);

/* loop.c: the pass's loops, false where there can be none such; the last instruction of the loop
 * that has this one, or NEVER; what loops have of the scratch for each element; when all other
 * strips are there; when a loop's instructions are bound. */
bool loop_init(struct binding *b);
unsigned loop_end(const struct run *run, unsigned insn);
size_t loop_bytes_per_element(const struct binding *b);
void loop_begin_binding(struct binding *b);
void loop_bind(struct binding *b, struct bound_loop *loop, const struct program_loop *of);

/* draws.c: random numbers; the run has room for BIND_MAX_DRAWS. */
void bind_draws(struct binding *b);

/* chains.c: joins instructions; behind it there are fewer. Whether all may be in one. */
void bind_chains(struct binding *b);
bool chains_are_all(const struct run *run);

/* bind_reductions.c: reductions and BINCOUNTs; or scans, whose states are among `reduced`. */
int bind_reductions(struct binding *b, const struct reduce_layout *layout,
                    void *node) GAD_MUST_CHECK;
int bind_scans(struct binding *b, const struct engine_view *reduced) GAD_MUST_CHECK;
/* Where tables are, and how long they are. */
void bind_tables(struct binding *b, const struct engine_view *reduced);

static inline const struct reduction *bind_reduction_at(const struct run *run, unsigned i)
{
    return &run->program->reductions[run->pass->first_reduction + i];
}
