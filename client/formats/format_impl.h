/* What each format implements for format.c. `name` is the spec as the user wrote it; its selection,
 * if it has one, stands at name[spec->selection_at]. */
#pragma once

#include "client/formats/formats.h"
#include "client/formats/storage.h"

struct format_target {
    const struct spec *spec;
    const char *name;
    bool replace; /* a dataset of an existing HDF5 file */
    enum dtype dtype;
    int ndim;
    const int64_t *shape;
    bool fortran_order;
    const struct storage *storage;    /* what the user asked for, checked; not NULL */
    const struct axis_limits *limits; /* which axes have none; NULL: all have one */
};

/* A row of the table of formats (format_table.c): each stands in a file of its own. */
struct format {
    const char *name;       /* of infos: "npy" */
    const char *extensions; /* in lower case, a blank between two: ".h5 .hdf5" */
    const char *written;    /* how a spec is written, for errors: "FILE.npy" */
    bool has_chunks;        /* new arrays may be stored in chunks, packed */
    bool can_grow;          /* and such axes may have no limit */
    bool has_shards;        /* many of them in a file */
    bool has_numcodecs;     /* chunks are packed by them, and have their axes in any order */
    bool is_directory;      /* which a slash may stand behind */
    bool takes_brackets;    /* a name may end in brackets of its own; else they are a selection */
    /* Of formats with several arrays in a file: from what follows the path to the array's name, a
     * heap string; NULL: no memory. */
    char *(*normalise)(const char *rest);
    bool (*has_dataset)(const char *path, const char *dataset);
    /* Whether a file that begins so is its. Among formats with the same `normalise` this goes
     * before the extension: a .nc may be HDF5 or netCDF classic. NULL: not told by how it begins.
     */
    bool (*is_own)(const uint8_t *bytes, size_t n_bytes);
    /* What follows the path, "" or ":...", into the spec. */
    int (*parse_rest)(const char *rest, const char *whole, bool is_output, struct spec *spec,
                      struct gad_error *error) GAD_MUST_CHECK;
    int (*open)(struct gad_client *client, const struct spec *spec, const char *name,
                bool for_writing, struct gad_array **ret_array,
                struct gad_error *error) GAD_MUST_CHECK;
    int (*create)(struct gad_client *client, const struct format_target *target,
                  struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
    /* What is in the file at `path`, or in its group `dataset` ("": all), or that array
     * alone: see gad_list(). NULL: a file is one array. */
    int (*list)(const char *path, const char *dataset, const char *name,
                gad_list_function *function, void *userdata,
                struct gad_error *error) GAD_MUST_CHECK;
    bool passes_over; /* after GAD_LIST_PAST `list` does not read what is in the group; otherwise
                         it is not told of that */
};

extern const struct format format_npy, format_npz, format_raw, format_hdf5, format_netcdf,
    format_zarr;

/* The i-th row; NULL behind the last. */
const struct format *format_at(size_t i);
/* Whose extension the text ends in, whatever its case; NULL: none. */
const struct format *format_of_name(const char *text, size_t n_chars);
/* Whose the file at `path` is, of those whose names are read as the named one's are; `named` where
 * there is no file, or how it begins says nothing. */
const struct format *format_of_file(const struct format *named, const char *path);
/* How specs are written: "FILE.npy, FILE.raw:DTYPE:SHAPE"; returns the buffer. */
const char *format_names(char *buffer, size_t n_bytes);

/* format.c: an array of the target's format, which `make` makes an output of; what it has made so
 * far goes with the array where it fails. */
typedef int format_make_fn(struct gad_array *array, const struct format_target *target,
                           struct gad_error *error);
int format_make(struct gad_client *client, const struct format_target *target, format_make_fn *make,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;

/* format.c: a spec of one source, its brackets given to whom they belong. */
int format_parse(const char *text, bool is_output, struct spec *ret_spec,
                 struct gad_error *error) GAD_MUST_CHECK;

/* spec.c: where the path of a spec ends, and what follows it: "" or ":...", in the spec's text. */
struct format_place {
    const struct format *format;
    char *path; /* a heap string */
    const char *rest;
};
int spec_place(const char *text, const char *whole, struct format_place *ret_place,
               struct gad_error *error) GAD_MUST_CHECK;
/* A bracket of `whole` that has no other one. Returns the status. */
int spec_refuse_bracket(const char *whole, const char *bracket, struct gad_error *error);
