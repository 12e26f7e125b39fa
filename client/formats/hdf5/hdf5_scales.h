/* Dimension scales: the datasets that name the axes of others. Inside a scope.
 *
 * A dataset's attribute DIMENSION_LIST refers to a scale for each axis; a scale's attribute
 * REFERENCE_LIST says who does so. The attributes are those of HDF5's high-level library, and of
 * netCDF-4. */
#pragma once

#include <hdf5.h>
#include <stdbool.h>

bool hdf5_scale_is(hid_t dataset);
/* Whether it is a name and a size alone: netCDF's dimension without a variable. */
bool hdf5_scale_is_bare(hid_t dataset);
/* Whether its axis can grow without a limit. */
bool hdf5_scale_is_unlimited(hid_t dataset);

/* What the axes of a dataset refer to: ret_lists[i] has hobj_ref_t, of axis i; ended by
 * hdf5_scale_free_list() with the type that is returned and closed. Negative: there is no such
 * list. */
hid_t hdf5_scale_read_list(hid_t dataset, int ndim, hvl_t *ret_lists);
void hdf5_scale_free_list(hid_t type, int ndim, hvl_t *lists);

/* Makes a scale of a dataset: its name is that of the axis. is_bare: it has no values. */
bool hdf5_scale_make(hid_t dataset, const char *name, bool is_bare);
/* Names axis i of the dataset by scales[i]; what it had is forgotten. */
bool hdf5_scale_attach(hid_t dataset, int ndim, const hid_t *scales);
/* A dataset is about to be replaced: who has an axis named by it has it by the new one from now on;
 * where that cannot be (new_scale negative) the names of all of its axes go. */
bool hdf5_scale_replace(hid_t old_scale, hid_t new_scale);
/* A number for a new dimension, as netCDF-4 numbers them; -1: those of the file have none. */
int hdf5_scale_next_number(hid_t file);
bool hdf5_scale_set_number(hid_t dataset, int number);
