/* gpuarrayctl info: what is in a file, a line for each thing. */
#pragma once

#include "client/ctl/files/listed.h"

#define INFO_COLUMNS 9

/* Zeroed, but for has_attributes: empty. */
struct info_table {
    bool has_attributes; /* are printed, below the line */
    size_t n_rows, n_room;
    struct info_row *rows;
};

/* False: no memory. */
bool info_table_add(struct info_table *table, const struct gad_listed *entry) GAD_MUST_CHECK;
void info_table_print(const struct info_table *table);
void info_table_deinit(struct info_table *table);
