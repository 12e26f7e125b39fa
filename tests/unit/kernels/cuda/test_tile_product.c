/* Tiles of a matrix product's passes: operands go into panels that lie outside of the slot, before
 * or behind it, and C is read from there; neither is copied. The kernel runs on the host, in the
 * slot itself.
 *
 *     slab: | panel | slot | C, or a panel |
 */
#include "kernels/cuda/tile_parts.h"

#include "tests/unit/kernels/cpu/builder.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

#define SLOT_BYTES  (4u * 1024 * 1024)
#define CARRY_BYTES (1024u * 1024)
#define ROWS        70
#define DEPTH       50
#define LINE_BYTES  512
#define FILLER      ((char)0xee)

static struct built built;
static char *slab, *before, *slot, *behind;
static struct cuda_tile tile;

static void begin(void)
{
    slab = aligned_alloc(ENGINE_SLOT_ALIGN, SLOT_BYTES + 2 * CARRY_BYTES);
    cr_assert(ne(ptr, slab, NULL));
    memset(slab, FILLER, SLOT_BYTES + 2 * CARRY_BYTES);
    before = slab;
    slot = slab + CARRY_BYTES;
    behind = slot + SLOT_BYTES;
    built_init(&built);
}

static void end(void)
{
    free(slab);
}

TestSuite(tile_product, .init = begin, .fini = end);

/* Three passes over ROWS x DEPTH elements each; `src` is what the pass in hand stores. */
static void make_passes(enum product_pass pass, enum dtype dtype, struct operand src)
{
    struct program *p = &built.program;
    struct pass in_hand = p->passes[0];
    const int64_t shapes[][2] = {{ROWS, DEPTH}, {DEPTH, ROWS}, {ROWS, ROWS}};
    p->n_passes = PRODUCT_N_PASSES;
    p->n_outputs = 1;
    p->n_all_outputs = PRODUCT_N_PASSES;
    p->n_stores = PRODUCT_N_PASSES;
    p->n_reductions = 1;
    p->reductions[0] =
        (struct reduction){.op = OP_MATMUL, .result = (uint8_t)dtype, .pass = PRODUCT_RESULT};
    static struct program_product product;
    product = (struct program_product){.first_output = 1, .dtype = dtype};
    p->n_products = 1;
    p->products = &product;
    for (unsigned i = 0; i < PRODUCT_N_PASSES; i++) {
        unsigned output = i < PRODUCT_RESULT ? 1 + i : 0;
        p->passes[i] = i == pass ? in_hand : (struct pass){.scanned_axis = -1};
        p->passes[i].ndim = 2;
        memcpy(p->passes[i].shape, shapes[i], sizeof(shapes[i]));
        p->passes[i].first_store = (uint16_t)i;
        p->passes[i].n_stores = 1;
        p->stores[i].output = (uint16_t)output;
        built.outputs[output].dtype = i < PRODUCT_RESULT ? dtype : (enum dtype)src.dtype;
    }
    p->passes[PRODUCT_RESULT].reduced_used = 1;
    p->stores[pass].src = src;
}

static void begin_tile(enum product_pass pass, uint64_t input_bytes, uint64_t output_bytes)
{
    struct engine_room room = {input_bytes + ENGINE_SLOT_ALIGN, output_bytes, ROWS * ROWS, 1};
    uint64_t need = cuda_tile_need_bytes(&built.program, pass, 2, &room);
    cr_assert(le(u64, need, SLOT_BYTES));
    room.output_bytes += ENGINE_SLOT_ALIGN;
    cr_assert(
        eq(i32, cuda_tile_begin(&tile, &built.program, pass, NULL, 2, &room, slot, SLOT_BYTES), 0));
}

static void run(void)
{
    struct interpreter_launch launch = cuda_tile_describe(&tile);
    struct engine_warnings warnings = {0};
    cr_assert(eq(i32, cuda_interpreter_run_on_host(&launch, slot), 0));
    for (unsigned i = 0; i < tile.n_grains; i++)
        cr_assert(eq(i32, cuda_tile_result(&tile, i, NULL, NULL, &warnings), 0));
}

/* n_rows of the pass's rows from first_row on, of n_columns columns. */
static void add_grain(int64_t first_row, int64_t n_rows, int64_t n_columns,
                      const struct engine_view *input, const struct engine_view *outputs,
                      const struct engine_view *reduced)
{
    static const int order[] = {0, 1};
    const int64_t count[] = {n_rows, n_columns}, start[] = {first_row, 0};
    struct engine_box box = {.ndim = 2, .count = count, .axis_order = order, .start = start};
    cuda_tile_add(&tile, &box, input, outputs, reduced);
}

/* The operand lies in Fortran order: element (i, j) is i - 1000 * j. */
static void add_operand(int64_t first_row, int64_t n_rows, char *panel)
{
    int32_t *items = cuda_tile_place_input(&tile, (uint64_t)n_rows * DEPTH * sizeof(*items));
    for (int64_t j = 0; j < DEPTH; j++)
        for (int64_t i = 0; i < n_rows; i++)
            items[j * n_rows + i] = (int32_t)(first_row + i - 1000 * j);
    struct engine_view input = {.base = items, .strides = {4, n_rows * 4}};
    struct engine_view outputs[3] = {
        [1] = {.base = panel + first_row * LINE_BYTES, .strides = {LINE_BYTES, 8}}};
    add_grain(first_row, n_rows, DEPTH, &input, outputs, NULL);
}

/* float64, twice the operand. Between the lines there is what was there. */
static void check_panel(const char *panel)
{
    for (int64_t i = 0; i < ROWS; i++) {
        const double *line = (const double *)(panel + i * LINE_BYTES);
        for (int64_t j = 0; j < DEPTH; j++)
            cr_assert(eq(dbl, line[j], 2.0 * (double)(i - 1000 * j)));
        for (int64_t j = DEPTH * 8; j < LINE_BYTES; j++)
            cr_assert(eq(chr, panel[i * LINE_BYTES + j], FILLER));
    }
}

static void check_operand(char *panel)
{
    struct operand x = built_input(&built, DTYPE_INT32), none = {0};
    struct operand wide = built_insn(&built, OP_CAST, DTYPE_INT32, DTYPE_FLOAT64, 0, x, none, none);
    struct operand both =
        built_insn(&built, OP_ADD, DTYPE_FLOAT64, DTYPE_FLOAT64, 0, wide, wide, none);
    make_passes(PRODUCT_LEFT, DTYPE_FLOAT64, both);
    begin_tile(PRODUCT_LEFT, ROWS * DEPTH * 4, 0);
    add_operand(0, 41, panel);
    add_operand(41, ROWS - 41, panel);
    struct interpreter_launch launch = cuda_tile_describe(&tile);
    uint64_t offset, n_bytes;
    cuda_tile_from_device(&tile, &offset, &n_bytes);
    cr_assert(eq(u64, n_bytes, 0));
    cr_assert(eq(u64, launch.write_bytes, 0));
    cr_assert(eq(i64, launch.outside_read.end, launch.outside_read.begin));
    cr_assert(eq(i64, launch.outside_written.begin, panel - slot));
    cr_assert(
        eq(i64, launch.outside_written.end, panel - slot + (ROWS - 1) * LINE_BYTES + DEPTH * 8));
    run();
    check_panel(panel);
}

Test(tile_product, operands_go_into_a_panel_behind_the_slot)
{
    check_operand(behind + 1024);
    cr_assert(eq(chr, behind[1023], FILLER));
}

Test(tile_product, operands_go_into_a_panel_before_the_slot)
{
    check_operand(before + 512);
    cr_assert(eq(chr, before[511], FILLER));
}

Test(tile_product, lines_that_are_not_aligned_are_not_moved_in_pieces_of_16_bytes)
{
    make_passes(PRODUCT_LEFT, DTYPE_FLOAT64, built_input(&built, DTYPE_FLOAT64));
    begin_tile(PRODUCT_LEFT, 2 * DEPTH * 8 + ENGINE_SLOT_ALIGN, 0);
    for (int64_t g = 0; g < 2; g++) {
        double *items = cuda_tile_place_input(&tile, DEPTH * sizeof(*items));
        for (int j = 0; j < DEPTH; j++)
            items[j] = (double)(g * 100 + j);
        struct engine_view input = {.base = items, .strides = {DEPTH * 8, 8}};
        struct engine_view outputs[3] = {
            [1] = {.base = behind + g * (LINE_BYTES + 8), .strides = {LINE_BYTES, 8}}};
        add_grain(g, 1, DEPTH, &input, outputs, NULL);
        const struct code_grain *grain = tile_grain_at(&tile, (unsigned)g);
        const struct code_place *places = (const struct code_place *)(grain + 1);
        const struct code_place *panel =
            (const struct code_place *)((const char *)places + tile.header.place_bytes);
        cr_assert(eq(i64, panel->offset, SLOT_BYTES + g * (LINE_BYTES + 8)));
        cr_assert(eq(u8, panel->kind, g ? CODE_PLACE_STRIDED : CODE_PLACE_LINEAR));
    }
    run();
    for (int g = 0; g < 2; g++)
        for (int j = 0; j < DEPTH; j++)
            cr_assert(eq(dbl, ((double *)(behind + g * (LINE_BYTES + 8)))[j], g * 100 + j));
}

Test(tile_product, bools_in_panels_are_0_and_1)
{
    make_passes(PRODUCT_RIGHT, DTYPE_BOOL, built_input(&built, DTYPE_BOOL));
    begin_tile(PRODUCT_RIGHT, DEPTH * ROWS, 0);
    unsigned char *items = cuda_tile_place_input(&tile, DEPTH * ROWS);
    for (int i = 0; i < DEPTH * ROWS; i++)
        items[i] = (unsigned char)(i % 3 ? i : 0);
    /* Along the depth fastest: lines of columns. */
    struct engine_view input = {.base = items, .strides = {ROWS, 1}};
    struct engine_view outputs[3] = {[2] = {.base = behind, .strides = {1, LINE_BYTES}}};
    add_grain(0, DEPTH, ROWS, &input, outputs, NULL);
    run();
    for (int i = 0; i < DEPTH; i++)
        for (int j = 0; j < ROWS; j++)
            cr_assert(eq(i32, behind[j * LINE_BYTES + i], items[i * ROWS + j] != 0));
}

static void check_result(struct engine_view c, float (*wanted)(int64_t i, int64_t j))
{
    struct operand from = {OPERAND_REDUCED, DTYPE_FLOAT64, 0}, none = {0};
    struct operand half = built_const(&built, DTYPE_FLOAT64, (union scalar){.f64 = 0.5});
    struct operand sum =
        built_insn(&built, OP_ADD, DTYPE_FLOAT64, DTYPE_FLOAT64, 0, from, half, none);
    struct operand narrow =
        built_insn(&built, OP_CAST, DTYPE_FLOAT64, DTYPE_FLOAT32, 0, sum, none, none);
    make_passes(PRODUCT_RESULT, DTYPE_FLOAT64, narrow);
    begin_tile(PRODUCT_RESULT, 0, ROWS * ROWS * 4);
    float *output = cuda_tile_place_output(&tile, ROWS * ROWS * 4);
    struct engine_view outputs[3] = {{.base = output, .strides = {ROWS * 4, 4}}};
    add_grain(0, ROWS, ROWS, NULL, outputs, &c);
    struct interpreter_launch launch = cuda_tile_describe(&tile);
    cr_assert(eq(i64, launch.outside_read.begin, behind - slot));
    cr_assert(eq(i64, launch.outside_read.end, behind - slot + (ROWS - 1) * 1024 + ROWS * 8));
    cr_assert(eq(i64, launch.outside_written.end, launch.outside_written.begin));
    cr_assert(lt(u64, cuda_tile_to_device_bytes(&tile), (uint64_t)((char *)output - slot)));
    run();
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < ROWS; j++)
            cr_assert(eq(flt, output[i * ROWS + j], wanted(i, j)));
}

static void fill_c(void)
{
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < ROWS; j++)
            ((double *)(behind + i * 1024))[j] = (double)(i * 1000 + j);
}

static float as_it_is(int64_t i, int64_t j)
{
    return (float)(i * 1000 + j) + 0.5f;
}

static float transposed(int64_t i, int64_t j)
{
    return as_it_is(j, i);
}

Test(tile_product, results_read_c_where_it_is)
{
    fill_c();
    check_result((struct engine_view){.base = behind, .strides = {1024, 8}}, as_it_is);
}

Test(tile_product, results_read_c_transposed)
{
    fill_c();
    check_result((struct engine_view){.base = behind, .strides = {8, 1024}}, transposed);
}

Test(tile_product, c_of_one_element_is_not_read_by_the_host)
{
    make_passes(PRODUCT_RESULT, DTYPE_INT64, (struct operand){OPERAND_REDUCED, DTYPE_INT64, 0});
    struct pass *pass = &built.program.passes[PRODUCT_RESULT];
    pass->ndim = 0;
    cr_assert(not(program_is_uniform(&built.program, 0)));
    begin_tile(PRODUCT_RESULT, 0, ENGINE_SLOT_ALIGN);
    int64_t *output = cuda_tile_place_output(&tile, 8);
    struct engine_view c = {.base = behind}, outputs[3] = {{.base = output}};
    struct engine_box box = {.ndim = 0};
    cuda_tile_add(&tile, &box, NULL, outputs, &c);
    *(int64_t *)behind = -77; /* when the tile is there already */
    run();
    cr_assert(eq(i64, *output, -77));
}
