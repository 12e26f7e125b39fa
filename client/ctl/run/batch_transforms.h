/* What `batches` computes from rows. */
#pragma once

#include "client/ctl/ctl.h"

#include <argp.h>

struct batch_transforms { /* zeroed at first */
    unsigned n;
    struct gad_transform texts[GAD_MAX_PARTS];
    struct ctl_job values; /* arguments alone: what texts name */
};

/* NAME=EXPRESSION; NAME=NUMBER or SOURCE. 0 or a usage error. The words are kept. */
int batch_transforms_add(struct batch_transforms *transforms, char *word,
                         const struct argp_state *state);
int batch_transforms_with(struct batch_transforms *transforms, char *word,
                          const struct argp_state *state);
/* Reads sources into memory and sets the loader's options. A status. */
int batch_transforms_open(struct batch_transforms *transforms, struct gad_client *client,
                          struct gad_loader_options *options, struct gad_error *error);
void batch_transforms_deinit(struct batch_transforms *transforms);
