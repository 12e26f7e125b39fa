/* Pictures: numbers and texts in, a file out. */
#include "core/methods.h"
#include "core/errors.h"

#include <stdlib.h>
#include <string.h>

PyObject *picture_draw(PyObject *module, PyObject *args)
{
    struct gad_picture p = {.size = sizeof(p)};
    struct gad_error error = {0};
    Py_buffer numbers;
    int is_svg, is_line, is_even, colours;
    long long height, width, row_step, column_step;
    void *file;
    size_t n_bytes;
    if (!PyArg_ParseTuple(args, "ppp(II)(LLLL)y*i(zzzzz)", &is_svg, &is_line, &is_even, &p.n_rows,
                          &p.n_columns, &height, &width, &row_step, &column_step, &numbers,
                          &colours, &p.title, &p.subtitle, &p.row_name, &p.column_name, &p.units))
        return NULL;
    size_t n = (size_t)p.n_rows * p.n_columns;
    p.is_line = is_line;
    p.is_even = is_even;
    p.height = height;
    p.width = width;
    p.row_step = row_step;
    p.column_step = column_step;
    p.colours = (enum gad_colours)colours;
    p.means = (size_t)numbers.len == (is_line ? 3 : 1) * n * sizeof(double) ? numbers.buf : NULL;
    if (is_line && p.means) {
        p.lows = p.means + n;
        p.highs = p.lows + n;
    }
    int r = (int)(is_svg ? gad_picture_svg : gad_picture_png)(&p, &file, &n_bytes, &error);
    PyBuffer_Release(&numbers);
    if (r)
        return error_raise(PyModule_GetState(module), &error);
    PyObject *made = PyBytes_FromStringAndSize(file, (Py_ssize_t)n_bytes);
    free(file);
    return made;
}
