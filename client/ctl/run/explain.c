/* gpuarrayctl run --explain: the plan of a job, and what each engine would take, without running
 * it.
 *
 * The text is the library's; the JSON has the same. Called by run.c.
 */
#include "client/ctl/run/run.h"

static void add_text(struct json_object *object, const char *key, const char *value)
{
    json_object_object_add(object, key, json_object_new_string(value));
}

static struct json_object *engine_json(const struct gad_plan_engine *engine)
{
    struct json_object *object = json_object_new_object();
    add_text(object, "engine", engine->engine);
    if (engine->has_estimate) {
        json_object_object_add(object, "seconds", json_object_new_double(engine->seconds));
        json_object_object_add(object, "behind_seconds",
                               json_object_new_double(engine->behind_seconds));
        add_text(object, "bound", engine->bound);
    }
    json_object_object_add(object, "chosen", json_object_new_boolean(engine->is_chosen));
    if (!engine->is_chosen)
        add_text(object, "why_not", engine->why_not);
    return object;
}

/* null: nobody knows. */
static void add_unless(struct json_object *object, const char *key, uint64_t value, bool is_unknown)
{
    json_object_object_add(object, key, is_unknown ? NULL : json_object_new_uint64(value));
}

static struct json_object *pass_json(const struct gad_plan_pass *pass)
{
    struct json_object *object = json_object_new_object();
    struct json_object *shape = json_object_new_array(), *axes = json_object_new_array();
    struct json_object *scanned = json_object_new_array();
    bool is_open = false;
    for (int i = 0; i < pass->ndim; i++) {
        bool is_unknown = pass->shape[i] == GAD_UNKNOWN_LENGTH;
        is_open |= is_unknown;
        json_object_array_add(shape, is_unknown ? NULL : json_object_new_int64(pass->shape[i]));
        if (pass->reduced_axes >> i & 1)
            json_object_array_add(axes, json_object_new_int(i));
        if (pass->scanned_axes >> i & 1)
            json_object_array_add(scanned, json_object_new_int(i));
    }
    json_object_object_add(object, "shape", shape);
    json_object_object_add(object, "reduces", axes);
    json_object_object_add(object, "scans", scanned);
    json_object_object_add(object, "reads", json_object_new_int((int)pass->n_reads));
    json_object_object_add(object, "writes", json_object_new_int((int)pass->n_writes));
    add_unless(object, "tiles", pass->n_tiles, is_open);
    add_unless(object, "read_bytes", pass->read_bytes, is_open);
    add_unless(object, "write_bytes", pass->write_bytes, is_open);
    return object;
}

static struct json_object *extents_json(const int64_t *extents)
{
    struct json_object *list = json_object_new_array();
    for (int i = 0; i < 3; i++)
        json_object_array_add(list, json_object_new_int64(extents[i]));
    return list;
}

static struct json_object *product_json(const struct gad_plan_product *product)
{
    struct json_object *object = json_object_new_object();
    add_text(object, "precision", product->precision);
    json_object_object_add(object, "tile", extents_json(product->tile));
    json_object_object_add(object, "tiles", json_object_new_uint64(product->n_tiles));
    json_object_object_add(object, "block", extents_json(product->block));
    json_object_object_add(object, "step_depth", json_object_new_int64(product->step_depth));
    json_object_object_add(object, "steps", json_object_new_uint64(product->n_steps));
    json_object_object_add(object, "panel_depth", json_object_new_int64(product->panel_depth));
    json_object_object_add(object, "kept_panels", json_object_new_uint64(product->n_kept_panels));
    json_object_object_add(object, "buffers", json_object_new_int((int)product->n_buffers));
    json_object_object_add(object, "symmetric", json_object_new_boolean(product->is_symmetric));
    json_object_object_add(object, "journal", json_object_new_boolean(product->has_journal));
    json_object_object_add(object, "left_bytes", json_object_new_uint64(product->left_bytes));
    json_object_object_add(object, "right_bytes", json_object_new_uint64(product->right_bytes));
    json_object_object_add(object, "operations", json_object_new_double(product->n_operations));
    return object;
}

static struct json_object *plan_json(const struct gad_plan *plan)
{
    struct json_object *object = json_object_new_object();
    struct json_object *outputs = json_object_new_array(), *engines = json_object_new_array();
    struct json_object *passes = json_object_new_array();
    for (unsigned i = 0; i < plan->n_outputs; i++)
        json_object_array_add(outputs, ctl_array_json(plan->outputs[i], NULL));
    for (unsigned i = 0; i < plan->n_engines; i++)
        json_object_array_add(engines, engine_json(plan->engines[i]));
    bool is_open = false;
    for (unsigned i = 0; i < plan->n_passes; i++) {
        json_object_array_add(passes, pass_json(plan->passes[i]));
        for (int k = 0; k < plan->passes[i]->ndim; k++)
            is_open |= plan->passes[i]->shape[k] == GAD_UNKNOWN_LENGTH;
    }
    add_text(object, "engine", plan->engine);
    add_text(object, "engine_why", plan->engine_why);
    json_object_object_add(object, "engines", engines);
    json_object_object_add(object, "outputs", outputs);
    json_object_object_add(object, "rounds", json_object_new_uint64(plan->n_rounds));
    json_object_object_add(object, "passes", passes);
    if (plan->product)
        json_object_object_add(object, "product", product_json(plan->product));
    add_unless(object, "tiles", plan->n_tiles, is_open);
    add_unless(object, "read_bytes", plan->read_bytes, is_open);
    add_unless(object, "write_bytes", plan->write_bytes, is_open);
    json_object_object_add(object, "carry_bytes", json_object_new_uint64(plan->carry_bytes));
    json_object_object_add(object, "seconds",
                           is_open ? NULL : json_object_new_double(plan->seconds));
    json_object_object_add(object, "restartable", json_object_new_boolean(plan->is_restartable));
    return object;
}

void run_print_plan(const struct gad_plan *plan, bool json)
{
    if (json)
        ctl_put_json(plan_json(plan));
    else
        fputs(plan->text, stdout);
}

int run_explain(struct run_options *o, struct gad_client *client)
{
    struct gad_job_options options = run_job_options(o, NULL);
    struct gad_plan *plan;
    int r = (int)gad_plan(client, &options, &plan, &o->error);
    if (r)
        return r;
    run_print_plan(plan, o->json);
    gad_plan_free(plan);
    return 0;
}
