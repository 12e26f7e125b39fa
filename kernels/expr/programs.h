/* Programs that are kept for whoever asks for the same again: somebody who computes in a loop sends
 * the same expression with arrays of the same kind, and compiling takes longer than a small job. */
#pragma once

#include "kernels/program.h"

struct programs;

int programs_new(struct programs **ret_programs) GAD_MUST_CHECK; /* -ENOMEM */
/* NULL. Programs that others still hold stay theirs. */
struct programs *programs_free(struct programs *programs);

/* As program_compile(), and with the same outcome. The program may be shared: it is not to be
 * changed, and program_free() gives it back. owner: the user who asks; what one user's request gave
 * is found by requests of that user alone. Errors are not kept. One thread. */
int programs_compile(struct programs *programs, uint32_t owner, const struct job_request *request,
                     struct program **ret_program, struct gad_error *error) GAD_MUST_CHECK;
