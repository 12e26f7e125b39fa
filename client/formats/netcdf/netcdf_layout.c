/* Where the variables of a netCDF classic file lie.
 *
 * Behind the header come the variables without records, each whole, and then record by record what
 * each of the others has in it:
 *
 *     |header|fixed a|fixed b|x[0]|y[0]|x[1]|y[1]|x[2]|y[2]|...
 *
 * Each piece is filled up to four bytes, but for those of a variable that has the records to
 * itself.
 *
 * Called by netcdf_header.c.
 */
#include "client/formats/netcdf/netcdf_layout.h"
#include "proto/util.h"

/* Variables must follow each other as the header names them, which the netCDF library demands too:
 * so a damaged offset is found out. end: behind what comes before them, then behind them. */
static int check_order(const struct netcdf_header *header, bool of_records, uint64_t *end,
                       const char *name, struct gad_error *error)
{
    for (size_t i = 0; i < header->n_variables; i++) {
        const struct netcdf_variable *variable = &header->variables[i];
        if (variable->is_record != of_records)
            continue;
        if (variable->offset_bytes < *end) {
            error_set(error, GAD_BAD_FORMAT, name, "'%.*s' lies over what comes before it",
                      NETCDF_SHOWN(&variable->name));
            error_expected(error, "an offset of at least %llu", (unsigned long long)*end);
            error_found(error, "%llu", (unsigned long long)variable->offset_bytes);
            return GAD_BAD_FORMAT;
        }
        /* Both are below 2**63. */
        *end = variable->offset_bytes + variable->n_bytes;
    }
    return 0;
}

static int count_record_bytes(struct netcdf_header *header, const char *name,
                              struct gad_error *error)
{
    uint64_t sum = 0, last = 0, last_filled = 0;
    for (size_t i = 0; i < header->n_variables; i++) {
        const struct netcdf_variable *variable = &header->variables[i];
        if (!variable->is_record)
            continue;
        last = variable->n_bytes;
        last_filled = round_up_u64(last, 4);
        if (__builtin_add_overflow(sum, last_filled, &sum) || sum > INT64_MAX)
            return error_set(error, GAD_BAD_FORMAT, name,
                             "a record has more bytes than 63 bits can count");
    }
    header->record_bytes = sum == last_filled ? last : sum;
    return 0;
}

/* Of a file whose header was written before its records were: as many as are there whole. The last
 * one need not be filled up. */
static uint64_t count_records(const struct netcdf_header *header, uint64_t file_bytes)
{
    uint64_t end = 0;
    for (size_t i = 0; i < header->n_variables; i++) {
        const struct netcdf_variable *variable = &header->variables[i];
        if (variable->is_record)
            end = max_u64(end, variable->offset_bytes + variable->n_bytes);
    }
    if (header->record_bytes == 0 || end > file_bytes)
        return 0;
    return 1 + (file_bytes - end) / header->record_bytes;
}

int netcdf_lay_out(struct netcdf_header *header, uint64_t file_bytes, const char *name,
                   struct gad_error *error)
{
    uint64_t end = header->n_bytes, streaming = header->version == 5 ? UINT64_MAX : UINT32_MAX;
    int r = check_order(header, false, &end, name, error);
    if (r == 0)
        r = check_order(header, true, &end, name, error);
    if (r == 0)
        r = count_record_bytes(header, name, error);
    if (r)
        return r;
    if (header->n_records == streaming)
        header->n_records = count_records(header, file_bytes);
    if (header->n_records > INT64_MAX)
        return error_set(error, GAD_BAD_FORMAT, name,
                         "the header is damaged: the number of records is negative");
    for (size_t i = 0; i < header->n_dimensions; i++)
        if (header->dimensions[i].is_record)
            header->dimensions[i].size = header->n_records;
    return 0;
}
