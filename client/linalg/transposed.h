/* Texts of expressions, with every matrix in them transposed. */
#pragma once

#include "client/gpuarrayd.h"

/* Of bindings, "m = t < 0; _x = where(m, 0, t); ", the same of transposed arguments under other
 * names: "m_T = t.T < 0; _x_T = where(m_T, 0, t.T); ". Element for element alone. A heap string;
 * NULL: no memory. */
char *transposed_text(const char *text, unsigned n_args, const struct gad_argument *args);
