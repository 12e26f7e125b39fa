/* Do an output's bytes meet another argument's? Decided by identity (device and inode of file or
 * region) and byte range, whatever the descriptor. Pure code. */
#pragma once

#include "kernels/program.h"

struct overlap_identity { /* of one located array; has_identity false for inline and provider */
    bool has_identity;
    uint64_t device, inode;
};

/* args[i] belongs to request->args[i], outputs[i] to request->outputs[i]. The same identity,
 * offset, shape, strides and item size: in place, allowed (*ret_in_place), of regions with the same
 * id only. Any other overlap, also of two outputs: overlapping-output. Grids of chunks are not
 * compared: where their chunks are stands in a table of any length. Also refuses an output that
 * overlaps itself (a stride of 0, or crossing strides). */
int overlap_check(const struct job_request *request, const struct overlap_identity *args,
                  const struct overlap_identity *outputs, bool *ret_in_place,
                  struct gad_error *error) GAD_MUST_CHECK;

/* In place over several passes: an output may cover an argument only if no pass after the one that
 * stores it reads that argument. To be called when overlap_check() said in place.
 * overlapping-output. */
int overlap_check_passes(const struct job_request *request, const struct program *program,
                         const struct overlap_identity *args,
                         const struct overlap_identity *outputs,
                         struct gad_error *error) GAD_MUST_CHECK;
