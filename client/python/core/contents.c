/* What is in a file, as Python's own tuples, dicts and texts.
 *
 * Files are read without the GIL; it is taken for each entry, while nothing of the file is being
 * read, and signals are looked at then. Names are as os.fsdecode() reads them, so that they lead
 * back to what they name; texts of attributes are for people: bytes in them that are no UTF-8 are
 * shown escaped.
 *
 * Called by the module's function of that name.
 */
#include "core/methods.h"
#include "core/errors.h"

#include <string.h>

struct taking {
    PyThreadState *thread;
    PyObject *list; /* NULL: an exception is set */
};

/* Steals what is made; NULL stays NULL. */
static bool put(PyObject *tuple, Py_ssize_t at, PyObject *made)
{
    return made && PyTuple_SetItem(tuple, at, made) == 0;
}

static PyObject *none(void)
{
    Py_RETURN_NONE;
}

static PyObject *as_name(const char *text)
{
    return PyUnicode_DecodeFSDefault(text);
}

static PyObject *as_text(const char *text)
{
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "backslashreplace") : none();
}

static PyObject *as_texts(size_t n, const char *const *texts, PyObject *(*convert)(const char *))
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)n);
    for (size_t i = 0; tuple && i < n; i++)
        if (!put(tuple, (Py_ssize_t)i, texts[i] ? convert(texts[i]) : none()))
            Py_CLEAR(tuple);
    return tuple;
}

static PyObject *as_number(const struct gad_scalar *value)
{
    switch (value->kind) {
    case GAD_SCALAR_BOOL: return PyBool_FromLong(value->int_value != 0);
    case GAD_SCALAR_INT: return PyLong_FromLongLong(value->int_value);
    case GAD_SCALAR_UINT: return PyLong_FromUnsignedLongLong(value->uint_value);
    default: return PyFloat_FromDouble(value->float_value);
    }
}

/* (dtype or None, numbers) */
static PyObject *as_numbers(const struct gad_attribute *attribute)
{
    PyObject *pair = PyTuple_New(2);
    PyObject *numbers = PyTuple_New((Py_ssize_t)attribute->n_values);
    for (size_t i = 0; numbers && i < attribute->n_values; i++)
        if (!put(numbers, (Py_ssize_t)i, as_number(&attribute->values[i])))
            Py_CLEAR(numbers);
    const char *dtype = attribute->is_dtype_known ? gad_dtype_name(attribute->dtype) : NULL;
    if (!pair || !numbers || !put(pair, 0, as_text(dtype))) {
        Py_XDECREF(numbers);
        Py_XDECREF(pair);
        return NULL;
    }
    if (!put(pair, 1, numbers))
        Py_CLEAR(pair);
    return pair;
}

static PyObject *as_value(const struct gad_attribute *attribute)
{
    if (attribute->text)
        return as_text(attribute->text);
    if (attribute->n_texts)
        return as_texts(attribute->n_texts, attribute->texts, as_text);
    return attribute->n_values ? as_numbers(attribute) : none();
}

static PyObject *as_attributes(const struct gad_listed *entry)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict && i < entry->n_attributes; i++) {
        PyObject *name = as_name(entry->attributes[i].name);
        PyObject *value = as_value(&entry->attributes[i]);
        if (!name || !value || PyDict_SetItem(dict, name, value))
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *as_sizes(const struct gad_listed *entry, const int64_t *sizes)
{
    return entry->kind == GAD_LISTED_ARRAY && sizes ? base_as_tuple(entry->ndim, sizes) : none();
}

/* As h5py has it: None for an axis without a limit. */
static PyObject *as_max_shape(const struct gad_listed *entry)
{
    PyObject *tuple = as_sizes(entry, entry->max_shape ? entry->max_shape : entry->shape);
    for (int i = 0; tuple && entry->max_shape && i < entry->ndim; i++)
        if (entry->max_shape[i] == GAD_UNKNOWN_LENGTH && PyTuple_SetItem(tuple, i, none()))
            Py_CLEAR(tuple);
    return tuple;
}

static PyObject *as_entry(const struct gad_listed *entry)
{
    static const char *const kinds[] = {"array", "group", "other"};
    bool is_array = entry->kind == GAD_LISTED_ARRAY;
    PyObject *tuple = PyTuple_New(10);
    if (tuple && put(tuple, 0, as_text(kinds[entry->kind])) &&
        put(tuple, 1, as_name(entry->name)) && put(tuple, 2, as_text(entry->type)) &&
        put(tuple, 3, PyBool_FromLong(is_array && entry->is_served)) &&
        put(tuple, 4, as_sizes(entry, entry->shape)) && put(tuple, 5, as_max_shape(entry)) &&
        put(tuple, 6, as_sizes(entry, entry->chunk_shape)) &&
        put(tuple, 7,
            is_array && entry->dimensions
                ? as_texts((size_t)entry->ndim, entry->dimensions, as_name)
                : none()) &&
        put(tuple, 8, as_text(is_array ? entry->filters : NULL)) &&
        put(tuple, 9, as_attributes(entry)))
        return tuple;
    Py_XDECREF(tuple);
    return NULL;
}

static int take(void *userdata, const struct gad_listed *entry)
{
    struct taking *taking = userdata;
    PyEval_RestoreThread(taking->thread);
    PyObject *made = PyErr_CheckSignals() ? NULL : as_entry(entry);
    if (!made || PyList_Append(taking->list, made))
        Py_CLEAR(taking->list);
    Py_XDECREF(made);
    int step = taking->list ? GAD_LIST_ON : GAD_LIST_END;
    taking->thread = PyEval_SaveThread();
    return step;
}

PyObject *contents_list(PyObject *module, PyObject *spec)
{
    struct taking taking = {.list = NULL};
    struct gad_error error;
    PyObject *path;
    if (!PyUnicode_FSConverter(spec, &path))
        return NULL;
    taking.list = PyList_New(0);
    enum gad_status status = GAD_OK;
    if (taking.list) {
        taking.thread = PyEval_SaveThread();
        status = gad_list(PyBytes_AsString(path), take, &taking, &error);
        PyEval_RestoreThread(taking.thread);
    }
    Py_DECREF(path);
    if (!status || !taking.list)
        return taking.list;
    Py_DECREF(taking.list);
    return error_raise(PyModule_GetState(module), &error);
}
