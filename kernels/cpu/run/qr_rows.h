/* R of the rows of a box (QR_R), which are put by column by column. */
#pragma once

#include "kernels/cpu/run/reducer.h"

/* One QR_R of a pass. */
struct qr_rows {
    int64_t n_columns, n_rows; /* of the matrix in the box; n_columns without the one behind */
    int64_t apart;             /* elements from one column to the next */
    bool is_by_rows;           /* elements come row by row */
    uint16_t column;           /* slot of the column behind; only where has_column */
    bool has_column, is_continued;
    double *rows, *plane;
    void *scratch;
};

/* Bytes of rows, and of what cpu_triangle_add() needs besides, which several may share. */
size_t qr_rows_bytes(const struct qr_rows *q);
size_t qr_rows_scratch_bytes(const struct qr_rows *q);
/* Of a box of two axes. False: it does not have all of the second one. */
bool qr_rows_init(struct qr_rows *q, const struct engine_box *box, const struct pass *pass,
                  const struct reduction *reduction, void *plane);
/* Elements [first, first + n) of the box, and of the column behind, or NULL. */
void qr_rows_take(struct qr_rows *q, uint64_t first, size_t n, const double *src,
                  const double *column);
void qr_rows_finish(struct qr_rows *q);
