/* Between scan_join.c (who joins what) and scan_process.c (a scan's process and its life). */
#pragma once

#include "daemon/broker/broker.h"
#include "daemon/broker/scans/scans.h"
#include "daemon/broker/sessions/account.h"
#include "proto/wire/conn.h"
#include "proto/wire/shared_scan.h"

/* How a description begins. Two clients mean one scan only where all of it is the same. */
struct scan_identity {
    struct scan_head head;
    struct scan_file file; /* the first one */
};

struct scan {
    struct broker *broker;
    struct list link;
    uint64_t id;
    struct scan_identity identity;
    int description_fd;
    struct child *child;
    struct conn *conn; /* NULL: nobody joins any more, it is about to end */
    struct loop_watch *watch;
    pid_t pid;
    struct list readers;
    unsigned n_readers;
    struct deadline idle, kill;
    uint64_t n_decoded, n_failed, n_taken; /* as it told last */
};

struct join;

struct scan_reader {
    struct broker *broker;
    struct list link, session_link;
    struct scan *scan;       /* NULL: it is not known yet which */
    struct session *session; /* NULL: gone */
    uint32_t id;
    bool has_waiter; /* the session waits for the answer to waiter_id */
    uint32_t waiter_id;
    struct join *join; /* until it is answered: with it another process may be asked; else NULL */
    bool is_shared;    /* the scan was there */
    struct charge scan_charge, fd_charge, bytes_charge;
};

/* Starts a process; the descriptor stays the caller's. */
int scan_start(struct broker *broker, const struct scan_identity *identity, int description_fd,
               struct scan **ret_scan) GAD_MUST_CHECK;
/* Sends the reader there, with its socket. After a failure nobody joins that scan any more, and the
 * reader is still the caller's. */
int scan_add(struct scan *scan, struct scan_reader *reader, int socket_take) GAD_MUST_CHECK;
/* Takes the reader from its scan and its session, and gives back what it was charged. */
void scan_reader_free(struct scan_reader *reader);
/* Answers the one who waits, if there is one, and frees the reader. */
void scan_reader_refuse(struct scan_reader *reader, const struct gad_error *error);

/* scan_join.c. Of a reader that still waits, whose process has ended: looks for another one, once.
 * False: it has had that, and is still the caller's. */
bool scan_join_again(struct scan_reader *reader);
struct join *scan_join_free(struct join *join); /* NULL */
