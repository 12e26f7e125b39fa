/* Bytes of a file that somebody may still be writing to. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Claims the bytes for all who have this open file, which is not one of others: a duplicate shares
 * the claim, another open() does not. busy: another open file has some of them. Where
 * there are no locks nothing is claimed, which is no failure. */
int file_claim(int fd, uint64_t offset_bytes, uint64_t n_bytes, const char *path, const char *name,
               struct gad_error *error) GAD_MUST_CHECK;
/* Gives the claim up for all who have this open file: nobody writes to the bytes by it any more. */
void file_claim_release(int fd, uint64_t offset_bytes, uint64_t n_bytes);
/* Whether another open file than this one has a claim on some of the bytes. */
bool file_is_claimed(int fd, uint64_t offset_bytes, uint64_t n_bytes);
