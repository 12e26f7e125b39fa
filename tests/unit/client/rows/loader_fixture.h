/* A dataset in two formats, and loaders whose batches are compared with what they have to be. */
#pragma once

#include "tests/unit/client/formats/support.h"

#include "client/gpuarrayd-dataset.h"
#include "client/rows/epoch_order.h"

#define N     2000
#define WIDTH 5

/* x.npy and y.npy. Row i of x: i * WIDTH, ...; of y: its number, big-endian. */
void put_npy(void);
/* d.h5: the same in chunks of 64 rows. */
void put_h5(void);

struct gad_dataset *open_dataset(const char *x_spec, const char *y_spec);
struct gad_loader *make_loader(struct gad_dataset *dataset,
                               const struct gad_loader_options *options);
struct gad_batch *next_ok(struct gad_loader *loader);

/* The rows of a batch of all ranks are those of the order, from `at` on in it. */
void check_batch(struct gad_batch *batch, const struct gad_loader_options *options, uint64_t k,
                 uint64_t at);
void check_epoch(struct gad_loader *loader, const struct gad_loader_options *options);
