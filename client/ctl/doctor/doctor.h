/* gpuarrayctl doctor: what the checks share.
 *
 * A check looks at one thing and says what it found, once or more often. It changes nothing, starts
 * no daemon, and asks no file system that could be away.
 */
#pragma once

#include "client/ctl/ctl.h"
#include "client/ctl/facts.h"

enum finding_level {
    FINDING_OK,
    FINDING_NOTE,    /* worth knowing */
    FINDING_WARNING, /* works, and may not as well or as much as it should */
    FINDING_PROBLEM, /* something does not work */
    FINDING_N_LEVELS
};

struct doctor {
    char **paths; /* of the command line */
    size_t n_paths;

    const char *socket; /* the one that is looked for first */
    bool is_given;      /* by GPUARRAYD_SOCKET */
    bool has_daemon;    /* it answered: facts are filled */
    struct daemon_facts facts;
    struct gad_error error; /* else: why not */

    const char *check; /* the one that speaks */
    bool json;
    struct json_object *findings;
    unsigned n_findings[FINDING_N_LEVELS];
};

/* advice: what to do, NULL for FINDING_OK alone. */
void doctor_say(struct doctor *d, enum finding_level level, const char *advice, const char *format,
                ...) GAD_PRINTF(4, 5);

/* The first line of a small file of the kernel's; false: it cannot be read. */
bool doctor_read(const char *path, char *ret, size_t n_bytes);

/* doctor_files.c: on a file system that answers at once. */
bool doctor_is_local(const char *path);

typedef void doctor_fn(struct doctor *d);
doctor_fn doctor_locked_memory, doctor_descriptors, doctor_address_space; /* doctor_limits.c */
doctor_fn doctor_shared_memory, doctor_overcommit;                        /* doctor_memory.c */
doctor_fn doctor_cgroup;                                                  /* doctor_cgroup.c */
doctor_fn doctor_socket, doctor_group;                                    /* doctor_socket.c */
doctor_fn doctor_daemon;                                                  /* doctor_daemon.c */
doctor_fn doctor_gpu;                                                     /* doctor_gpu.c */
doctor_fn doctor_libraries;                                               /* doctor_libraries.c */
doctor_fn doctor_environment;                                             /* doctor_environment.c */
doctor_fn doctor_files;                                                   /* doctor_files.c */
doctor_fn doctor_cache;                                                   /* doctor_cache.c */
doctor_fn doctor_login;                                                   /* doctor_login.c */
