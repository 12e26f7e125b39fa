/* Datasets, as their loaders see them. */
#pragma once

#include "client/gpuarrayd-dataset.h"
#include "client/formats/files/file_mark.h"
#include "client/rows/row_source.h"

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
    struct shared_rows *shared; /* a scan that windows are filled from; NULL: none */
};

struct gad_dataset {
    unsigned n_refs; /* of the client's thread */
    struct gad_client *client;
    unsigned n_parts;
    struct dataset_part *parts;
    int64_t n_rows;
    uint8_t fingerprint[16];
    pthread_mutex_t reading; /* one reads rows at a time, with threads of its own */
};

struct gad_dataset *dataset_ref(struct gad_dataset *dataset);
/* dataset-changed, about the part. */
int dataset_check(struct gad_dataset *dataset, struct gad_error *error) GAD_MUST_CHECK;
