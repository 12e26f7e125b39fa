/* What comes first through a pipe, or is said of it: the dtype and shape of its elements. */
#pragma once

#include "client/formats/npy/npy_header.h"

/* cancelled for EINTR, else as error_from_errno(). */
int pipe_read_failed(int number, const char *what, const char *name, struct gad_error *error);

/* An npy header, and not a byte more. As npy_header_parse(); io-error. */
int pipe_read_header(int fd, const char *name, struct npy_header *ret_header,
                     struct gad_error *error) GAD_MUST_CHECK;

/* The same from "DTYPE:SHAPE"; shape[0] may be GAD_UNKNOWN_LENGTH. bad-argument, bad-dtype,
 * bad-shape. */
int pipe_read_form(const char *form, const char *name, struct npy_header *ret_header,
                   struct gad_error *error) GAD_MUST_CHECK;
