/* Checksums of a journal, and the fingerprint that says whether it belongs to a job: two runs with
 * the same one compute the same tiles of the same output.
 *
 * In it: the text and where the output lies; names, dtypes, shapes and strides of all arguments,
 * and numbers and bytes that came with the request; for files, which file and where in it. Regions
 * and providers of arguments are memory of a client that may have been started again: they have no
 * name that stays, and it is the client's part to hand over the same.
 *
 * The checksum goes over memory once, 32 bytes at a time in four lanes, about as fast as it can be
 * read. It finds what was damaged, not what somebody forged: who can write the journal can write
 * the output.
 */
#include "daemon/worker/walks/journal_file.h"
#include "proto/util.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * MULTIPLIER;
    return h ^ h >> 29;
}

uint64_t journal_checksum(const void *bytes, size_t n_bytes, uint64_t seed)
{
    const char *p = bytes;
    uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3}, words[4];
    size_t left = n_bytes;
    for (; left >= sizeof(words); left -= sizeof(words), p += sizeof(words)) {
        memcpy(words, p, sizeof(words));
        for (unsigned i = 0; i < 4; i++)
            lanes[i] = mix(lanes[i], words[i]);
    }
    memset(words, 0, sizeof(words));
    memcpy(words, p, left);
    uint64_t h = mix(seed, n_bytes);
    for (unsigned i = 0; i < 4; i++)
        h = mix(mix(h, lanes[i]), words[i]);
    return h;
}

uint64_t journal_head_checksum(const struct journal_head *head)
{
    return journal_checksum(head, offsetof(struct journal_head, checksum), 1);
}

uint64_t journal_mark_checksum(const struct journal_mark *mark)
{
    return journal_checksum(mark, offsetof(struct journal_mark, checksum), 2);
}

size_t journal_piece_bytes(size_t n_bytes)
{
    return (n_bytes + JOURNAL_N_PIECES - 1) / JOURNAL_N_PIECES;
}

void journal_piece_checksums(const void *bytes, size_t n_bytes, uint64_t *ret_checksums)
{
    size_t piece = journal_piece_bytes(n_bytes), at = 0;
    for (unsigned i = 0; i < JOURNAL_N_PIECES; i++) {
        size_t n = min_u64(piece, n_bytes - at);
        ret_checksums[i] = journal_checksum((const char *)bytes + at, n, i);
        at += n;
    }
}

uint64_t journal_sum_offset(uint64_t tile)
{
    return sizeof(struct journal_front) + tile * sizeof(uint64_t);
}

uint64_t journal_cell_head_offset(uint64_t n_tiles, uint64_t cell)
{
    return round_up_u64(journal_sum_offset(n_tiles), JOURNAL_PAGE_BYTES) +
           cell * sizeof(struct journal_cell);
}

uint64_t journal_data_offset(uint64_t n_tiles, uint64_t n_cells)
{
    return round_up_u64(journal_cell_head_offset(n_tiles, n_cells), JOURNAL_PAGE_BYTES);
}

uint64_t journal_mark_offset(uint64_t sequence)
{
    return offsetof(struct journal_front, marks) +
           sequence % 2 * sizeof(((struct journal_front *)0)->marks[0]);
}

/* The fingerprint ---------------------------------------------------------------------------- */

struct print {
    uint64_t h[2];
};

static void add(struct print *print, const void *bytes, size_t n_bytes)
{
    for (unsigned i = 0; i < 2; i++)
        print->h[i] = mix(print->h[i], journal_checksum(bytes, n_bytes, print->h[i] + i));
}

static void add_number(struct print *print, uint64_t number)
{
    add(print, &number, sizeof(number));
}

static int add_file(struct print *print, int fd, const char *name, struct gad_error *error)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return error_from_errno(error, errno, name, "looking at the file");
    add_number(print, st.st_dev);
    add_number(print, st.st_ino);
    return 0;
}

static int add_place(struct print *print, const struct port *port, bool is_output,
                     struct gad_error *error)
{
    const struct location *at = &port->array.at;
    switch (at->kind) {
    case LOCATION_FILE:
        add_number(print, at->file.is_grid ? at->file.n_chunks : at->file.offset_bytes);
        return add_file(print, port->file.fd, port->name, error);
    case LOCATION_REGION:
        add_number(print, at->region.offset_bytes);
        return is_output ? add_file(print, port->region->fd, port->name, error) : 0;
    case LOCATION_INLINE: add(print, at->inlined.bytes, at->inlined.size_bytes); return 0;
    case LOCATION_NONE:
    case LOCATION_PROVIDER: break;
    }
    return 0;
}

static int add_port(struct print *print, const struct port *port, bool is_output,
                    struct gad_error *error)
{
    const struct array *array = &port->array;
    bool has_strides = array->at.kind != LOCATION_PROVIDER;
    add(print, port->name, strlen(port->name));
    add_number(print, (uint64_t)array->dtype * 2 + array->is_swapped);
    add_number(print, (uint64_t)array->ndim);
    add(print, array->shape, (size_t)array->ndim * sizeof(array->shape[0]));
    if (has_strides)
        add(print, array->strides, (size_t)array->ndim * sizeof(array->strides[0]));
    return add_place(print, port, is_output, error);
}

int journal_fingerprint(const struct wjob *job, uint64_t *ret_fingerprint, struct gad_error *error)
{
    const struct job_request *request = job->request;
    struct print print = {{1, 2}};
    int r = 0;
    add(&print, request->outputs[0].expr, request->outputs[0].n_expr_chars);
    for (unsigned i = 0; i < request->n_args; i++) {
        const struct request_arg *arg = &request->args[i];
        if (!arg->is_scalar)
            continue;
        add(&print, arg->name, strlen(arg->name));
        add_number(&print, arg->scalar_dtype);
        add_number(&print, arg->scalar.u64);
    }
    for (unsigned i = 0; i < job->n_ports && !r; i++)
        r = add_port(&print, &job->ports[i], i >= job->program->n_inputs, error);
    ret_fingerprint[0] = print.h[0];
    ret_fingerprint[1] = print.h[1];
    return r;
}
