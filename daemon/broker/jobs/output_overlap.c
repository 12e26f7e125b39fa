/* Do an output's bytes meet another argument's? Pure code; the broker asks before it admits a job.
 *
 * Two arrays are compared by identity (device and inode), then by their bytes (proto/overlap.h).
 * That test is sound, not complete: layouts that it cannot tell apart are refused.
 *
 * In place is only the same mapping from index to byte: then a grain reads what it will overwrite
 * before it does, and touches nothing that another grain reads. A memfd that was attached twice is
 * at two addresses: in place is only through one of its regions.
 */
#include "daemon/broker/jobs/output_overlap.h"
#include "kernels/neighbours.h"
#include "proto/overlap.h"
#include "proto/util.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct placed { /* an array at its place in an object */
    const struct array *array;
    const struct overlap_identity *identity;
    const char *name;
    int64_t offset, low, high; /* of element 0; the bytes touched are [low, high) of the object */
};

/* True when it has a place that can meet others'. */
static bool is_placed(const struct array *array, const struct overlap_identity *identity)
{
    bool is_region = array->at.kind == LOCATION_REGION;
    bool is_file = array->at.kind == LOCATION_FILE && !array->at.file.is_grid;

    return identity->has_identity && (is_region || is_file) && array_n_elements(array) != 0;
}

static int place(const struct array *array, const struct overlap_identity *identity,
                 const char *name, struct placed *ret, struct gad_error *error)
{
    bool is_region = array->at.kind == LOCATION_REGION;
    uint64_t offset = is_region ? array->at.region.offset_bytes : array->at.file.offset_bytes;
    int64_t low, high;

    array_extent(array, &low, &high);
    *ret = (struct placed){.array = array, .identity = identity, .name = name};
    if (offset > INT64_MAX || add_overflows_i64((int64_t)offset, low, &ret->low) ||
        add_overflows_i64((int64_t)offset, high, &ret->high) || ret->low < 0) {
        error_set(error, GAD_BAD_EXTENT, name,
                  "'%s' reaches from byte %" PRId64 " to %" PRId64 " around offset %" PRIu64
                  ", outside of any object",
                  name, low, high, offset);
        error_found(error, "offset %" PRIu64, offset);
        return GAD_BAD_EXTENT;
    }
    ret->offset = (int64_t)offset;
    return 0;
}

static bool is_same_object(const struct overlap_identity *a, const struct overlap_identity *b)
{
    return a->has_identity && b->has_identity && a->device == b->device && a->inode == b->inode;
}

static bool is_same_mapping(const struct placed *a, const struct placed *b)
{
    return array_is_same_mapping(a->array, a->offset, b->array, b->offset);
}

/* The engine orders reads and writes by address, so it must see the bytes at one. Files are not
 * mapped: what is read of them is a copy. */
static bool is_mapped_twice(const struct placed *a, const struct placed *b)
{
    const struct array *x = a->array, *y = b->array;
    return x->at.kind == LOCATION_REGION && y->at.kind == LOCATION_REGION &&
           x->at.region.id != y->at.region.id;
}

static bool is_apart(const struct placed *a, const struct placed *b)
{
    return !is_same_object(a->identity, b->identity) ||
           array_is_apart(a->array, a->offset, b->array, b->offset);
}

#define WHO_SIZE 96

/* An output may have no name. Returns the buffer. */
static const char *who(const char *kind, const char *name, char buffer[WHO_SIZE])
{
    if (name[0] != '\0')
        snprintf(buffer, WHO_SIZE, "%s '%s'", kind, name);
    else
        snprintf(buffer, WHO_SIZE, "the %s", kind);
    return buffer;
}

static int refuse(struct gad_error *error, const struct placed *output, const char *other_kind,
                  const char *other_name, int64_t low, int64_t high)
{
    char own[WHO_SIZE], other[WHO_SIZE];
    bool may_be_same = strcmp(other_kind, "argument") == 0; /* in place */
    error_set(error, GAD_OVERLAPPING_OUTPUT, output->name,
              "%s (bytes %" PRId64 " to %" PRId64 ") overlaps %s (bytes %" PRId64 " to %" PRId64
              " of the same file or region)%s",
              who("output", output->name, own), output->low, output->high,
              who(other_kind, other_name, other), low, high,
              may_be_same ? " without being the same array" : "");
    error_expected(error, may_be_same
                              ? "bytes apart, or the same offset, shape, strides and item size"
                              : "bytes apart");
    error_found(error, "%" PRId64 " to %" PRId64 " and %" PRId64 " to %" PRId64, output->low,
                output->high, low, high);
    return GAD_OVERLAPPING_OUTPUT;
}

static int check_self(const struct request_output *output, struct gad_error *error)
{
    char own[WHO_SIZE];
    int axis;
    uint64_t covered;

    if (!array_covers_itself(&output->to, &axis, &covered))
        return 0;
    error_set(error, GAD_BAD_EXTENT, output->name,
              "%s overlaps itself: its stride along axis %d is %" PRId64
              " bytes, its elements there cover %" PRIu64,
              who("output", output->name, own), axis, output->to.strides[axis], covered);
    error_expected(error, "a stride of at least %" PRIu64 " bytes", covered);
    error_found(error, "%" PRId64 " bytes", output->to.strides[axis]);
    return GAD_BAD_EXTENT;
}

static int check_against_args(const struct job_request *request,
                              const struct overlap_identity *args, const struct placed *output,
                              bool *in_place, struct gad_error *error)
{
    for (unsigned i = 0; i < request->n_args; i++) {
        const struct request_arg *arg = &request->args[i];
        struct placed source;
        if (arg->is_scalar || !is_placed(&arg->array, &args[i]))
            continue;
        int r = place(&arg->array, &args[i], arg->name, &source, error);
        if (r)
            return r;
        if (!is_same_object(output->identity, source.identity))
            continue;
        bool is_same = is_same_mapping(output, &source),
             is_twice = is_mapped_twice(output, &source);
        if (is_same && !is_twice) {
            *in_place = true;
        } else if (!is_apart(output, &source)) {
            r = refuse(error, output, "argument", arg->name, source.low, source.high);
            if (is_same)
                error_expected(error, "the same region id for both");
            return r;
        }
    }
    return 0;
}

static int check_against_outputs(const struct job_request *request,
                                 const struct overlap_identity *outputs, unsigned n_before,
                                 const struct placed *output, struct gad_error *error)
{
    for (unsigned i = 0; i < n_before; i++) {
        const struct request_output *other = &request->outputs[i];
        struct placed placed;
        if (!other->has_to || !is_placed(&other->to, &outputs[i]))
            continue;
        int r = place(&other->to, &outputs[i], other->name, &placed, error);
        if (r)
            return r;
        if (!is_apart(output, &placed))
            return refuse(error, output, "output", other->name, placed.low, placed.high);
    }
    return 0;
}

int overlap_check(const struct job_request *request, const struct overlap_identity *args,
                  const struct overlap_identity *outputs, bool *ret_in_place,
                  struct gad_error *error)
{
    bool in_place = false;

    for (unsigned i = 0; i < request->n_outputs; i++) {
        const struct request_output *output = &request->outputs[i];
        struct placed placed;
        if (!output->has_to)
            continue;
        int r = check_self(output, error);
        if (r)
            return r;
        if (!is_placed(&output->to, &outputs[i]))
            continue;
        r = place(&output->to, &outputs[i], output->name, &placed, error);
        if (r == 0)
            r = check_against_args(request, args, &placed, &in_place, error);
        if (r == 0)
            r = check_against_outputs(request, outputs, i, &placed, error);
        if (r)
            return r;
    }
    *ret_in_place = in_place;
    return 0;
}

/* near: in places of which others may be written before. */
static bool is_read_by(const struct program *program, const struct pass *pass, unsigned arg,
                       bool near)
{
    for (uint64_t left = pass->inputs_used; left; left &= left - 1) {
        unsigned input = (unsigned)__builtin_ctzll(left);
        bool is_around = pass->repeats != 0 || neighbours_are(program, pass, input);
        if (program->inputs[input].arg == arg && (!near || is_around))
            return true;
    }
    return false;
}

/* Whether the output's first bytes are written before the argument is read for the last time. A
 * pass reads just before it writes, unless it reads what is near; but the operands of a product are
 * read again and again while
 * its result is written, and so may be what a walk by slabs has beside its matrix, until its sums
 * are stored at the end. */
static bool is_still_read(const struct program *program, unsigned output, unsigned arg)
{
    unsigned writing = program->outputs[output].pass, first = writing + 1;
    for (unsigned i = 0; i < program->n_products; i++)
        if (writing - program->products[i].first_pass == PRODUCT_RESULT)
            first = program->products[i].first_pass;
    for (unsigned i = 0; i < program->n_slabs; i++) {
        const struct program_slab *slab = &program->slabs[i];
        unsigned own = writing - slab->first_pass;
        if (writing >= slab->first_pass && own < slab->n_passes &&
            slab->pass_kinds[own] != SLAB_PASS_RESULT)
            first = slab->first_pass;
    }
    for (unsigned i = first; i < program->n_passes; i++)
        if (i != writing && is_read_by(program, &program->passes[i], arg, false))
            return true;
    return is_read_by(program, &program->passes[writing], arg, true);
}

static int refuse_still_read(struct gad_error *error, const struct program *program,
                             const char *output, const char *arg)
{
    char own[WHO_SIZE];
    error_set(error, GAD_OVERLAPPING_OUTPUT, output,
              "%s is written over argument '%s' before the %s it for the last time",
              who("output", output, own), arg,
              program->n_products + program->n_slabs > 0 ? "matrix product has read"
                                                         : "expression has read");
    error_expected(error, "another place for the output");
    return GAD_OVERLAPPING_OUTPUT;
}

int overlap_check_passes(const struct job_request *request, const struct program *program,
                         const struct overlap_identity *args,
                         const struct overlap_identity *outputs, struct gad_error *error)
{
    for (unsigned o = 0; o < request->n_outputs; o++) {
        const struct request_output *output = &request->outputs[o];
        struct placed placed, source;
        if (!output->has_to || !is_placed(&output->to, &outputs[o]))
            continue;
        int r = place(&output->to, &outputs[o], output->name, &placed, error);
        for (unsigned a = 0; r == 0 && a < request->n_args; a++) {
            const struct request_arg *arg = &request->args[a];
            if (arg->is_scalar || !is_placed(&arg->array, &args[a]) ||
                !is_same_object(&outputs[o], &args[a]))
                continue;
            r = place(&arg->array, &args[a], arg->name, &source, error);
            if (r != 0 || is_apart(&placed, &source) || !is_still_read(program, o, a))
                continue;
            r = refuse_still_read(error, program, output->name, arg->name);
        }
        if (r)
            return r;
    }
    return 0;
}
