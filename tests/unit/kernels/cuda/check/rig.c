/* Tiles to the device and back, for the runner of the device's kernels.
 *
 * The two copies of a tile are those that the worker makes: from offset 0 what
 * cuda_tile_to_device_bytes() says, and what cuda_tile_from_device() says. Before, the device's
 * slot is filled with one byte, so that what a kernel reads beyond what was copied is wrong, and
 * what it writes beside its outputs is seen (the test double fills what a kernel may write with a
 * byte of its own); after, all of it comes back into memory of its own. A rig has one stream and
 * one slot. Unfilled, each tile has a slot that nobody has written, for NVIDIA's initcheck, to
 * which memory that was filled once is as good as any.
 */
#include "tests/unit/kernels/cuda/check/checkcuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rig_is_unfilled;

void rig_must(int error, const char *what)
{
    if (!error)
        return;
    printf("FAILED: %s: %s (%s)\n", what, cuda_error_name(error), cuda_error_text(error));
    exit(1);
}

int rig_open(struct rig *rig, int index)
{
    int r, n = 0;
    memset(rig, 0, sizeof(*rig));
    r = cuda_device_count(&n);
    if (!r)
        r = cuda_device_open(index, &rig->device);
    if (r) {
        fprintf(stderr, "device %d of %d: %s (%s)\n", index, n, cuda_error_name(r),
                cuda_error_text(r));
        return r;
    }
    void *memory[3], *device;
    for (int i = 0; i < 3; i++)
        rig_must(cuda_host_alloc(RIG_SLOT_BYTES, &memory[i]), "pinned memory");
    rig_must(cuda_malloc(RIG_SLOT_BYTES, &device), "device memory");
    rig->slot = memory[0];
    rig->fill = memory[1];
    rig->back = memory[2];
    rig->device_slot = device;
    memset(rig->fill, RIG_FILL_BYTE, RIG_SLOT_BYTES);
    rig_must(cuda_stream_new(CUDA_USUAL, &rig->stream), "a stream");
    rig_must(cuda_event_new(true, &rig->begin), "an event");
    rig_must(cuda_event_new(true, &rig->end), "an event");
    rig_must(cuda_interpreter_warm_up(rig->device_slot, rig->stream), "warming up");
    rig_must(cuda_event_record(rig->end, rig->stream), "an event");
    rig_must(cuda_event_wait(rig->end), "warming up");
    return 0;
}

void rig_close(struct rig *rig)
{
    cuda_event_free(rig->begin);
    cuda_event_free(rig->end);
    cuda_stream_free(rig->stream);
    cuda_free(rig->device_slot);
    cuda_host_free(rig->slot);
    cuda_host_free(rig->fill);
    cuda_host_free(rig->back);
}

static void new_slot(struct rig *rig)
{
    void *device;
    cuda_free(rig->device_slot);
    rig_must(cuda_malloc(RIG_SLOT_BYTES, &device), "device memory");
    rig->device_slot = device;
}

void rig_run(struct rig *rig, const struct cuda_tile *tile)
{
    uint64_t offset, n_bytes, to_bytes = cuda_tile_to_device_bytes(tile);
    cuda_tile_from_device(tile, &offset, &n_bytes);
    uint64_t all_bytes = offset + n_bytes > to_bytes ? offset + n_bytes : to_bytes;
    if (rig_is_unfilled)
        new_slot(rig);
    else
        rig_must(cuda_copy_to_device(rig->device_slot, rig->fill, all_bytes, rig->stream),
                 "filling");
    rig_must(cuda_copy_to_device(rig->device_slot, rig->slot, to_bytes, rig->stream), "copying");
    rig_must(cuda_tile_launch(tile, rig->device_slot, rig->stream), "launching");
    if (n_bytes)
        rig_must(cuda_copy_from_device(rig->slot + offset, rig->device_slot + offset, n_bytes,
                                       rig->stream),
                 "copying back");
    rig_must(cuda_copy_from_device(rig->back, rig->device_slot, all_bytes, rig->stream),
             "copying back");
    rig_must(cuda_event_record(rig->end, rig->stream), "an event");
    rig_must(cuda_event_wait(rig->end), "computing");
}

bool rig_is_input_whole(const struct rig *rig, const struct cuda_tile *tile)
{
    uint64_t offset, n_bytes, to_bytes = cuda_tile_to_device_bytes(tile);
    cuda_tile_from_device(tile, &offset, &n_bytes);
    return memcmp(rig->slot, rig->back, n_bytes && offset < to_bytes ? offset : to_bytes) == 0;
}

void grain_space(struct built *b)
{
    struct pass *pass = &b->program.passes[b->program.n_passes - 1];
    pass->ndim = 3;
    for (int i = 0; i < pass->ndim; i++)
        pass->shape[i] = 1 << 16;
}

void grain_draw(struct laid *l, const struct shape *s, enum dtype dtype, bool is_output)
{
    laid_draw(l, s, dtype, is_output);
    l->offset_bytes -= (size_t)l->misalignment;
    l->misalignment = 0;
}

bool grain_reads(const struct program *program, unsigned pass, unsigned reduction)
{
    const struct reduction *r = &program->reductions[reduction];
    bool is_state = r->pass == pass && (r->op == OP_CUMSUM || r->op == OP_CUMPROD);
    return reduction < GRAIN_MAX_REDUCED &&
           (is_state || (r->pass < pass && !program_is_uniform(program, reduction)));
}

static uint64_t n_cells_of(const struct grain *g, const struct pass *pass)
{
    uint64_t n = 1;
    for (int i = 0; i < g->shape.ndim; i++)
        n *= pass->reduced_axes >> i & 1 ? 1 : (uint64_t)g->shape.count[i];
    return n;
}

struct engine_room grain_room(const struct grain *g, const struct program *program, unsigned pass)
{
    struct engine_room room = {.n_elements = g->shape.n,
                               .n_cells = n_cells_of(g, &program->passes[pass])};
    for (unsigned i = 0; i < program->n_inputs; i++)
        room.input_bytes += RIG_ALIGNED(g->inputs[i].n_bytes);
    for (unsigned i = 0; i < program->n_reductions; i++)
        if (grain_reads(program, pass, i))
            room.input_bytes += RIG_ALIGNED(g->reduced[i].n_bytes);
    for (unsigned i = 0; i < program->n_outputs; i++)
        room.output_bytes += RIG_ALIGNED(g->outputs[i].n_bytes);
    return room;
}

void grain_layout(const struct grain *g, const struct cuda_tile *tile,
                  struct reduce_layout *ret_layout)
{
    reduce_layout_init(ret_layout, tile->program, tile->pass,
                       n_cells_of(g, &tile->program->passes[tile->pass]));
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void rig_begin(struct rig *rig, struct cuda_tile *tile, const struct program *program,
               unsigned pass, const struct engine_view *reduced, const struct grain *grains,
               unsigned n_grains)
{
    struct engine_room room = {0};
    for (unsigned i = 0; i < n_grains; i++) {
        struct engine_room one = grain_room(&grains[i], program, pass);
        room.input_bytes = larger(room.input_bytes, one.input_bytes);
        room.output_bytes = larger(room.output_bytes, one.output_bytes);
        room.n_elements = larger(room.n_elements, one.n_elements);
        room.n_cells = larger(room.n_cells, one.n_cells);
    }
    int r =
        cuda_tile_begin(tile, program, pass, reduced, n_grains, &room, rig->slot, RIG_SLOT_BYTES);
    if (!r)
        return;
    printf("FAILED: no room in a slot of %u bytes for %u grains of %llu + %llu bytes (%s); needed "
           "were %llu\n",
           RIG_SLOT_BYTES, n_grains, (unsigned long long)room.input_bytes,
           (unsigned long long)room.output_bytes, strerror(-r),
           (unsigned long long)cuda_tile_need_bytes(program, pass, n_grains, &room));
    exit(1);
}

void grain_place(struct grain *g, struct cuda_tile *tile)
{
    for (unsigned i = 0; i < tile->program->n_inputs; i++)
        laid_place(&g->inputs[i], cuda_tile_place_input(tile, g->inputs[i].n_bytes));
    for (unsigned i = 0; i < tile->program->n_reductions; i++)
        if (grain_reads(tile->program, tile->pass, i))
            laid_place(&g->reduced[i], cuda_tile_place_input(tile, g->reduced[i].n_bytes));
    for (unsigned i = 0; i < tile->program->n_outputs; i++)
        laid_place(&g->outputs[i], cuda_tile_place_output(tile, g->outputs[i].n_bytes));
}

void grain_add(const struct grain *g, struct cuda_tile *tile)
{
    struct engine_view inputs[REQUEST_MAX_ARGS], outputs[REQUEST_MAX_OUTPUTS];
    struct engine_view reduced[GRAIN_MAX_REDUCED];
    struct engine_box box = {.ndim = g->shape.ndim,
                             .count = g->shape.count,
                             .axis_order = g->shape.order,
                             .start = g->start};
    for (unsigned i = 0; i < tile->program->n_inputs; i++)
        inputs[i] = g->inputs[i].view;
    for (unsigned i = 0; i < tile->program->n_outputs; i++)
        outputs[i] = g->outputs[i].view;
    for (unsigned i = 0; i < GRAIN_MAX_REDUCED; i++)
        reduced[i] = g->reduced[i].view;
    cuda_tile_add(tile, &box, inputs, outputs, reduced);
}

bool grain_is_margin_whole(const struct grain *g, unsigned output, enum dtype dtype)
{
    const struct laid *l = &g->outputs[output];
    if (rig_is_unfilled)
        return true; /* it may have been anything */
    char untouched = l->offset_bytes ? l->arena[0] : RIG_FILL_BYTE;
    if (untouched != RIG_FILL_BYTE && untouched != (char)RIG_DOUBLES_BYTE)
        return false;
    for (size_t i = 0; i < g->shape.n; i++)
        memset(laid_item(l, &g->shape, i), untouched, dtype_size(dtype));
    for (size_t i = 0; i < l->n_bytes; i++)
        if (l->arena[i] != untouched)
            return false;
    return true;
}
