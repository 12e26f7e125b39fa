/* What is in a store. */
#pragma once

#include "client/formats/format_impl.h"
#include "client/formats/near_names.h"
#include "client/formats/zarr/zarr_store.h"

/* struct format, `list`. */
int zarr_list(const char *path, const char *dataset, const char *name, gad_list_function *function,
              void *userdata, struct gad_error *error) GAD_MUST_CHECK;

/* Adds the arrays at and below `dataset`, not all of a large store. */
void zarr_collect_names(const struct zarr_store *store, const char *dataset,
                        struct near_names *names);

/* Whether a part of a name is "..". */
bool zarr_leads_out(const char *dataset);
