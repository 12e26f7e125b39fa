/* Random boxes, and operands laid out at random in memory, for the kernel runners. */
#pragma once

#include "tests/unit/kernels/cpu/check/check.h"

struct shape {
    int ndim, order[3];
    int64_t count[3];
    size_t n;
};

struct laid { /* an operand in memory */
    char *arena;
    struct engine_view view;
    bool is_broadcast[3];
    int misalignment;
    size_t offset_bytes; /* of the first element in the arena */
    size_t n_bytes;      /* of the arena, with a margin on both sides */
};

#define LAID_MARGIN_BYTES 64

/* Of one to three axes, most often odd lengths, and an order of walking. */
void shape_draw(struct shape *s, unsigned trial, size_t max_elements);
/* Native, contiguous, aligned, along one axis. */
void shape_flat(struct shape *s, size_t n);
void laid_flat(struct laid *l, const struct shape *s, enum dtype dtype);
/* Which axes it broadcasts (not outputs), the order of its axes, gaps, signs, misalignment, byte
 * order. The arena is as before. */
void laid_draw(struct laid *l, const struct shape *s, enum dtype dtype, bool is_output);
void laid_place(struct laid *l, char *arena);

char *laid_item(const struct laid *l, const struct shape *s, size_t element);
void laid_copy_item(void *dst, const void *src, size_t n_bytes, bool is_swapped);
/* `flat`, contiguous, into the operand; where it is broadcast the last one counts, in `flat` too.
 */
void laid_store(const struct laid *l, const struct shape *s, enum dtype dtype, char *flat);

void shape_print(const struct shape *s);
void laid_print(const char *what, const struct laid *l, const struct shape *s);
