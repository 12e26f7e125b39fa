/* An npz archive that is open, its members by name, and what the header of one says. */
#pragma once

#include "client/formats/formats.h"
#include "client/formats/npy/npy_header.h"
#include "client/formats/npz/npz_stream.h"
#include "client/formats/npz/zip_read.h"

#include <sys/stat.h>

struct npz_archive {
    const char *path, *name; /* of the caller; the latter is the argument of errors */
    int fd;
    struct stat st;
    struct zip_source source; /* its state is the archive, which stays where it is */
    struct zip_directory directory;
};

int npz_archive_open(const char *path, bool for_writing, const char *name,
                     struct npz_archive *ret_archive, struct gad_error *error) GAD_MUST_CHECK;
/* Of a regular file that is open already. */
int npz_archive_read(int fd_take, const char *path, const char *name,
                     struct npz_archive *ret_archive, struct gad_error *error) GAD_MUST_CHECK;
void npz_archive_close(struct npz_archive *archive);

/* What a name in a spec stands for, see npz_member.c; not-found names what there is, bad-format a
 * name that is there twice. */
int npz_member_get(const struct npz_archive *archive, const char *dataset,
                   const struct zip_member **ret_member, struct gad_error *error) GAD_MUST_CHECK;

/* Fills the error for a name that is not there. Returns its status. */
int npz_no_member(const struct npz_archive *archive, const char *dataset, struct gad_error *error);

/* Where the elements of a member are. */
struct npz_elements {
    struct npy_header header;  /* its offset counts from where the member's data begin */
    struct npz_stream *stream; /* of a deflated one; the caller's */
    uint64_t data_offset;      /* of a stored one in the file */
};
/* ret_what: as of npy_header_look(), or NULL: dtypes that are not served are refused. */
int npz_member_elements(const struct npz_archive *archive, const struct zip_member *member,
                        char *ret_what, struct npz_elements *ret_elements,
                        struct gad_error *error) GAD_MUST_CHECK;

/* What follows the path in a spec. NULL: no memory. */
char *npz_normalise(const char *rest);
int npz_parse_rest(const char *rest, const char *whole, bool is_output, struct spec *spec,
                   struct gad_error *error) GAD_MUST_CHECK;
bool npz_has_member(const char *path, const char *dataset);

/* gad_list(). */
int npz_list(const char *path, const char *dataset, const char *name, gad_list_function *function,
             void *userdata, struct gad_error *error) GAD_MUST_CHECK;
