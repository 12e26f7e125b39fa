/* What the verbs of gpuarrayctl share.
 *
 * Exit codes: 0 done; 1 the request or the job failed; 2 the command line is wrong; 3 no daemon or
 * the connection was lost; 4 the time is over (wait --timeout); 130 cancelled by Ctrl-C.
 */
#pragma once

#include "client/gpuarrayd-move.h"
#include "client/gpuarrayd.h"
#include "proto/error.h"

#include <argp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

#include <json-c/json.h>

enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_CONNECTION = 3,
    EXIT_TIMEOUT = 4,
    EXIT_INTERRUPTED = 130,
};

/* A verb's entry: argv[0] is "gpuarrayctl VERB". Returns an exit code. */
typedef int verb_fn(int argc, char **argv);

verb_fn verb_run, verb_random, verb_submit, verb_wait, verb_status, verb_cancel, verb_pause,
    verb_resume, verb_jobs, verb_info, verb_formats, verb_ping, verb_show, verb_convert, verb_ops,
    verb_version, verb_watch, verb_daemon, verb_stats, verb_top, verb_users, verb_doctor,
    verb_transpose, verb_concatenate, verb_stack, verb_flip, verb_roll, verb_tile, verb_pad,
    verb_take, verb_diff, verb_matmul, verb_batches, verb_shuffle, verb_map, verb_cp, verb_tucker,
    verb_reconstruct, verb_svd, verb_pca, verb_lstsq, verb_trace, verb_drain;

/* ---- usage.c: wrong words. Messages end in the exit code EXIT_USAGE. */
/* Instead of argp_parse(): unknown options get the nearest name. 0 or EXIT_USAGE. */
int ctl_parse(const struct argp *argp, int argc, char **argv, void *input) GAD_MUST_CHECK;
/* Instead of argp_error(), for parsers: prints, and returns EINVAL for the parser to return. */
int ctl_usage_error(const struct argp_state *state, const char *format, ...) GAD_PRINTF(2, 3);
/* What --dtype is given. 0, or as ctl_usage_error(). */
int ctl_read_dtype(const char *text, bool allows_bool, enum gad_dtype *ret,
                   const struct argp_state *state) GAD_MUST_CHECK;
/* --queue-timeout and --deadline: "30", "30s", "500ms", "10m", "2h". */
enum { CTL_OPTION_QUEUE_TIMEOUT = 0x430, CTL_OPTION_DEADLINE };
#define CTL_TIME_OPTIONS                                                                           \
    {"queue-timeout",                                                                              \
     CTL_OPTION_QUEUE_TIMEOUT,                                                                     \
     "TIME",                                                                                       \
     0,                                                                                            \
     "end it when it, or one of its jobs, has not begun by then, as 30s or 10m",                   \
     0},                                                                                           \
    {                                                                                              \
        "deadline", CTL_OPTION_DEADLINE, "TIME", 0, "end it if it is not done by then", 0          \
    }
/* 0, or as ctl_usage_error(); ARGP_ERR_UNKNOWN: the key is none of them. */
error_t ctl_parse_times(int key, const char *arg, uint32_t *queue_timeout_ms, uint32_t *deadline_ms,
                        const struct argp_state *state);
/* What --priority is given. 0, or as ctl_usage_error(). */
int ctl_read_priority(const char *text, int *ret, const struct argp_state *state) GAD_MUST_CHECK;
/* Prints as text, or with json as a map; hint is what to try. Returns EXIT_USAGE. */
int ctl_usage_report(const char *name, bool json, const char *hint, const char *format, ...)
    GAD_PRINTF(4, 5);
bool ctl_wants_json(int argc, char *const *argv);

/* The nearest of several names: set `word`, consider each name, read `best` (NULL: none is near).
 */
struct ctl_nearest {
    const char *word, *best;
    unsigned distance;
};
void ctl_nearest_consider(struct ctl_nearest *nearest, const char *name);

/* ---- hints.c: what to try */
#define CTL_HINT_SIZE      240
#define CTL_SERVICE_SOCKET "/run/gpuarrayd/socket"
/* "" when there is nothing to try. */
void ctl_hint(const struct gad_error *error, char *ret_hint, size_t n_bytes);
/* Whose help has the examples, from here on; static text. Without it that of run. */
void ctl_hint_verb(const char *name);
/* $GPUARRAYD_SOCKET, else the service's. */
const char *ctl_socket_path(void);

/* The last lines of every --help. */
#define CTL_EXIT_CODES                                                                             \
    "\nExit codes: 0 done, 1 failed, 2 wrong command line, 3 no daemon, 130 Ctrl-C."
#define CTL_EXIT_CODES_WAIT                                                                        \
    "\nExit codes: 0 done, 1 failed, 2 wrong command line, 3 no daemon, 4 the time is over, "      \
    "130 Ctrl-C."

/* ---- connect.c */
int ctl_connect(struct gad_client **ret_client, struct gad_error *error);
/* The same, but a private daemon is not started: for verbs that only look. */
int ctl_connect_existing(struct gad_client **ret_client, struct gad_error *error);
/* Prints "gpuarrayctl: ..." with what was expected and found, and what to try; or, with json, one
 * JSON map on standard output. Returns the exit code that belongs to the status. */
int ctl_fail(const struct gad_error *error, bool json);
/* The same with another hint than the one that belongs to the status. */
int ctl_fail_hint(const struct gad_error *error, const char *hint, bool json);
int ctl_exit_code(int status);
/* True once Ctrl-C (or SIGTERM) was seen; handlers are installed by ctl_watch_signals(). */
bool ctl_was_interrupted(void);
void ctl_watch_signals(void);
/* At the very end: where a pipe was closed by its reader, the process ends as without a handler. */
void ctl_end_if_reader_left(void);
/* Waits for the job's end; when interrupted cancels it first. */
int ctl_wait(struct gad_job *job, struct gad_error *error);

/* ---- sources.c: how sources are opened */
enum { CTL_OPTION_MASK = 0x400, CTL_OPTION_NO_MASK };
#define CTL_MASKING_OPTIONS                                                                        \
    {"mask-and-scale",                                                                             \
     CTL_OPTION_MASK,                                                                              \
     NULL,                                                                                         \
     0,                                                                                            \
     "sources as their attributes mean them: scale_factor and add_offset applied, NaN for fill "   \
     "values and what is beyond valid_range",                                                      \
     0},                                                                                           \
    {                                                                                              \
        "no-mask-and-scale", CTL_OPTION_NO_MASK, NULL, 0,                                          \
            "sources as they are stored, without a warning", 0                                     \
    }
/* Whether the key was one of them. */
bool ctl_parse_masking(int key, enum gad_masking *ret_masking);
/* "-" or "-:DTYPE:SHAPE", standard input. */
bool ctl_is_pipe(const char *word);
/* As a stream: of a run, of info (without a client) and of show. */
int ctl_open_pipe(struct gad_client *client, const char *word, struct gad_stream **ret_stream,
                  struct gad_error *error);
/* Standard input is read to its end first. */
int ctl_open_source(struct gad_client *client, const char *spec, enum gad_masking masking,
                    struct gad_array **ret_array, struct gad_error *error);
/* To stderr, where nobody said how to take what is packed. */
void ctl_warn_packed(const char *spec, struct gad_array *array);
/* Once for each name; NULLs are left out. */
void ctl_warn_packed_sources(unsigned n, const char *const *specs, struct gad_array *const *arrays);

/* ---- new_files.c: how new files are stored */
enum {
    CTL_OPTION_CHUNKS = 0x410,
    CTL_OPTION_SHARDS,
    CTL_OPTION_COMPRESS,
    CTL_OPTION_SHUFFLE,
    CTL_OPTION_FLETCHER32,
    CTL_OPTION_SYNC,
};
#define CTL_STORAGE_OPTIONS                                                                        \
    {"chunks",                                                                                     \
     CTL_OPTION_CHUNKS,                                                                            \
     "SHAPE",                                                                                      \
     0,                                                                                            \
     "new datasets in chunks of SHAPE, as 100x100, or none: in one piece",                         \
     0},                                                                                           \
        {"shards",                                                                                 \
         CTL_OPTION_SHARDS,                                                                        \
         "SHAPE",                                                                                  \
         0,                                                                                        \
         "Zarr: elements of a file; again: of shards in it",                                       \
         0},                                                                                       \
        {"compress",                                                                               \
         CTL_OPTION_COMPRESS,                                                                      \
         "HOW",                                                                                    \
         0,                                                                                        \
         "chunks packed with gzip:4, zstd:3, bz2:9, lzf, lz4, blosc:zstd:5, bitshuffle, szip",     \
         0},                                                                                       \
        {"shuffle", CTL_OPTION_SHUFFLE, NULL, 0, "bytes sorted by their place first", 0},          \
        {"fletcher32", CTL_OPTION_FLETCHER32, NULL, 0, "HDF5: a checksum for each chunk", 0},      \
    {                                                                                              \
        "sync", CTL_OPTION_SYNC, NULL, 0, "on the disk, with its name, before the job is done", 0  \
    }
struct ctl_storage {          /* zeroed: as the format does by itself */
    struct gad_storage asked; /* points into the rest, and to the words */
    int64_t chunks[GAD_MAX_NDIM], shards[GAD_MAX_SHARD_LEVELS * GAD_MAX_NDIM];
};
/* ARGP_ERR_UNKNOWN: the key is none of them. */
error_t ctl_parse_storage(int key, char *arg, struct ctl_storage *storage,
                          struct argp_state *state);

/* ---- one_output.c: what has one result, which the library computes by a function of its own */
enum {
    CTL_OPTION_IN_PLACE = 0x420,
    CTL_OPTION_ENGINE,
    CTL_OPTION_PRIORITY,
    CTL_OPTION_JSON,
};
#define CTL_OUTPUT_OPTIONS                                                                         \
    {"output", 'o', "DEST", 0, "where the result goes: " CTL_DESTINATIONS, 0},                     \
        {"in-place",                                                                               \
         CTL_OPTION_IN_PLACE,                                                                      \
         NULL,                                                                                     \
         0,                                                                                        \
         "write into an existing file, or a selection of it",                                      \
         0},                                                                                       \
        {"engine", CTL_OPTION_ENGINE, "NAME", 0, "auto, cpu, cuda, or cuda:N for one device", 0},  \
        {"priority", CTL_OPTION_PRIORITY, "N", 0, "-100 to 100 among your own jobs", 0},           \
        CTL_TIME_OPTIONS, CTL_MASKING_OPTIONS, CTL_STORAGE_OPTIONS,                                \
        {"label", 'l', "TEXT", 0, "shown in lists of jobs", 0},                                    \
        {"json", CTL_OPTION_JSON, NULL, 0, "print the outcome as JSON", 0},                        \
    {                                                                                              \
        "quiet", 'q', NULL, 0, "no progress bar", 0                                                \
    }
struct ctl_output {
    const char *destination;
    struct gad_move_options move;
    bool json, quiet, verbose, in_place;
    enum gad_masking masking; /* of all sources */
    struct ctl_storage storage;
};
/* ARGP_ERR_UNKNOWN: the key is none of them, nor 'v'. */
error_t ctl_parse_output(int key, char *arg, struct ctl_output *output, struct argp_state *state);
/* Opens what is there already, and fills output->move. First of all, as a dataset that was never
 * written gets its storage then. */
int ctl_open_output(struct gad_client *client, struct ctl_output *output, bool is_there,
                    struct gad_error *error);
struct ctl_progress;
/* Until ctl_progress_end(): the bar, where it is wanted, and Ctrl-C. */
void ctl_watch_output(struct ctl_output *output, struct ctl_progress *progress);
bool ctl_is_cancelled(const void *data); /* gad_move_options.is_cancelled and its kin */

/* ---- assign.c: the words of a command line */
#define CTL_MAX_OUTPUTS 16
#define CTL_MAX_ARGS    64

struct ctl_job {
    enum gad_masking masking;   /* of all sources */
    struct ctl_storage storage; /* of all new files */
    unsigned n_args, n_outputs;
    struct gad_argument args[CTL_MAX_ARGS];
    const char *sources[CTL_MAX_ARGS]; /* spec of an array argument, NULL for a scalar */
    struct gad_output outputs[CTL_MAX_OUTPUTS];
    char *text;        /* the expressions, cut up in place */
    char *definitions; /* their functions; NULL: none */
    char *with_definitions[CTL_MAX_OUTPUTS];
    unsigned n_with_definitions;
    char *pair_texts[CTL_MAX_OUTPUTS]; /* of outputs that are made of one expression for two */
};

/* "mag = sqrt(u*u); q, r = divmod(u, v)" or one expression without a name. */
int ctl_parse_expressions(struct ctl_job *job, const char *text, struct gad_error *error);
/* "u=winds.h5:/UWND" or "k=2.5" (a number or True/False is a scalar). */
int ctl_parse_argument(struct ctl_job *job, char *word, struct gad_error *error);
/* "-o DEST" (one output) or "-o NAME=DEST". */
/* Where a shell has made several words of a pattern. */
#define CTL_IN_QUOTES    "; many files are one source as a pattern in quotes: 'x*.npy'"
#define CTL_DESTINATIONS "file.npy, file.npz:name, file.h5:/dataset, file.raw" /* for the help */
int ctl_parse_destination(struct ctl_job *job, char *word, struct gad_error *error);
/* When all words are read: bad-argument where one is in no expression. */
int ctl_check_used(const struct ctl_job *job, struct gad_error *error);
int ctl_open_sources(struct ctl_job *job, struct gad_client *client, struct gad_error *error);
void ctl_warn_packed_job(const struct ctl_job *job);
void ctl_job_deinit(struct ctl_job *job);

/* ---- pairs.c: "q, r = divmod(a, b)" as two outputs */
int ctl_add_pair(struct ctl_job *job, const char *const names[2], const char *expr,
                 struct gad_error *error);

/* ---- show.c: what show prints or draws, of --show */
#define CTL_OPTION_SHOW 0x436
#define CTL_SHOW_OPTION                                                                            \
    {                                                                                              \
        "show", CTL_OPTION_SHOW, NULL, 0, "then draw the result in the terminal, as show does", 0  \
    }
int ctl_show_array(struct gad_client *client, const char *name, struct gad_array *array,
                   struct gad_error *error);
int ctl_show_file(struct gad_client *client, const char *spec, struct gad_error *error);

/* ---- progress.c: a bar on standard error; a line every ten seconds where it is no terminal */
struct ctl_progress {
    bool is_shown, is_bar, has_drawn;
    double began_s, told_s;
};
void ctl_progress_begin(struct ctl_progress *progress, bool is_quiet);
gad_progress_fn ctl_progress_draw;
/* Of work that is counted: n_done of n, above 0. left_s: below 0: as before. text: of both. */
void ctl_progress_count(struct ctl_progress *progress, uint64_t n_done, uint64_t n, double left_s,
                        const char *text);
void ctl_progress_end(struct ctl_progress *progress);

/* ---- scalar_text.c: single numbers, without a digit lost */
#define CTL_SCALAR_SIZE 40
/* "2", "0x1f", "2.5", "1e30", "nan", "True"; false when it is none. GAD_SCALAR_NONE: an integer
 * that does not fit 64 bits. */
bool ctl_read_scalar(const char *text, struct gad_scalar *ret) GAD_MUST_CHECK;
struct gad_scalar ctl_element(enum gad_dtype dtype, const void *data, size_t index);
/* An element or fill value of an array; returns the buffer. */
char *ctl_format_scalar(enum gad_dtype dtype, const struct gad_scalar *scalar,
                        char buffer[CTL_SCALAR_SIZE]);
struct json_object *ctl_scalar_json(const struct gad_scalar *scalar);

/* ---- values.c: elements and sizes as text and JSON */
int64_t ctl_element_i64(enum gad_dtype dtype, const void *data, size_t index);
double ctl_element_f64(enum gad_dtype dtype, const void *data, size_t index);
enum ctl_printing {
    CTL_PRINT_SOME, /* of long rows and of many rows the first ones */
    CTL_PRINT_ALL,
    CTL_PRINT_CSV, /* all, and nothing else: a line a row, commas */
};
void ctl_print_array(FILE *file, const struct gad_plan_output *what, const void *data,
                     enum ctl_printing printing);
struct json_object *ctl_array_json(const struct gad_plan_output *what, const void *data);
struct json_object *ctl_error_json(const struct gad_error *error);
struct json_object *ctl_stats_json(const struct gad_job_stats *stats);
/* Whether somebody knows how many tiles the job has. */
bool ctl_knows_tiles(const struct gad_job_status *status);
struct json_object *ctl_status_json(const struct gad_job_status *status);
/* To stderr: what a job went on from, if it did. */
void ctl_print_journal(const struct gad_job_stats *stats);
/* A job's journal, as it is before the job. to: what is added to; may be NULL. destination: its
 * name; NULL: its file's. path NULL: beside it. */
struct ctl_journal {
    char *path; /* NULL: none, or memory is short */
    const char *destination;
    struct stat before;
    bool was_there;
};
void ctl_look_at_journal(const struct gad_array *to, const char *destination, const char *path,
                         struct ctl_journal *ret);
/* After a job that failed, to stderr: whether it wrote to the journal, so perhaps to its output. */
void ctl_note_journal(const struct ctl_journal *journal, int status);
void ctl_journal_deinit(struct ctl_journal *journal);
/* "3.21 GB" (decimal units) into a buffer of 32; returns it. */
char *ctl_format_bytes(double n_bytes, char buffer[32]);
char *ctl_format_shape(int ndim, const int64_t *shape, char *buffer, size_t n_bytes);
/* Prints and frees. */
void ctl_put_json(struct json_object *object);
double ctl_now_s(void);
