/* What each format implements for format.c. `name` is the spec as the user wrote it; its selection,
 * if it has one, stands at name[spec->selection_at]. */
#pragma once

#include "client/formats/formats.h"

struct format_target {
    const struct spec *spec;
    const char *name;
    bool replace; /* a dataset of an existing HDF5 file */
    enum dtype dtype;
    int ndim;
    const int64_t *shape;
    bool fortran_order;
};

int npy_open(struct gad_client *client, const struct spec *spec, const char *name, bool for_writing,
             struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
int npy_create(struct gad_client *client, const struct format_target *target,
               struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;

int raw_open(struct gad_client *client, const struct spec *spec, const char *name, bool for_writing,
             struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
int raw_create(struct gad_client *client, const struct format_target *target,
               struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;

/* Whether the file has a dataset of this path (normalised). */
bool hdf5_has_dataset(const char *path, const char *dataset);
int hdf5_open(struct gad_client *client, const struct spec *spec, const char *name,
              bool for_writing, struct gad_array **ret_array,
              struct gad_error *error) GAD_MUST_CHECK;
int hdf5_create(struct gad_client *client, const struct format_target *target,
                struct gad_array **ret_array, struct gad_error *error) GAD_MUST_CHECK;
