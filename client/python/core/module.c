/* The extension module: libgpuarrayd for Python, and nothing else.
 *
 *     module.c                    the types together, the interpreter's end
 *     base.c                      objects, forks
 *     session.c array.c job.c     the types with a connection; plan.c the one without
 *     make.c blocks.c             the ways to arrays
 *     datasets/                   batches of rows
 *     contents.c                  what is in a file
 *     picture.c                   pictures of numbers
 *     request.c                   a job's description
 *     errors.c typestr.c          exceptions; dtypes as texts
 *     link.c wait.c               the connection between threads; these know nothing of Python
 *
 * Written to the limited interface of Python 3.11 and to the buffer protocol alone, so one binary
 * serves every newer Python and every NumPy. All lasting state is in the module or in its objects.
 *
 * When the interpreter ends, sessions are closed by atexit, while threads still run: callbacks of
 * from_blocks() that came later would wait for an interpreter that is no more.
 */
#include "core/array.h"
#include "core/base.h"
#include "core/functions/blocks.h"
#include "core/methods.h"
#include "core/job.h"
#include "core/request.h"
#include "core/session.h"
#include "core/datasets/loader.h"

#include <dlfcn.h>
#include <string.h>

/* Functions ------------------------------------------------------------------------------------ */

static PyObject *versions(PyObject *module, PyObject *unused)
{
    return PyUnicode_FromString(gad_versions());
}

static PyObject *close_all(PyObject *module, PyObject *unused)
{
    struct module_state *state = PyModule_GetState(module);
    session_close_all(state);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"versions", versions, METH_NOARGS,
     "versions()\n--\n\nVersions of the library and of what it uses, as text."},
    {"contents", contents_list, METH_O,
     "contents(spec, /)\n--\n\nWhat is in a file; gpuarrayd.list() makes its entries of it."},
    {"picture", picture_draw, METH_VARARGS,
     "picture(is_svg, is_line, is_even, cells, sizes, numbers, colours, texts, /)\n--\n\n"
     "A picture as a file: gad_picture_png(), gad_picture_svg()."},
    {"set_times", request_set_times, METH_VARARGS,
     "set_times(queue_timeout_ms, deadline_ms, /)\n--\n\nOf jobs that this thread begins from now "
     "on; 0: none. Returns those of before."},
    {"_close_all", close_all, METH_NOARGS,
     "_close_all()\n--\n\nCloses every session; for the interpreter's end."},
    {NULL},
};

/* The module ----------------------------------------------------------------------------------- */

static int register_end(PyObject *module)
{
    PyObject *atexit = PyImport_ImportModule("atexit");
    PyObject *func = atexit ? PyObject_GetAttrString(module, "_close_all") : NULL;
    PyObject *done = func ? PyObject_CallMethod(atexit, "register", "O", func) : NULL;
    Py_XDECREF(atexit);
    Py_XDECREF(func);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* The loader may find another library than the one that this was made with. */
static int check_version(void)
{
    Dl_info library = {0};
    if (strcmp(gad_version(), PACKAGE_VERSION) == 0)
        return 0;
    dladdr(gad_version(), &library);
    PyErr_Format(PyExc_ImportError,
                 "this package is gpuarrayd " PACKAGE_VERSION
                 " and the loader found libgpuarrayd %s "
                 "(%s): install both of one version, or unset LD_LIBRARY_PATH",
                 gad_version(), library.dli_fname ? library.dli_fname : "?");
    return -1;
}

static int exec(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);
    if (check_version() < 0)
        return -1;
    base_watch_forks();
    if (!session_add_type(module, state) || !array_add_type(module, state) ||
        !job_add_type(module, state) || !plan_add_type(module, state) ||
        !blocks_add_type(module, state) || !loader_add_type(module, state) ||
        !part_add_type(module, state))
        return -1;
    return register_end(module);
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct module_state *state = PyModule_GetState(module);
    Py_VISIT(state->session_type);
    Py_VISIT(state->array_type);
    Py_VISIT(state->job_type);
    Py_VISIT(state->plan_type);
    Py_VISIT(state->block_type);
    Py_VISIT(state->loader_type);
    Py_VISIT(state->part_type);
    Py_VISIT(state->from_status);
    return 0;
}

static int clear(PyObject *module)
{
    struct module_state *state = PyModule_GetState(module);
    Py_CLEAR(state->from_status);
    Py_CLEAR(state->session_type);
    Py_CLEAR(state->array_type);
    Py_CLEAR(state->job_type);
    Py_CLEAR(state->plan_type);
    Py_CLEAR(state->block_type);
    Py_CLEAR(state->loader_type);
    Py_CLEAR(state->part_type);
    return 0;
}

static void free_module(void *module)
{
    clear(module);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec},
    {0},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "gpuarrayd._core",
    .m_doc = "The extension: libgpuarrayd for Python.",
    .m_size = sizeof(struct module_state),
    .m_methods = functions,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = free_module,
};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
