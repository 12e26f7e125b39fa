/* Of a plan, the engines: what each would take for the job, and why one of them was chosen.
 *
 *     engine   cpu
 *     why      auto: cpu 812 us (memory), cuda:0 2.1 ms (link) behind 10.0 ms
 *     engines  estimate  behind    bound by
 *       cpu    812 us    -         memory    chosen
 *       cuda:0 2.1 ms    10 ms     link      ends later, behind 10.0 ms
 *       cuda:1 -         -         -         no NVIDIA driver
 *
 * A daemon that says nothing of engines leaves the list empty. Called by plan.c.
 */
#include "client/lib/jobs/plan.h"
#include "proto/util.h"
#include "proto/wire/map.h"

#include <string.h>

static int read_engine(const msgpack_object *map, struct gad_plan_engine *ret)
{
    double seconds = -1;
    if (map_copy_str(map, "engine", ret->engine, sizeof(ret->engine), NULL) ||
        map_bool(map, "chosen", &ret->is_chosen, NULL) || map_f64(map, "seconds", &seconds, NULL) ||
        map_f64(map, "behind_seconds", &ret->behind_seconds, NULL) ||
        map_copy_str(map, "bound", ret->bound, sizeof(ret->bound), NULL) ||
        map_copy_str(map, "why_not", ret->why_not, sizeof(ret->why_not), NULL))
        return -EPROTO;
    ret->has_estimate = seconds >= 0;
    ret->seconds = ret->has_estimate ? seconds : 0;
    return 0;
}

int plan_engines_read(const msgpack_object *map, struct gad_plan *plan)
{
    const msgpack_object *list = map_find(map, "engines");
    if (map_copy_str(map, "engine", plan->engine, sizeof(plan->engine), NULL) ||
        map_copy_str(map, "engine_why", plan->engine_why, sizeof(plan->engine_why), NULL))
        return -EPROTO;
    if (!list)
        return 0;
    if (list->type != MSGPACK_OBJECT_ARRAY)
        return -EPROTO;
    struct gad_plan_engine **engines = plan_list_new(list->via.array.size, sizeof(**engines));
    plan->engines = (const struct gad_plan_engine *const *)engines;
    if (!engines)
        return -ENOMEM;
    for (uint32_t i = 0; i < list->via.array.size; i++) {
        if (read_engine(&list->via.array.ptr[i], engines[i]))
            return -EPROTO;
        plan->n_engines++;
    }
    return 0;
}

static const char *format_seconds(bool is_known, double seconds, char buffer[32])
{
    static const char *const units[] = {"us", "ms", "s"};
    double value = seconds * 1e6;
    unsigned unit = 0;
    for (; value >= 999.5 && unit + 1 < ARRAY_LENGTH(units); unit++)
        value /= 1000;
    snprintf(buffer, 32, value < 99.5 ? "%.2g %s" : "%.0f %s", value, units[unit]);
    return is_known ? buffer : "-";
}

void plan_engines_print(FILE *out, const struct gad_plan *plan)
{
    char estimate[32], behind[32];
    fprintf(out, "engine   %s\n", plan->engine);
    if (plan->engine_why[0])
        fprintf(out, "why      %s\n", plan->engine_why);
    if (plan->n_engines < 2) /* the plan's own time says it all */
        return;
    fputs("engines  estimate  behind    bound by\n", out);
    for (unsigned i = 0; i < plan->n_engines; i++) {
        const struct gad_plan_engine *e = plan->engines[i];
        fprintf(out, "  %-7s%-10s%-10s%-10s%s\n", e->engine,
                format_seconds(e->has_estimate, e->seconds, estimate),
                format_seconds(e->behind_seconds > 0, e->behind_seconds, behind),
                e->bound[0] ? e->bound : "-", e->is_chosen ? "chosen" : e->why_not);
    }
}
