/* Who shares a scan with whom.
 *
 *     scan.join --> descriptors checked, charged --> scans that begin the same?
 *                     no: a process of its own          |
 *                                                       v
 *                        a thread compares the descriptions, byte for byte
 *                     the same: it joins              another: a process of its own
 *
 * A description says which files are meant (device, inode, size, times), and where in them what
 * lies; as every byte of it is the same, nobody has chosen for another what is done with them. It
 * is no way to what its maker could not read: the process greets a reader only when that has handed
 * over a descriptor of each of these files, opened by itself (client/scan/scan_server.c).
 *
 * Descriptions are sealed, so they are what they are when they are looked at later; they may be
 * large, so a thread reads them. It works on copies of descriptors: scans and sessions may go
 * meanwhile.
 *
 * The descriptors are kept until the process has answered: where it ends before, another one is
 * asked.
 *
 * What a reader costs is charged to its user each time, also where it shares: a scan lives as long
 * as any of them.
 *
 * Called by methods.c and session.c.
 */
#define LOG_TOPIC "scan"
#include "daemon/broker/host/closer.h"
#include "daemon/broker/host/log.h"
#include "daemon/broker/scans/scan_impl.h"
#include "daemon/broker/sessions/inspect.h"
#include "daemon/broker/sessions/methods.h"
#include "daemon/broker/sessions/session.h"
#include "proto/util.h"
#include "proto/wire/pack.h"

#include <fcntl.h>
#include <string.h>

#define MAX_CANDIDATES 8u
#define COMPARED_BYTES (64u * 1024u)

enum { FD_DESCRIPTION, FD_SOCKET, N_FDS };

struct candidate {
    uint64_t id; /* of the scan, which may be gone afterwards */
    int description_fd;
};

struct join {
    struct scan_reader *reader;
    struct scan_identity identity;
    int fds[N_FDS];
    struct candidate candidates[MAX_CANDIDATES];
    unsigned n_candidates;
    uint64_t found; /* id of the scan that is the same; 0: none */
    bool is_again;
};

static void forget_candidates(struct join *join)
{
    for (unsigned i = 0; i < join->n_candidates; i++)
        closer_close(join->candidates[i].description_fd);
    join->n_candidates = 0;
    join->found = 0;
}

struct join *scan_join_free(struct join *join)
{
    if (!join)
        return NULL;
    forget_candidates(join);
    for (unsigned i = 0; i < N_FDS; i++)
        closer_close(join->fds[i]);
    free(join);
    return NULL;
}

/* Once its scan is known ----------------------------------------------------------------------- */

static int add(const struct join *join, struct scan *scan)
{
    int socket = fcntl(join->fds[FD_SOCKET], F_DUPFD_CLOEXEC, 3);
    return socket < 0 ? -errno : scan_add(scan, join->reader, socket);
}

/* A scan whose process has just died is still there until that is known. */
static int enter(struct join *join, struct scan *scan)
{
    struct broker *broker = join->reader->broker;
    join->reader->is_shared = true;
    if (scan && add(join, scan) == 0)
        return 0;
    join->reader->is_shared = false;
    int r = scan_start(broker, &join->identity, join->fds[FD_DESCRIPTION], &scan);
    return r == 0 ? add(join, scan) : r;
}

/* The request is answered, or will be by the process. */
static void finish(struct join *join, struct scan *scan)
{
    struct gad_error error = {0};
    int r = join->reader->session ? enter(join, scan) : 0;
    forget_candidates(join);
    if (r < 0)
        error_set(&error, r == -ENOMEM ? GAD_NO_MEMORY : GAD_WORKER_LOST, NULL,
                  "the process of the shared scan is not there: %s", strerrordesc_np(-r));
    if (r < 0 || !join->reader->session)
        scan_reader_refuse(join->reader, &error);
}

/* Comparing ------------------------------------------------------------------------------------ */

static bool is_same(int a, int b, uint64_t n_bytes)
{
    _cleanup_free_ char *of_a = malloc(COMPARED_BYTES), *of_b = malloc(COMPARED_BYTES);
    bool same = of_a && of_b;
    for (uint64_t done = 0; done < n_bytes && same; done += COMPARED_BYTES) {
        size_t n = (size_t)min_u64(n_bytes - done, COMPARED_BYTES);
        same = pread(a, of_a, n, (off_t)done) == (ssize_t)n &&
               pread(b, of_b, n, (off_t)done) == (ssize_t)n && memcmp(of_a, of_b, n) == 0;
    }
    return same;
}

static void on_work(void *userdata)
{
    struct join *join = userdata;
    uint64_t n_bytes = scan_description_bytes(&join->identity.head);
    for (unsigned i = 0; i < join->n_candidates && join->found == 0; i++)
        if (is_same(join->fds[FD_DESCRIPTION], join->candidates[i].description_fd, n_bytes))
            join->found = join->candidates[i].id;
}

static struct scan *find_scan(const struct broker *broker, uint64_t id)
{
    list_for_each (it, &broker->scans) {
        struct scan *scan = list_entry(it, struct scan, link);
        if (scan->id == id && scan->conn)
            return scan;
    }
    return NULL;
}

static void on_done(void *userdata)
{
    struct join *join = userdata;
    finish(join, find_scan(join->reader->broker, join->found));
}

static bool is_candidate(const struct scan *scan, const struct scan_identity *identity)
{
    return scan->conn && memcmp(&scan->identity, identity, sizeof(*identity)) == 0;
}

static int begin(struct join *join)
{
    struct broker *broker = join->reader->broker;
    list_for_each (it, &broker->scans) {
        const struct scan *scan = list_entry(it, struct scan, link);
        if (join->n_candidates == MAX_CANDIDATES || !is_candidate(scan, &join->identity))
            continue;
        int fd = fcntl(scan->description_fd, F_DUPFD_CLOEXEC, 3);
        if (fd >= 0)
            join->candidates[join->n_candidates++] = (struct candidate){scan->id, fd};
    }
    if (join->n_candidates > 0)
        return loop_work(broker->loop, on_work, on_done, join);
    finish(join, NULL);
    return 0;
}

bool scan_join_again(struct scan_reader *reader)
{
    struct join *join = reader->join;
    if (!join || join->is_again || !reader->session)
        return false;
    join->is_again = true;
    return begin(join) == 0;
}

/* Checking ------------------------------------------------------------------------------------- */

static int check(const struct session *session, const int *fds, struct scan_identity *ret,
                 struct gad_error *error)
{
    struct inspected description;
    int r =
        inspect_memfd(fds[FD_DESCRIPTION], F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, sizeof(*ret),
                      false, GAD_BAD_CHUNK_TABLE, "description", &description, error);
    if (r == 0)
        r = inspect_socketpair(fds[FD_SOCKET], session->uid, "socket", error);
    if (r)
        return r;
    if (pread(fds[FD_DESCRIPTION], ret, sizeof(*ret), 0) != sizeof(*ret))
        return error_set(error, GAD_BAD_CHUNK_TABLE, "description", "it cannot be read");
    return scan_head_check(&ret->head, description.size_bytes, error);
}

static int charge(struct scan_reader *reader, uid_t uid, const struct scan_head *head,
                  struct gad_error *error)
{
    struct accounts *accounts = reader->broker->accounts;
    struct scan_layout layout;
    scan_layout(head->chunk_bytes, &layout);
    int r = account_charge(accounts, uid, ACCOUNT_SCANS, 1, &reader->scan_charge, error);
    if (r == 0)
        r = account_charge(accounts, uid, ACCOUNT_DESCRIPTORS, N_FDS, &reader->fd_charge, error);
    if (r == 0)
        r = account_charge(accounts, uid, ACCOUNT_REGION_BYTES,
                           layout.size_bytes + scan_description_bytes(head) +
                               (uint64_t)head->n_files * SCAN_FILE_COST,
                           &reader->bytes_charge, error);
    return r;
}

static int new_reader(const struct request *q, const struct scan_identity *identity,
                      struct scan_reader **ret_reader, struct gad_error *error)
{
    struct session *session = q->session;
    struct scan_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return -ENOMEM;
    *reader = (struct scan_reader){.broker = session->broker,
                                   .session = session,
                                   .id = ++session->broker->last_reader_id,
                                   .has_waiter = true,
                                   .waiter_id = q->id};
    list_init(&reader->link);
    list_init(&reader->session_link);
    int r = charge(reader, session->uid, &identity->head, error);
    if (r) {
        scan_reader_free(reader);
        return r;
    }
    list_push_back(&session->scans, &reader->session_link);
    *ret_reader = reader;
    return 0;
}

static int check_request(const struct request *q, struct gad_error *error)
{
    const struct broker *broker = q->session->broker;
    if (broker->is_draining)
        return error_set(error, GAD_SHUTTING_DOWN, NULL, "the daemon is leaving");
    if (!broker->options.scan_path[0])
        return error_set(error, GAD_NOT_FOUND, NULL,
                         "there is no program for shared scans (gpuarrayd-scan)");
    if (q->frame->n_fds == N_FDS)
        return 0;
    error_set(error, GAD_BAD_REQUEST, NULL, "scan.join comes with two descriptors");
    error_expected(error, "2 descriptors: the description, the socket");
    error_found(error, "%u descriptors", q->frame->n_fds);
    return GAD_BAD_REQUEST;
}

int scans_join(const struct request *q, struct gad_error *error)
{
    struct scan_identity identity;
    struct scan_reader *reader;
    int r = check_request(q, error);
    if (r == 0)
        r = check(q->session, q->frame->fds, &identity, error);
    if (r)
        return r;
    struct join *join = calloc(1, sizeof(*join));
    if (!join)
        return -ENOMEM;
    r = new_reader(q, &identity, &reader, error);
    if (r) {
        free(join);
        return r;
    }
    join->reader = reader;
    join->identity = identity;
    for (unsigned i = 0; i < N_FDS; i++)
        join->fds[i] = steal_fd(&q->frame->fds[i]);
    reader->join = join;
    r = begin(join);
    if (r < 0)
        scan_reader_free(reader);
    return r;
}

/* What there is -------------------------------------------------------------------------------- */

static bool may_see(const struct scan *scan, const struct session *session)
{
    if (session_is_admins(session))
        return true;
    list_for_each (it, &scan->readers) {
        const struct scan_reader *reader = list_entry(it, struct scan_reader, link);
        if (reader->session && reader->session->uid == session->uid)
            return true;
    }
    return false;
}

static void pack_scan(msgpack_packer *p, const struct scan *scan)
{
    msgpack_pack_map(p, 11);
    pack_key_u64(p, "scan", scan->id);
    pack_key_u64(p, "pid", (uint64_t)scan->pid);
    pack_key_u64(p, "device", scan->identity.file.device);
    pack_key_u64(p, "inode", scan->identity.file.inode);
    pack_key_u64(p, "files", scan->identity.head.n_files);
    pack_key_u64(p, "chunks", scan->identity.head.n_chunks);
    pack_key_u64(p, "chunk_bytes", scan->identity.head.chunk_bytes);
    pack_key_u64(p, "readers", scan->n_readers);
    pack_key_u64(p, "decoded", scan->n_decoded);
    pack_key_u64(p, "failed", scan->n_failed);
    pack_key_u64(p, "taken", scan->n_taken);
}

void scans_pack(msgpack_packer *p, const struct session *session)
{
    const struct broker *broker = session->broker;
    uint32_t n = 0;
    list_for_each (it, &broker->scans)
        n += may_see(list_entry(it, struct scan, link), session);
    msgpack_pack_array(p, n);
    list_for_each (it, &broker->scans) {
        const struct scan *scan = list_entry(it, struct scan, link);
        if (may_see(scan, session))
            pack_scan(p, scan);
    }
}

void scans_count(const struct broker *broker, uint64_t *ret_scans, uint64_t *ret_readers)
{
    *ret_scans = *ret_readers = 0;
    list_for_each (it, &broker->scans) {
        ++*ret_scans;
        *ret_readers += list_entry(it, struct scan, link)->n_readers;
    }
}
