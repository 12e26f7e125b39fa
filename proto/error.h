/* Filling a struct gad_error, and the words of the wire.
 *
 * Everywhere inside, a function that can fail returns int: 0; a negative errno when this entity
 * cannot go on; or a positive enum gad_status, a domain fault of the peer's or of the data, whose
 * details are in the struct gad_error. `error` parameters may be NULL.
 */
#pragma once

#include "proto/gpuarrayd-status.h"

#define GAD_MUST_CHECK   __attribute__((warn_unused_result))
#define GAD_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fills status, argument (may be NULL) and message; clears expected and found. Returns `status`,
 * so that `return error_set(...)` reads well. */
int error_set(struct gad_error *error, enum gad_status status, const char *argument,
              const char *format, ...) GAD_PRINTF(4, 5);

/* Add to an error just set: what was wanted, what was there. */
void error_expected(struct gad_error *error, const char *format, ...) GAD_PRINTF(2, 3);
void error_found(struct gad_error *error, const char *format, ...) GAD_PRINTF(2, 3);

/* An errno as a domain fault: ENOSPC/EDQUOT no-space, EACCES/EPERM permission-denied, ENOENT
 * not-found, ENOMEM no-memory, EROFS/EBADF read-only, else io-error. `error_number` is positive. */
int error_from_errno(struct gad_error *error, int error_number, const char *argument,
                     const char *what);

/* The word ("too-large-for-pool"; "ok" for 0) and the text; never NULL. */
const char *error_word(int status);
const char *error_text(int status);

/* The status of a word, GAD_INTERNAL for one that is not known. */
enum gad_status error_from_word(const char *word, unsigned n_chars);
