/* Why a device is not to be had, in words and numbers. */
#pragma once

#include "kernels/cuda/runtime.h"

/* All return what the process is to leave with (enum worker_exit). */

/* Whatever call failed while the worker started; `what` names it. */
int card_refuse_error(const char *what, int cuda_error, struct gad_error *error);
/* The devices could not be counted. */
int card_refuse_driver(int cuda_error, struct gad_error *error);
int card_refuse_index(int index, int n_devices, struct gad_error *error);
/* A slab; holders: who has the device's memory, "". */
int card_refuse_slab(const char *setting, uint64_t n_bytes, uint64_t free_bytes,
                     const char *holders, int cuda_error, struct gad_error *error);
