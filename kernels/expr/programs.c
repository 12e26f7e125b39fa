/* A small table of compiled programs, found by everything that the compiler reads of a request.
 *
 * The key is exact: the owner; of each argument its name and its scalar with its dtype, or dtype,
 * shape, kind of location and whether it is in chunks or a stream; of each output its text, dtype,
 * shape and kind of where it goes, and which arguments may be the same memory; what draws take;
 * what lies beyond the ends of an axis. Lengths stand before what they count, so different requests
 * have different keys, and keys are compared byte for byte: the hash only says where to look. What
 * is no part of a program (offsets, descriptors, strides, names of outputs) is no part of the key.
 * Whoever lets the compiler read more of a request adds it here; test_programs.c changes every
 * field that it reads.
 *
 * Each set holds N_WAYS programs, the one that was used longest ago makes room. Large requests and
 * large programs are compiled each time, so the table is bounded: N_SETS x N_WAYS x (KEY_MAX_BYTES
 * + PROGRAM_MAX_BYTES), 2.1 MiB.
 *
 * Called by the broker's loop and the worker's main thread, each with a table of its own.
 */
#include "kernels/expr/programs.h"
#include "kernels/expr/schedule/schedule.h"
#include "proto/util.h"

#include <string.h>

#define N_SETS            16
#define N_WAYS            4
#define KEY_MAX_BYTES     2048
#define PROGRAM_MAX_BYTES (32u * 1024u)

struct key {
    size_t n_bytes;
    bool is_too_long;
    uint8_t bytes[KEY_MAX_BYTES];
};

struct kept {
    uint64_t hash, last_use;
    struct program *program; /* a reference; NULL: free */
    size_t n_key_bytes;
    uint8_t *key;
};

struct programs {
    uint64_t n_uses;
    struct kept kept[N_SETS][N_WAYS];
};

/* ---- keys ---- */

static void put(struct key *k, const void *from, size_t n_bytes)
{
    if (n_bytes > sizeof(k->bytes) - k->n_bytes) {
        k->is_too_long = true;
        return;
    }
    memcpy(k->bytes + k->n_bytes, from, n_bytes);
    k->n_bytes += n_bytes;
}

static void put_u64(struct key *k, uint64_t value)
{
    put(k, &value, sizeof(value));
}

static void put_array(struct key *k, const struct array *array)
{
    bool is_stream = array->at.kind == LOCATION_PROVIDER && array->at.provider.is_stream;
    put_u64(k, (uint64_t)array->dtype | (uint64_t)array->ndim << 8 |
                   (uint64_t)array->at.kind << 16 |
                   (uint64_t)(array_chunk_shape(array) != NULL) << 24 |
                   (uint64_t)array->is_open << 25 | (uint64_t)is_stream << 26);
    put(k, array->shape, (size_t)array->ndim * sizeof(array->shape[0]));
}

static void put_arg(struct key *k, const struct request_arg *arg)
{
    size_t n_chars = strlen(arg->name);
    put_u64(k, (uint64_t)arg->is_scalar | (uint64_t)n_chars << 8);
    put(k, arg->name, n_chars);
    if (arg->is_scalar) {
        put_u64(k, arg->scalar_dtype);
        put(k, &arg->scalar, sizeof(arg->scalar));
    } else {
        put_array(k, &arg->array);
    }
}

static void put_output(struct key *k, const struct request_output *output, uint64_t overwritten)
{
    put_u64(k, (uint64_t)output->has_to | (uint64_t)output->n_expr_chars << 8);
    put(k, output->expr, output->n_expr_chars);
    if (output->has_to)
        put_array(k, &output->to);
    put_u64(k, overwritten);
}

static void put_draws(struct key *k, const struct request_draws *draws)
{
    put_u64(k, (uint64_t)draws->has_seed | (uint64_t)draws->has_size << 1 |
                   (uint64_t)draws->has_rows << 2 | (uint64_t)draws->ndim << 8 |
                   (uint64_t)draws->rows << 16);
    put_u64(k, draws->seed);
    put(k, draws->size, (size_t)draws->ndim * sizeof(draws->size[0]));
}

static void put_beyond(struct key *k, const struct request_beyond *beyond)
{
    put_u64(k, (uint64_t)beyond->mode | (uint64_t)beyond->dtype << 8);
    put_u64(k, beyond->value.u64);
}

static void make_key(struct key *k, uint32_t owner, const struct job_request *request)
{
    k->n_bytes = 0;
    k->is_too_long = false;
    put_u64(k, owner | (uint64_t)request->n_args << 32);
    put_u64(k, request->n_outputs | (uint64_t)request->has_no_slabs << 32 |
                   (uint64_t)request->makes_again << 33);
    put_draws(k, &request->draws);
    put_beyond(k, &request->beyond);
    for (unsigned i = 0; i < request->n_args && !k->is_too_long; i++)
        put_arg(k, &request->args[i]);
    for (unsigned i = 0; i < request->n_outputs && !k->is_too_long; i++)
        put_output(k, &request->outputs[i], passes_overwritten(request, i));
}

static uint64_t hash_of(const struct key *k)
{
    uint64_t h = k->n_bytes, word;
    size_t i = 0;
    for (; i + sizeof(word) <= k->n_bytes; i += sizeof(word)) {
        memcpy(&word, k->bytes + i, sizeof(word));
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    word = 0;
    memcpy(&word, k->bytes + i, k->n_bytes - i);
    h = (h ^ word) * 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

/* ---- the table ---- */

int programs_new(struct programs **ret_programs)
{
    struct programs *programs = calloc(1, sizeof(*programs));
    if (programs == NULL)
        return -ENOMEM;
    *ret_programs = programs;
    return 0;
}

static void drop(struct kept *kept)
{
    kept->program = program_free(kept->program);
    free(steal_ptr(kept->key));
}

struct programs *programs_free(struct programs *programs)
{
    for (unsigned i = 0; programs != NULL && i < N_SETS; i++)
        for (unsigned k = 0; k < N_WAYS; k++)
            drop(&programs->kept[i][k]);
    free(programs);
    return NULL;
}

static struct kept *find(struct kept set[static N_WAYS], uint64_t hash, const struct key *k)
{
    for (unsigned i = 0; i < N_WAYS; i++)
        if (set[i].program != NULL && set[i].hash == hash && set[i].n_key_bytes == k->n_bytes &&
            memcmp(set[i].key, k->bytes, k->n_bytes) == 0)
            return &set[i];
    return NULL;
}

static size_t program_bytes(const struct program *p)
{
    return sizeof(*p) + p->n_inputs * sizeof(*p->inputs) + p->n_nears * sizeof(*p->nears) +
           p->n_outputs * sizeof(*p->outputs) + p->n_consts * sizeof(*p->consts) +
           p->n_insns * sizeof(*p->insns) + p->n_slabs * sizeof(*p->slabs) +
           p->n_loops * sizeof(*p->loops) + p->n_repeats * sizeof(*p->repeats) +
           p->n_inner * sizeof(*p->inner) + p->n_windows * sizeof(*p->windows) +
           p->n_weights * sizeof(*p->weights);
}

/* Without memory it is not kept. */
static void keep(struct programs *programs, struct kept set[static N_WAYS], uint64_t hash,
                 const struct key *k, struct program *program)
{
    struct kept *oldest = &set[0];
    for (unsigned i = 1; i < N_WAYS; i++)
        if (set[i].last_use < oldest->last_use)
            oldest = &set[i];
    uint8_t *key = malloc(k->n_bytes);
    if (key == NULL)
        return;
    drop(oldest);
    *oldest = (struct kept){.hash = hash,
                            .last_use = ++programs->n_uses,
                            .program = program_ref(program),
                            .n_key_bytes = k->n_bytes,
                            .key = memcpy(key, k->bytes, k->n_bytes)};
}

int programs_compile(struct programs *programs, uint32_t owner, const struct job_request *request,
                     struct program **ret_program, struct gad_error *error)
{
    struct key key;
    make_key(&key, owner, request);
    if (key.is_too_long)
        return program_compile(request, ret_program, error);
    uint64_t hash = hash_of(&key);
    struct kept *set = programs->kept[hash % N_SETS], *kept = find(set, hash, &key);
    if (kept != NULL) {
        kept->last_use = ++programs->n_uses;
        *ret_program = program_ref(kept->program);
        return 0;
    }
    int r = program_compile(request, ret_program, error);
    if (r == 0 && program_bytes(*ret_program) <= PROGRAM_MAX_BYTES)
        keep(programs, set, hash, &key, *ret_program);
    return r;
}
