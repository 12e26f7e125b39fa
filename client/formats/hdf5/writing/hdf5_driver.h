/* How files are written to that somebody may open after the writer was killed. */
#pragma once

#include "proto/error.h"

#include <hdf5.h>

/* Files opened with this access list are changed when they are closed, at once as far as that goes:
 * hdf5_driver.c. Called in an HDF5_SCOPE. */
herr_t hdf5_driver_use(hid_t access_plist);
/* H5Fclose() of such a file; negative also where its changes could not be written, which HDF5 does
 * not learn. */
herr_t hdf5_driver_close(hid_t file);
/* After it was negative: GAD_NO_SPACE or GAD_IO_ERROR. */
enum gad_status hdf5_driver_failure(void);
