/* Rows from a shared scan: what fills windows of all trainers of a machine from one decode. */
#pragma once

#include "client/rows/row_source.h"

struct gad_client;
struct shared_rows;

/* From now on gathers of many rows of the source come from a shared scan, if its chunks are packed
 * in files, and a daemon that we are connected to gives one. Else, and whatever goes wrong
 * later, the source reads as before. In the client's thread, while nobody reads. NULL: it is not
 * shared. */
struct shared_rows *shared_rows_new(struct gad_client *client, struct row_source *source);
/* Before the source goes; nobody reads. NULL allowed; returns NULL. */
struct shared_rows *shared_rows_free(struct shared_rows *shared);
