/* Datasets, as their loaders see them. */
#pragma once

#include "client/gpuarrayd-dataset.h"
#include "client/formats/files/file_mark.h"
#include "client/rows/row_source.h"

#include <stdatomic.h>

/* The file that an array is in, or the folder. */
struct own_file {
    char *path; /* from the root of the file system; NULL: none is known */
    struct file_mark mark;
    bool is_marked, is_folder;
};

struct dataset_part {
    char name[64];
    struct row_source source;
    struct own_file file;
    struct file_sums sums;      /* of all its files; zero: it has none, or they are not known */
    uint32_t rows_sum;          /* of a few rows; DATASET_NO_SUM: none. Once is_sampled */
    struct shared_rows *shared; /* a scan that windows are filled from; NULL: none */
};

struct gad_dataset {
    unsigned n_refs; /* of the client's thread */
    struct gad_client *client;
    unsigned n_parts;
    struct dataset_part *parts;
    int64_t n_rows;
    uint8_t fingerprint[16];
    atomic_bool is_sampled;
    pthread_mutex_t reading; /* one reads rows at a time, with threads of its own */
};

struct gad_dataset *dataset_ref(struct gad_dataset *dataset);
/* dataset-changed, about the part. */
int dataset_check(struct gad_dataset *dataset, struct gad_error *error) GAD_MUST_CHECK;

/* row_samples.c: sums of a few rows of each part, see there. */
#define DATASET_SAMPLES 4
#define DATASET_NO_SUM  0u
/* Where they begin, in a dataset of so many rows; how many there are is returned. */
unsigned dataset_sampled_rows(int64_t n_rows, int64_t ret_rows[DATASET_SAMPLES]);
/* Takes them, if they are not there yet. Who reads rows meanwhile is waited for. */
void dataset_sample(struct gad_dataset *dataset);
