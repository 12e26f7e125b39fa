/* The promises of kernels/program.h, checked on any program. */
#pragma once

#include "kernels/program.h"

/* NULL, or what is wrong. */
const char *program_validate(const struct job_request *request, const struct program *program);
