/* The settings of gpuarrayd: one table that feeds the command line, the file and what is written
 * about them. A setting's name is its key in the file and, with two dashes, its option. */
#pragma once

#include "daemon/broker/host/log.h"
#include "proto/request.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define SETTING_WORD_SIZE   32
#define SETTING_SOCKET_SIZE 108 /* of sun_path */
#define SETTING_PATH_SIZE   512
#define SETTING_VALUE_SIZE  SETTING_PATH_SIZE

#define OPTIONS_AUTO        UINT64_MAX /* of a size: the worker chooses */
#define OPTIONS_ALL_DEVICES ((UINT32_C(1) << ENGINE_MAX_DEVICES) - 1)

enum setting_id {
    SETTING_SOCKET,
    SETTING_SOCKET_MODE,
    SETTING_GROUP,
    SETTING_ADMIN_GROUP,
    SETTING_IDLE_EXIT,
    SETTING_SETTLE_TIME,
    SETTING_CLIENT_TIMEOUT,
    SETTING_SESSION_REQUESTS,
    SETTING_SESSION_REPLIES,
    SETTING_MESSAGE_MEMORY,
    SETTING_ENGINE,
    SETTING_POOL,
    SETTING_THREADS,
    SETTING_LEVEL,
    SETTING_HANG_TIMEOUT,
    SETTING_WORKER,
    SETTING_DEVICES,
    SETTING_DEVICE_BYTES,
    SETTING_PINNED_BYTES,
    SETTING_CHUNK_BYTES,
    SETTING_DEVICE_DEPTH,
    SETTING_REGISTER_BYTES,
    SETTING_CUDA_WORKER,
    SETTING_MAX_QUEUE,
    SETTING_MAX_ACTIVE,
    SETTING_USER_ACTIVE,
    SETTING_PROVIDER_TIMEOUT,
    SETTING_USER_WEIGHT, /* the first of [users]: see SETTING_N_OF_USERS */
    SETTING_USER_SESSIONS,
    SETTING_USER_JOBS,
    SETTING_USER_REQUESTS,
    SETTING_USER_REPLIES,
    SETTING_USER_PLAN_TIME,
    SETTING_USER_LOG_LINES,
    SETTING_USER_DESCRIPTORS,
    SETTING_REGION_LIMIT, /* the last one */
    SETTING_KEEP_JOBS,
    SETTING_KEEP_TIME,
    SETTING_KEEP_RESULTS,
    SETTING_LOG_LEVEL,
    SETTING_COUNT
};

enum setting_kind {
    SETTING_IS_SIZE,    /* uint64_t bytes: 32M, 50% of the memory */
    SETTING_IS_SECONDS, /* uint64_t ns: 60, 500ms, 10min */
    SETTING_IS_NUMBER,  /* unsigned */
    SETTING_IS_MODE,    /* mode_t: octal */
    SETTING_IS_TEXT,    /* char array: a path or a name */
    SETTING_IS_LEVEL,   /* char array: instructions of the processor; "" for auto */
    SETTING_IS_LOG_LEVEL,
    SETTING_IS_ENGINE,  /* enum engine_choice */
    SETTING_IS_DEVICES, /* uint32_t: bit i is device i */
};

enum setting_origin { SETTING_DEFAULT, SETTING_OF_FILE, SETTING_OF_COMMAND_LINE };

struct setting {
    const char *name, *section;
    enum setting_kind kind;
    const char *by_default, *least, *most; /* as written in the file; least and most may be NULL */
    const char *word;                      /* instead of a value: "auto", "own", or NULL */
    bool is_reloadable;                    /* SIGHUP applies it */
    bool is_no_share;                      /* a size that is not of the machine's memory: no 50% */
    size_t offset, size;                   /* in struct options */
    const char *doc;                       /* one line: what it is, without a full stop */
    const char *why;                       /* sentences: why this default, what else to know */
};

struct setting_source {
    enum setting_origin origin;
    unsigned line; /* of the file */
};

/* The settings of [users] may be others for single users and groups (policy.h). */
#define SETTING_N_OF_USERS (SETTING_REGION_LIMIT + 1 - SETTING_USER_WEIGHT)
#define POLICY_MAX_RULES   64u

struct policy_rule { /* a section [user NAME] or [group NAME] */
    bool is_group;
    uint32_t id; /* uid or gid */
    char name[SETTING_WORD_SIZE];
    uint64_t values[SETTING_N_OF_USERS];
    unsigned lines[SETTING_N_OF_USERS]; /* of the file; 0: the rule does not say it */
};

struct policy {
    unsigned n_rules;
    struct policy_rule rules[POLICY_MAX_RULES];
};

struct options {
    char socket_path[SETTING_SOCKET_SIZE];
    mode_t socket_mode;
    char group[SETTING_WORD_SIZE];       /* "": the daemon's own */
    char admin_group[SETTING_WORD_SIZE]; /* "": none */
    gid_t admin_gid;                     /* of that; -1: none */
    uint64_t idle_exit_ns;               /* 0: stay */
    uint64_t settle_ns;

    uint64_t client_timeout_ns;
    unsigned session_requests;
    uint64_t session_reply_bytes, message_memory_bytes;

    enum engine_choice engine; /* auto: the CPU's, and devices where there are any */
    uint64_t pool_bytes;
    unsigned n_threads;
    char level[SETTING_WORD_SIZE]; /* "": the best there is */
    uint64_t hang_timeout_ns;
    char worker[SETTING_PATH_SIZE]; /* "": looked for */

    uint32_t device_mask;                             /* devices that may be used */
    uint64_t device_bytes, pinned_bytes, chunk_bytes; /* or OPTIONS_AUTO */
    unsigned device_depth;                            /* 0: the worker chooses */
    uint64_t register_bytes;                          /* 0: none; or OPTIONS_AUTO */
    char cuda_worker[SETTING_PATH_SIZE];              /* "": looked for */

    unsigned max_queue, max_active, user_active;
    uint64_t provider_timeout_ns;
    unsigned user_weight, user_sessions, user_jobs, user_log_lines, user_descriptors;
    uint64_t user_request_bytes, user_reply_bytes, user_plan_ns, region_limit_bytes;
    struct policy policy;

    unsigned keep_jobs;
    uint64_t keep_ns, keep_result_bytes;
    enum log_level log_level;

    struct setting_source sources[SETTING_COUNT];

    char worker_path[SETTING_PATH_SIZE], cuda_worker_path[SETTING_PATH_SIZE]; /* as found */
    char scan_path[SETTING_PATH_SIZE]; /* "": there is none */

    /* What the command line alone can say. */
    bool is_private;
    int ready_fd;  /* -1: none */
    int listen_fd; /* -1, or a listening socket that was handed over */
    char config_path[SETTING_PATH_SIZE];
    bool has_config;        /* --config: the file must be there */
    bool is_without_config; /* private, and no --config */
};

static inline bool settings_have_device(const struct options *o, unsigned index)
{
    return index < ENGINE_MAX_DEVICES && (o->device_mask >> index & 1) != 0;
}

/* Descriptors that this process may have (RLIMIT_NOFILE). */
uint64_t settings_max_files(void);

const struct setting *setting_at(enum setting_id id);
/* The setting of that name; SETTING_COUNT where there is none. */
enum setting_id setting_find(const char *name);
/* The nearest name of a setting, or of a section, for a misspelt one; or NULL. */
const char *setting_suggest(const char *name);
const char *setting_suggest_section(const char *name);
bool setting_is_section(const char *name);

/* Fills what the table has; the rest of *o stays. */
void settings_set_defaults(struct options *o, bool is_private);
/* Reads a value. False: what was expected is in `expected`. *o is changed only on success. */
bool setting_parse(const struct setting *setting, const char *text, struct options *o,
                   char *expected, size_t n_bytes) GAD_MUST_CHECK;
/* The value of one that is a number or a size. */
uint64_t setting_number(const struct setting *setting, const struct options *o);
/* The value as the file would say it. */
void setting_format(const struct setting *setting, const struct options *o, char *text,
                    size_t n_bytes);
bool setting_is_same(const struct setting *setting, const struct options *a,
                     const struct options *b);
void setting_copy(enum setting_id id, const struct options *from, struct options *to);

/* "a size", "seconds": what kind of value it takes, for people. */
const char *setting_kind_name(const struct setting *setting);
const char *setting_when(const struct setting *setting); /* "by a reload" */

/* The commented file that says what goes without saying. */
void settings_print(FILE *out);
