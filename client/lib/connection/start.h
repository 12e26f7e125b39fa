/* Which daemon: finding its socket, starting a private one, and whether it may be trusted. */
#pragma once

#include "proto/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#define SOCKET_PATH_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)

struct start_options {
    const char *socket;      /* NULL: $GPUARRAYD_SOCKET, else the service, else private */
    const char *daemon_path; /* NULL: $GPUARRAYD_DAEMON, else the installed one */
    bool no_private_daemon;
    bool waits_for_service; /* no private daemon where the service's socket refuses: it restarts */
};

struct start_found {
    int fd;          /* connected; set on success alone */
    bool is_private; /* it may have left for want of work just now: trying again starts another */
    bool is_refused; /* the socket is there and nobody listens: its daemon may be restarting */
};

/* A connected socket of a trusted server. *ret is filled in any case. no-daemon, untrusted-server,
 * permission-denied, timeout, bad-argument (a path too long for a socket). */
int start_connect(const struct start_options *options, int64_t deadline, struct start_found *ret,
                  struct gad_error *error) GAD_MUST_CHECK;

/* Makes the directory (0700) where it is missing, and checks that it is the caller's alone.
 * untrusted-server when somebody else owns it or may write to it. */
int start_check_directory(const char *path, struct gad_error *error) GAD_MUST_CHECK;

/* The directory of the private daemon. */
int start_private_directory(char *ret_path, size_t n_bytes, struct gad_error *error) GAD_MUST_CHECK;
