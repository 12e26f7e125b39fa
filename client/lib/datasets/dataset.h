/* Datasets, as their loaders see them. */
#pragma once

#include "client/gpuarrayd-dataset.h"
#include "client/rows/row_source.h"

#include <sys/stat.h>

/* By what a file is told from what it was. */
struct file_mark {
    char *path; /* from the root of the file system; NULL: none is known */
    struct stat st;
    bool is_set;
};

struct dataset_part {
    char name[64];
    struct row_source source;
    struct file_mark mark;
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
int dataset_check(const struct gad_dataset *dataset, struct gad_error *error) GAD_MUST_CHECK;
