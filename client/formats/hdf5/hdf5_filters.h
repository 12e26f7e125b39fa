/* The filters of HDF5 datasets as pipelines of codecs. Inside a scope. */
#pragma once

#include "client/codecs/codec.h"

#include <hdf5.h>

/* Whether chunks can be decoded outside HDF5: all filters are in the table of codecs. */
bool hdf5_filters_pipeline(hid_t create_plist, struct codec_pipeline *ret_pipeline);

/* Keeps HDF5 from loading plugins of filters until it is resumed with what was returned. One that
 * is loaded when a dataset is made puts values of its own into it, and fails where it cannot find
 * HDF5 (in a Python that has not loaded it for all). We need no plugin to write. */
unsigned hdf5_plugins_stop(void);
void hdf5_plugins_resume(unsigned plugins);

/* bad-format for a filter that neither we nor HDF5 have, with what would bring it. */
int hdf5_filters_check(hid_t create_plist, const char *dataset, const char *name,
                       struct gad_error *error) GAD_MUST_CHECK;
