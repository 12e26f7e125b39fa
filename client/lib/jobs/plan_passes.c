/* Of a plan, the passes: what each goes over, reads, reduces or scans, and writes.
 *
 *     rounds   4
 *     pass 1   over (512, 8192): 64 tiles in 64 grains of (16, 4096), in place
 *              reads a; reduces axis 0
 *     pass 2   over (512, 8192): 32 tiles in 64 grains of (16, 4096), in place
 *              reads a; writes r
 *
 * There is a line of rounds only where there are several. Called by plan.c.
 */
#include "client/lib/jobs/plan.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <inttypes.h>
#include <string.h>

#define INDENT "         "

static const msgpack_object *find_array(const msgpack_object *map, const char *key)
{
    const msgpack_object *value = map_find(map, key);
    return value && value->type == MSGPACK_OBJECT_ARRAY ? value : NULL;
}

static uint32_t array_size(const msgpack_object *array)
{
    return array ? array->via.array.size : 0;
}

static int read_shape(const msgpack_object *shape, struct gad_plan_pass *ret)
{
    if (!shape || shape->via.array.size > GAD_MAX_NDIM)
        return -EPROTO;
    for (uint32_t i = 0; i < shape->via.array.size; i++) {
        const msgpack_object *length = &shape->via.array.ptr[i];
        if (length->type != MSGPACK_OBJECT_POSITIVE_INTEGER || length->via.u64 > INT64_MAX)
            return -EPROTO;
        ret->shape[i] = length->via.i64;
    }
    ret->ndim = (int)shape->via.array.size;
    return 0;
}

static int read_axes(const msgpack_object *axes, uint32_t *ret)
{
    for (uint32_t i = 0; i < array_size(axes); i++) {
        const msgpack_object *axis = &axes->via.array.ptr[i];
        if (axis->type != MSGPACK_OBJECT_POSITIVE_INTEGER || axis->via.u64 >= GAD_MAX_NDIM)
            return -EPROTO;
        *ret |= UINT32_C(1) << axis->via.u64;
    }
    return 0;
}

static int read_pass(const msgpack_object *map, struct gad_plan_pass *ret)
{
    if (map_u64(map, "tiles", &ret->n_tiles, NULL) ||
        map_u64(map, "read_bytes", &ret->read_bytes, NULL) ||
        map_u64(map, "write_bytes", &ret->write_bytes, NULL) ||
        read_shape(find_array(map, "shape"), ret) ||
        read_axes(find_array(map, "reduces"), &ret->reduced_axes) ||
        read_axes(find_array(map, "scans"), &ret->scanned_axes))
        return -EPROTO;
    ret->n_reads = array_size(find_array(map, "reads"));
    ret->n_writes = array_size(find_array(map, "writes"));
    return 0;
}

int plan_passes_read(const msgpack_object *map, struct gad_plan *plan)
{
    const msgpack_object *list = find_array(map, "passes");
    plan->n_rounds = 1;
    if (map_u64(map, "rounds", &plan->n_rounds, NULL))
        return -EPROTO;
    struct gad_plan_pass **passes = plan_list_new(array_size(list), sizeof(**passes));
    plan->passes = (const struct gad_plan_pass *const *)passes;
    if (!passes)
        return -ENOMEM;
    for (uint32_t i = 0; i < array_size(list); i++) {
        if (read_pass(&list->via.array.ptr[i], passes[i]))
            return -EPROTO;
        plan->n_passes++;
    }
    return 0;
}

void plan_pass_forget(struct gad_plan_pass *pass, int64_t open_length)
{
    bool is_open = false;
    for (int i = 0; i < pass->ndim; i++) {
        if (pass->shape[i] != open_length)
            continue;
        pass->shape[i] = GAD_UNKNOWN_LENGTH;
        is_open = true;
    }
    if (is_open)
        pass->n_tiles = pass->read_bytes = pass->write_bytes = 0;
}

/* Text --------------------------------------------------------------------------------------- */

static void print_shape(FILE *out, const msgpack_object *shape)
{
    uint32_t n = array_size(shape);
    fputs("(", out);
    for (uint32_t i = 0; i < n; i++)
        fprintf(out, "%s%" PRIu64, i ? ", " : "", shape->via.array.ptr[i].via.u64);
    fputs(n == 1 ? ",)" : ")", out);
}

static void print_names(FILE *out, const char *what, const msgpack_object *names, bool *is_first)
{
    if (array_size(names) == 0)
        return;
    fprintf(out, "%s%s", *is_first ? INDENT : "; ", what);
    for (uint32_t i = 0; i < names->via.array.size; i++) {
        const msgpack_object *name = &names->via.array.ptr[i];
        if (name->type == MSGPACK_OBJECT_STR)
            fprintf(out, "%s %.*s", i ? "," : "", (int)name->via.str.size, name->via.str.ptr);
        else if (name->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
            fprintf(out, "%s %" PRIu64, i ? "," : "", name->via.u64);
    }
    *is_first = false;
}

static void print_grains(FILE *out, const msgpack_object *map, const char *without_slots,
                         bool is_open)
{
    uint64_t n_grains = 0;
    bool needs_slot = false;
    if (map_u64(map, "grains", &n_grains, NULL) || map_bool(map, "needs_slot", &needs_slot, NULL))
        return;
    if (is_open)
        fputs("grains of ", out);
    else
        fprintf(out, "%" PRIu64 " %s of ", n_grains, n_grains == 1 ? "grain" : "grains");
    print_shape(out, find_array(map, "grain_shape"));
    fprintf(out, ", %s\n", needs_slot ? "through slots" : without_slots);
}

void plan_grains_print(FILE *out, const msgpack_object *map, const char *without_slots)
{
    print_grains(out, map, without_slots, false);
}

void plan_names_print(FILE *out, const msgpack_object *map)
{
    const msgpack_object *reduced = find_array(map, "reduces");
    bool is_first = true;
    print_names(out, "reads", find_array(map, "reads"), &is_first);
    print_names(out, array_size(reduced) == 1 ? "reduces axis" : "reduces axes", reduced,
                &is_first);
    print_names(out, "scans axis", find_array(map, "scans"), &is_first);
    print_names(out, "writes", find_array(map, "writes"), &is_first);
    fputs(is_first ? "" : "\n", out);
}

static bool is_open(const struct gad_plan_pass *pass)
{
    for (int i = 0; i < pass->ndim; i++)
        if (pass->shape[i] == GAD_UNKNOWN_LENGTH)
            return true;
    return false;
}

static void print_pass(FILE *out, const msgpack_object *map, const struct gad_plan_pass *pass,
                       unsigned index)
{
    uint64_t n_tiles = 0;
    if (map_u64(map, "tiles", &n_tiles, NULL))
        return;
    fprintf(out, "pass %-3u over ", index + 1);
    print_shape(out, find_array(map, "shape"));
    if (is_open(pass))
        fputs(": tiles in ", out);
    else
        fprintf(out, ": %" PRIu64 " %s in ", n_tiles, n_tiles == 1 ? "tile" : "tiles");
    print_grains(out, map, "in place", is_open(pass));
    plan_names_print(out, map);
}

void plan_passes_print(FILE *out, const msgpack_object *map, const struct gad_plan *plan)
{
    const msgpack_object *list = find_array(map, "passes");
    if (plan->n_rounds > 1)
        fprintf(out, "rounds   %" PRIu64 "\n", plan->n_rounds);
    for (unsigned i = 0; i < plan->n_passes; i++)
        print_pass(out, &list->via.array.ptr[i], plan->passes[i], i);
}
