/* Of a plan, the matrix product: what of C is computed at a time, what is read for it.
 *
 *     product  float32, 1.1e+12 operations
 *     tiles    2 of 4096 x 8192, in 16 steps of depth 512, by blocks of 512 x 512
 *     panels   of depth 1536, two buffers, 3 kept for all tiles that share them
 *     left     512.0 MiB, 2048 grains of (128, 512), into panels
 *              reads a
 *     right    512.0 MiB, 1024 grains of (8, 8192), into panels
 *              reads b
 *     result   0 bytes, 1024 grains of (8, 8192), through slots
 *              writes c
 *
 * A tile of several matrices has their number in front: 64 x 100 x 100. Called by plan.c.
 */
#include "client/lib/jobs/plan.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int read_extents(const msgpack_object *map, const char *key, int64_t *ret)
{
    const msgpack_object *value = map_find(map, key);
    if (!value || value->type != MSGPACK_OBJECT_ARRAY || value->via.array.size != 3)
        return -EPROTO;
    for (unsigned i = 0; i < 3; i++) {
        const msgpack_object *extent = &value->via.array.ptr[i];
        if (extent->type != MSGPACK_OBJECT_POSITIVE_INTEGER || extent->via.u64 > INT64_MAX)
            return -EPROTO;
        ret[i] = (int64_t)extent->via.u64;
    }
    return 0;
}

static int read_product(const msgpack_object *map, struct gad_plan_product *ret)
{
    const char *precision = NULL;
    uint64_t n_buffers = 0, step_depth = 0, panel_depth = 0;
    size_t n = 0;
    if (map_str(map, "precision", &precision, &n, NULL) || !precision ||
        n >= sizeof(ret->precision) || read_extents(map, "tile", ret->tile) ||
        read_extents(map, "block", ret->block) || map_u64(map, "tiles", &ret->n_tiles, NULL) ||
        map_u64(map, "step_depth", &step_depth, NULL) || step_depth > INT64_MAX ||
        map_u64(map, "panel_depth", &panel_depth, NULL) || panel_depth > INT64_MAX ||
        map_u64(map, "kept_panels", &ret->n_kept_panels, NULL) ||
        map_u64(map, "steps", &ret->n_steps, NULL) || map_u64(map, "buffers", &n_buffers, NULL) ||
        map_bool(map, "symmetric", &ret->is_symmetric, NULL) ||
        map_bool(map, "journal", &ret->has_journal, NULL) ||
        map_u64(map, "left_bytes", &ret->left_bytes, NULL) ||
        map_u64(map, "right_bytes", &ret->right_bytes, NULL) ||
        map_f64(map, "operations", &ret->n_operations, NULL))
        return -EPROTO;
    memcpy(ret->precision, precision, n);
    ret->n_buffers = n_buffers == 2 ? 2 : 1;
    ret->step_depth = (int64_t)step_depth;
    ret->panel_depth = (int64_t)panel_depth;
    return 0;
}

int plan_product_read(const msgpack_object *map, struct gad_plan *plan)
{
    const msgpack_object *product = map_find(map, "product");
    if (!product || product->type == MSGPACK_OBJECT_NIL)
        return 0;
    if (product->type != MSGPACK_OBJECT_MAP || plan->n_passes != 3)
        return -EPROTO;
    struct gad_plan_product *read = calloc(1, sizeof(*read));
    plan->product = read;
    return read ? read_product(product, read) : -ENOMEM;
}

static void print_extents(FILE *out, const int64_t *extents)
{
    if (extents[0] != 1)
        fprintf(out, "%" PRId64 " x ", extents[0]);
    fprintf(out, "%" PRId64 " x %" PRId64, extents[1], extents[2]);
}

static void print_pass(FILE *out, const char *what, uint64_t n_bytes, const msgpack_object *pass,
                       const char *without_slots)
{
    fprintf(out, "%-8s ", what);
    plan_bytes_print(out, n_bytes);
    fputs(", ", out);
    plan_grains_print(out, pass, without_slots);
    plan_names_print(out, pass);
}

void plan_product_print(FILE *out, const msgpack_object *map, const struct gad_plan *plan)
{
    const struct gad_plan_product *p = plan->product;
    const msgpack_object *passes = map_find(map, "passes"); /* there are three */
    fprintf(out, "product  %s, %.3g operations%s%s\n", p->precision, p->n_operations,
            p->is_symmetric ? ", symmetric" : "", p->has_journal ? ", with a journal" : "");
    fprintf(out, "tiles    %" PRIu64 " of ", p->n_tiles);
    print_extents(out, p->tile);
    fprintf(out, ", in %" PRIu64 " %s of depth %" PRId64 ", by blocks of ", p->n_steps,
            p->n_steps == 1 ? "step" : "steps", p->step_depth);
    print_extents(out, p->block);
    fprintf(out, "\npanels   of depth %" PRId64 "%s", p->panel_depth,
            p->n_buffers == 2 ? ", two buffers" : ", one buffer");
    if (p->n_kept_panels > 0)
        fprintf(out, ", %" PRIu64 " kept for all tiles that share them", p->n_kept_panels);
    fputs("\n", out);
    print_pass(out, "left", plan->passes[0]->read_bytes, &passes->via.array.ptr[0], "into panels");
    print_pass(out, "right", plan->passes[1]->read_bytes, &passes->via.array.ptr[1], "into panels");
    print_pass(out, "result", plan->passes[2]->read_bytes + plan->passes[2]->write_bytes,
               &passes->via.array.ptr[2], "in place");
}
