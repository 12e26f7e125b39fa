/* The Python type Plan: what a job would do.
 *
 * It is asked for once and then only read, without its session: the library's structure is kept,
 * and turned into Python's objects when somebody looks.
 */
#include "core/methods.h"
#include "core/make.h"
#include "core/request.h"
#include "core/typestr.h"

#include <string.h>

struct plan {
    PyObject ob_base;
    struct gad_plan *plan;
};

static struct gad_plan *plan_of(PyObject *self)
{
    return ((struct plan *)self)->plan;
}

static struct gad_plan *ask(struct session *session, const struct gad_job_options *options)
{
    struct gad_plan *plan = NULL;
    struct gad_error error;
    struct section section = session_enter(session, true);
    bool is_refused = session_is_closed(session, &error);
    if (!is_refused) {
        is_refused = gad_plan(session->link.client, options, &plan, &error) != GAD_OK;
        link_talked(&session->link);
    }
    session_leave(session, section);
    return is_refused ? error_raise(session->state, &error) : plan;
}

PyObject *plan_make(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    struct session *session = (struct session *)self;
    struct request request;
    struct gad_plan *plan = NULL;
    if ((n != 4 && !make_has_count("plan", n, 3)) || !session_check(session))
        return NULL;
    if (request_init(&request, session, args[0], args[1], args[2], NULL, NULL) &&
        (n < 4 || request_add_beyond(&request, args[3])))
        plan = ask(session, &request.options);
    request_deinit(&request);
    if (!plan)
        return NULL;
    struct plan *made = (struct plan *)base_new_object(session->state->plan_type);
    if (!made) {
        gad_plan_free(plan);
        return NULL;
    }
    made->plan = plan;
    return (PyObject *)made;
}

static void plan_dealloc(PyObject *self)
{
    gad_plan_free(plan_of(self));
    base_free_object(self);
}

/* Properties ----------------------------------------------------------------------------------- */

static PyObject *describe_output(const struct gad_plan_output *output)
{
    char typestr[TYPESTR_SIZE];
    typestr_write(output->dtype, false, typestr);
    return Py_BuildValue("(sNN)", typestr, base_as_tuple(output->ndim, output->shape),
                         PyBool_FromLong(output->fortran_order));
}

static PyObject *plan_get_outputs(PyObject *self, void *unused)
{
    const struct gad_plan *plan = plan_of(self);
    PyObject *list = PyList_New(plan->n_outputs);
    for (unsigned i = 0; list && i < plan->n_outputs; i++) {
        PyObject *output = describe_output(plan->outputs[i]);
        if (!output || PyList_SetItem(list, i, output))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *plan_get_engine(PyObject *self, void *unused)
{
    return PyUnicode_FromString(plan_of(self)->engine);
}

static PyObject *plan_get_engine_why(PyObject *self, void *unused)
{
    return PyUnicode_FromString(plan_of(self)->engine_why);
}

/* What is not known is left out. */
static PyObject *describe_engine(const struct gad_plan_engine *e)
{
    PyObject *chosen = PyBool_FromLong(e->is_chosen);
    if (e->has_estimate)
        return Py_BuildValue("{sssdsdsssNss}", "engine", e->engine, "seconds", e->seconds,
                             "behind_seconds", e->behind_seconds, "bound", e->bound, "chosen",
                             chosen, "why_not", e->why_not);
    return Py_BuildValue("{sssNss}", "engine", e->engine, "chosen", chosen, "why_not", e->why_not);
}

static PyObject *plan_get_engines(PyObject *self, void *unused)
{
    const struct gad_plan *plan = plan_of(self);
    PyObject *list = PyList_New(plan->n_engines);
    for (unsigned i = 0; list && i < plan->n_engines; i++) {
        PyObject *engine = describe_engine(plan->engines[i]);
        if (!engine || PyList_SetItem(list, i, engine))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *plan_get_text(PyObject *self, void *unused)
{
    const char *text = plan_of(self)->text ? plan_of(self)->text : "";
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace");
}

static PyObject *plan_get_n_tiles(PyObject *self, void *unused)
{
    return PyLong_FromUnsignedLongLong(plan_of(self)->n_tiles);
}

static PyObject *plan_get_read_bytes(PyObject *self, void *unused)
{
    return PyLong_FromUnsignedLongLong(plan_of(self)->read_bytes);
}

static PyObject *plan_get_write_bytes(PyObject *self, void *unused)
{
    return PyLong_FromUnsignedLongLong(plan_of(self)->write_bytes);
}

static PyObject *plan_get_seconds(PyObject *self, void *unused)
{
    return PyFloat_FromDouble(plan_of(self)->seconds);
}

/* The type ------------------------------------------------------------------------------------- */

static PyGetSetDef properties[] = {
    {"outputs", plan_get_outputs, NULL, "(typestr, shape, fortran_order) of each."},
    {"engine", plan_get_engine, NULL, "That would compute it."},
    {"engine_why", plan_get_engine_why, NULL, "Why that engine."},
    {"engines", plan_get_engines, NULL, "A dict for each engine: what it would take."},
    {"text", plan_get_text, NULL, "The whole plan for a reader, several lines."},
    {"n_tiles", plan_get_n_tiles, NULL, "Parts that are computed one by one."},
    {"read_bytes", plan_get_read_bytes, NULL, "Bytes that would be read."},
    {"write_bytes", plan_get_write_bytes, NULL, "Bytes that would be written."},
    {"seconds", plan_get_seconds, NULL, "An estimate."},
    {NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, (char *)"What a job would do."},
    {Py_tp_dealloc, plan_dealloc},
    {Py_tp_getset, properties},
    {0},
};

static PyType_Spec spec = {
    .name = "gpuarrayd._core.Plan",
    .basicsize = sizeof(struct plan),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

PyTypeObject *plan_add_type(PyObject *module, struct module_state *state)
{
    return state->plan_type = base_add_type(module, &spec);
}
