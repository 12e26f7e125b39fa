/* Pieces of a movement as one request. */
#pragma once

#include "client/lib/views/move.h"
#include "proto/request.h"

struct move_part {               /* a piece as a request names it: two views of one shape */
    struct gad_array *from, *to; /* references */
};

struct move_request {
    unsigned n, n_passes;
    struct move_part parts[REQUEST_MAX_OUTPUTS];
};

/* The request moves as many pieces from `first` on as go together; at least one. */
int move_request_init(struct move_request *request, const struct move *move, unsigned first,
                      struct gad_error *error) GAD_MUST_CHECK;
void move_request_deinit(struct move_request *request);
