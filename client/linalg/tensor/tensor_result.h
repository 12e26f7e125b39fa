/* Results of tensors' decompositions: making and filling them. */
#pragma once

#include "client/gpuarrayd-tensor.h"
#include "client/linalg/passes.h"

/* What is known at the end: dtype, reads, seconds; and a core of zeros. *result is valid for
 * gad_tensor_result_deinit() whatever the outcome. */
int tensor_result_init(struct gad_tensor_result *result, bool is_tucker, const struct passes *p,
                       const int64_t *core_shape, int core_ndim,
                       struct gad_error *error) GAD_MUST_CHECK;
/* Copies a factor. */
int tensor_result_factor(struct gad_tensor_result *result, int axis, const int64_t *shape,
                         const double *elements, struct gad_error *error) GAD_MUST_CHECK;

/* bad-shape: they are none, or do not fit each other. */
int factors_check(const struct gad_factors *factors, struct gad_error *error) GAD_MUST_CHECK;
