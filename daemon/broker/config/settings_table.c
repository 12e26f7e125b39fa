/* The table of settings: every limit that an administrator may move, with its unit, its default and
 * why it is what it is. The command line, the file, the manual page and gpuarrayd.conf all say what
 * is written here (tests compare them), so a setting is added here and nowhere else.
 *
 * A row's `doc` is one line for --help, `why` the sentences that follow it in the file. Defaults,
 * bounds and words are written as the file writes them, and are read by the same code.
 *
 * Called by settings.c.
 */
#include "daemon/broker/config/settings_table.h"

#define FIELD(member)                                                                              \
    .offset = offsetof(struct options, member), .size = sizeof(((struct options *)NULL)->member)

const struct setting settings_table[SETTING_COUNT] = {
    /* server: the socket, and how the daemon leaves. */
    [SETTING_SOCKET] =
        {
            .name = "socket",
            .section = "server",
            .kind = SETTING_IS_TEXT,
            .by_default = "/run/gpuarrayd/socket",
            FIELD(socket_path),
            .doc = "path of the socket",
            .why = "Clients look for the service at the default; another path must be given to "
                   "them in GPUARRAYD_SOCKET. A socket that was handed over by systemd is used "
                   "instead.",
        },
    [SETTING_SOCKET_MODE] =
        {
            .name = "socket-mode",
            .section = "server",
            .kind = SETTING_IS_MODE,
            .by_default = "0660",
            .least = "0",
            .most = "0777",
            FIELD(socket_mode),
            .doc = "mode of the socket, octal",
            .why = "Who may write to the socket may use the daemon: its owner and its group. A "
                   "private daemon's is 0600.",
        },
    [SETTING_GROUP] =
        {
            .name = "group",
            .section = "server",
            .kind = SETTING_IS_TEXT,
            .by_default = "own",
            .word = "own",
            FIELD(group),
            .doc = "group of the socket, by name or number",
            .why = "own: the daemon's own group. Whoever is in it may use the daemon. The daemon "
                   "must be root or a member to give its socket to another group.",
        },
    [SETTING_ADMIN_GROUP] =
        {
            .name = "admin-group",
            .section = "server",
            .kind = SETTING_IS_TEXT,
            .by_default = "none",
            .word = "none",
            .is_reloadable = true,
            FIELD(admin_group),
            .doc = "group of admins, by name or number",
            .why = "As root and the daemon's own user, its members may see, cancel and pause "
                   "everybody's jobs, say weights and have the daemon take no more jobs. It is the "
                   "groups of the process that count, as it connected.",
        },
    [SETTING_IDLE_EXIT] =
        {
            .name = "idle-exit",
            .section = "server",
            .kind = SETTING_IS_SECONDS,
            .by_default = "0",
            .is_reloadable = true,
            FIELD(idle_exit_ns),
            .doc = "leave after so long without session or job",
            .why = "0: stay. With socket activation the next client starts it again; a daemon "
                   "that stays answers at once.",
        },
    [SETTING_SETTLE_TIME] =
        {
            .name = "settle-time",
            .section = "server",
            .kind = SETTING_IS_SECONDS,
            .by_default = "10",
            .least = "0",
            .most = "1h",
            .is_reloadable = true,
            FIELD(settle_ns),
            .doc = "at the end, wait so long for owners to put computed outputs in their places",
            .why =
                "Renaming a file takes milliseconds, a full disk cache that is written out first "
                "takes seconds. It should be less than the service manager's stop time-out.",
        },
    /* sessions: what one connection may make wait. */
    [SETTING_CLIENT_TIMEOUT] =
        {
            .name = "client-timeout",
            .section = "sessions",
            .kind = SETTING_IS_SECONDS,
            .by_default = "30",
            .least = "1",
            .most = "24h",
            .is_reloadable = true,
            FIELD(client_timeout_ns),
            .doc =
                "drop a client that leaves more than 4 MiB unread, and reads nothing, for so long",
            .why =
                "Less where its user has more than user-replies; also one that has sent a part of "
                "a message and not the rest. Both wait in the daemon's memory. A client that is "
                "stopped in a debugger may need more.",
        },
    [SETTING_SESSION_REQUESTS] =
        {
            .name = "session-requests",
            .section = "sessions",
            .kind = SETTING_IS_NUMBER,
            .by_default = "8192",
            .least = "16",
            .most = "1048576",
            .is_reloadable = true,
            FIELD(session_requests),
            .doc = "requests of a connection, and waits of a user, that may be unanswered",
            .why = "A client sends many without waiting, to keep the worker busy. More than "
                   "user-jobs are of little use.",
        },
    [SETTING_SESSION_REPLIES] =
        {
            .name = "session-replies",
            .section = "sessions",
            .kind = SETTING_IS_SIZE,
            .by_default = "64M",
            .least = "8M",
            .most = "1T",
            .is_reloadable = true,
            FIELD(session_reply_bytes),
            .doc = "drop a client at once that leaves so many bytes of replies unread",
            .why = "From 4 MiB on it is not read from, so only jobs that were under way can bring "
                   "it here. Large results of jobs are not counted: see user-replies.",
        },
    [SETTING_MESSAGE_MEMORY] =
        {
            .name = "message-memory",
            .section = "sessions",
            .kind = SETTING_IS_SIZE,
            .by_default = "3M",
            .least = "1M",
            .most = "1T",
            .is_reloadable = true,
            FIELD(message_memory_bytes),
            .doc = "memory for large requests of a user's connections",
            .why = "Beyond it those that hold much are not read from until others hold less: the "
                   "daemon stays small, and nobody is refused. All users together have twice as "
                   "much.",
        },

    /* engine: what computes, and what the worker is given. */
    [SETTING_ENGINE] =
        {
            .name = "engine",
            .section = "engine",
            .kind = SETTING_IS_ENGINE,
            .by_default = "auto",
            FIELD(engine),
            .doc = "what computes: auto, cpu or cuda",
            .why = "auto: the processor, and NVIDIA devices where there are any; each job goes "
                   "where it ends sooner. cpu: no device is opened. cuda: devices alone, and the "
                   "daemon refuses to start without one.",
        },
    [SETTING_POOL] =
        {
            .name = "pool",
            .section = "engine",
            .kind = SETTING_IS_SIZE,
            .by_default = "32M",
            .least = "64K",
            .most = "1T",
            FIELD(pool_bytes),
            .doc = "memory that all jobs run in, taken once",
            .why = "Element-wise work and sums stream through it: more makes them no faster. A job "
                   "that keeps accumulators may use three eighths of it.",
        },
    [SETTING_THREADS] =
        {
            .name = "threads",
            .section = "engine",
            .kind = SETTING_IS_NUMBER,
            .by_default = "auto",
            .least = "1",
            .most = "1024",
            .word = "auto",
            FIELD(n_threads),
            .doc = "threads that compute",
            .why = "auto: one for each processor that the daemon may use. Fewer leave the rest to "
                   "programs that do not ask the daemon.",
        },
    [SETTING_LEVEL] =
        {
            .name = "level",
            .section = "engine",
            .kind = SETTING_IS_LEVEL,
            .by_default = "auto",
            .word = "auto",
            FIELD(level),
            .doc = "instructions of the processor: plain, baseline, avx2 or avx512",
            .why = "auto: the best that the processor has. Last bits of a few functions differ "
                   "between them: name one to get the same results on different machines.",
        },
    [SETTING_HANG_TIMEOUT] =
        {
            .name = "hang-timeout",
            .section = "engine",
            .kind = SETTING_IS_SECONDS,
            .by_default = "60",
            .least = "0.01",
            .most = "24h",
            .is_reloadable = true,
            FIELD(hang_timeout_ns),
            .doc = "processor time that a tile may take before the worker is replaced",
            .why =
                "A tile takes milliseconds, or says in between that it goes on; a minute means a "
                "fault. Time in which a loaded machine gave it no processor does not count. Ten "
                "times as long is given to one that waits, for a disk or whatever else.",
        },
    [SETTING_WORKER] =
        {
            .name = "worker",
            .section = "engine",
            .kind = SETTING_IS_TEXT,
            .by_default = "auto",
            .word = "auto",
            FIELD(worker),
            .doc = "path of the worker's program",
            .why = "auto: beside the daemon's own program, then in the installation's libexec "
                   "directory.",
        },

    /* cuda: what a device's worker is given. */
    [SETTING_DEVICES] =
        {
            .name = "devices",
            .section = "cuda",
            .kind = SETTING_IS_DEVICES,
            .by_default = "all",
            .word = "all",
            FIELD(device_mask),
            .doc = "NVIDIA devices that may be used, by number",
            .why = "Their numbers are those that gpuarrayctl info shows. Each has a worker and a "
                   "queue of its own.",
        },
    [SETTING_DEVICE_BYTES] =
        {
            .name = "device-bytes",
            .section = "cuda",
            .kind = SETTING_IS_SIZE,
            .by_default = "auto",
            .least = "12M",
            .most = "1T",
            .word = "auto",
            .is_no_share = true,
            FIELD(device_bytes),
            .doc = "memory of a device that all its jobs run in, taken once",
            .why = "auto: 1G, less on a small card. The rest of the card stays free for programs "
                   "that do not ask the daemon. Jobs stream through it: more makes matrix "
                   "products faster, and few others. An eighth, at most 32M, is cuBLAS's; what the "
                   "pool does not have is for matrix products, a third at least.",
        },
    [SETTING_PINNED_BYTES] =
        {
            .name = "pinned-bytes",
            .section = "cuda",
            .kind = SETTING_IS_SIZE,
            .by_default = "auto",
            .least = "10M",
            .most = "1T",
            .word = "auto",
            FIELD(pinned_bytes),
            .doc = "locked memory of the machine that copies to and from a device pass, taken once",
            .why = "auto: 512M, less where the machine or the card has less. It cannot be swapped "
                   "out. The pool of a device is the smaller of this and two thirds of what of "
                   "device-bytes is not cuBLAS's.",
        },
    [SETTING_CHUNK_BYTES] =
        {
            .name = "chunk-bytes",
            .section = "cuda",
            .kind = SETTING_IS_SIZE,
            .by_default = "auto",
            .least = "2M",
            .most = "16M",
            .word = "auto",
            .is_no_share = true,
            FIELD(chunk_bytes),
            .doc = "piece of the pool that one copy to a device and back passes",
            .why = "auto: by a measurement of the link at start. Larger pieces make the most of "
                   "the link, smaller ones let more of them overlap and jobs take turns sooner.",
        },
    [SETTING_DEVICE_DEPTH] =
        {
            .name = "device-depth",
            .section = "cuda",
            .kind = SETTING_IS_NUMBER,
            .by_default = "auto",
            .least = "3",
            .most = "16",
            .word = "auto",
            FIELD(device_depth),
            .doc = "pieces that may be at a device at a time",
            .why = "auto: by the same measurement, at least three: one is copied there while one "
                   "is computed and one is copied back.",
        },
    [SETTING_REGISTER_BYTES] =
        {
            .name = "register-bytes",
            .section = "cuda",
            .kind = SETTING_IS_SIZE,
            .by_default = "auto",
            .least = "0",
            .most = "1T",
            .word = "auto",
            FIELD(register_bytes),
            .doc = "shared memory of clients that may be locked so that a device reads it itself",
            .why = "auto: as the machine's memory and the measurement of the link advise. Only "
                   "memory that is used again is locked, and it is let go when idle. 0: none; "
                   "everything is copied through pinned-bytes.",
        },
    [SETTING_CUDA_WORKER] =
        {
            .name = "cuda-worker",
            .section = "cuda",
            .kind = SETTING_IS_TEXT,
            .by_default = "auto",
            .word = "auto",
            FIELD(cuda_worker),
            .doc = "path of the program that works with a device",
            .why = "auto: looked for where the worker's program is. Without it there are no "
                   "devices.",
        },

    /* queue: what all users share. */
    [SETTING_MAX_QUEUE] =
        {
            .name = "max-queue",
            .section = "queue",
            .kind = SETTING_IS_NUMBER,
            .by_default = "16384",
            .least = "1",
            .most = "1048576",
            .is_reloadable = true,
            FIELD(max_queue),
            .doc = "jobs that may wait, of all users",
            .why = "A waiting job takes about 2 KiB and its descriptors. One more is refused with "
                   "queue-full.",
        },
    [SETTING_MAX_ACTIVE] =
        {
            .name = "max-active",
            .section = "queue",
            .kind = SETTING_IS_NUMBER,
            .by_default = "256",
            .least = "1",
            .most = "16384",
            .is_reloadable = true,
            FIELD(max_active),
            .doc = "jobs that the worker has in hand at a time",
            .why = "They take turns tile by tile. Enough that threads never wait for the broker; "
                   "few enough that the others can still be put in order.",
        },
    [SETTING_USER_ACTIVE] =
        {
            .name = "user-active",
            .section = "queue",
            .kind = SETTING_IS_NUMBER,
            .by_default = "4",
            .least = "1",
            .most = "16384",
            .is_reloadable = true,
            FIELD(user_active),
            .doc = "so many jobs of each user are active whatever others have there",
            .why = "At most max-active. With it a newcomer's job starts at once while somebody's "
                   "thousand jobs fill the worker.",
        },
    [SETTING_PROVIDER_TIMEOUT] =
        {
            .name = "provider-timeout",
            .section = "queue",
            .kind = SETTING_IS_SECONDS,
            .by_default = "30",
            .least = "0.1",
            .most = "24h",
            .is_reloadable = true,
            FIELD(provider_timeout_ns),
            .doc = "time that a job's client may leave it without a block while others wait for "
                   "the pool's memory that it keeps",
            .why = "The memory is then theirs. The job begins again when its client answers; where "
                   "it cannot it ends with provider-failed.",
        },

    /* users: what one user may have and hold. */
    [SETTING_USER_WEIGHT] =
        {
            .name = "user-weight",
            .section = "users",
            .kind = SETTING_IS_NUMBER,
            .by_default = "1",
            .least = "1",
            .most = "1000",
            .is_reloadable = true,
            FIELD(user_weight),
            .doc = "weight of a user whose jobs compute beside others'",
            .why = "A user of weight 2 has twice the time of one of weight 1 while both have work; "
                   "alone everybody has all of it. Admins may say another one with "
                   "'gpuarrayctl users --weight', until the next reload.",
        },
    [SETTING_USER_SESSIONS] =
        {
            .name = "user-sessions",
            .section = "users",
            .kind = SETTING_IS_NUMBER,
            .by_default = "64",
            .least = "1",
            .most = "65536",
            .is_reloadable = true,
            FIELD(user_sessions),
            .doc = "connections of a user",
            .why =
                "A program needs one. Each takes a descriptor. 8 more are in reserve, to look at "
                "jobs and to cancel them when all others are in use.",
        },
    [SETTING_USER_JOBS] =
        {
            .name = "user-jobs",
            .section = "users",
            .kind = SETTING_IS_NUMBER,
            .by_default = "4096",
            .least = "1",
            .most = "1048576",
            .is_reloadable = true,
            FIELD(user_jobs),
            .doc = "jobs of a user that wait, run or settle",
            .why = "A quarter of the queue: one user cannot fill it for the others. At most "
                   "max-queue and max-active together.",
        },
    [SETTING_USER_REQUESTS] =
        {
            .name = "user-requests",
            .section = "users",
            .kind = SETTING_IS_SIZE,
            .by_default = "64M",
            .least = "1M",
            .most = "1T",
            .is_reloadable = true,
            FIELD(user_request_bytes),
            .doc = "memory for the messages of a user's jobs that have not ended",
            .why = "A message has at most 1 MiB, and only arrays inside it make it large.",
        },
    [SETTING_USER_REPLIES] =
        {
            .name = "user-replies",
            .section = "users",
            .kind = SETTING_IS_SIZE,
            .by_default = "8M",
            .least = "2M",
            .most = "1T",
            .is_reloadable = true,
            FIELD(user_reply_bytes),
            .doc = "memory for results and replies that a user's connections have not read",
            .why = "Beyond it jobs whose results come in messages wait, and connections that leave "
                   "more than 32 KiB unread are not read from, until they read. A result counts "
                   "once, however many wait for it. All users together have four times as much.",
        },
    [SETTING_USER_PLAN_TIME] =
        {
            .name = "user-plan-time",
            .section = "users",
            .kind = SETTING_IS_SECONDS,
            .by_default = "10",
            .least = "100ms",
            .most = "24h",
            .is_reloadable = true,
            FIELD(user_plan_ns),
            .doc = "time of a processor that planning a user's jobs may have taken lately",
            .why = "An eighth of it is forgotten each second, so a user alone may plan all the "
                   "time. Beyond it requests that take long to plan are refused; others are "
                   "counted.",
        },
    [SETTING_USER_LOG_LINES] =
        {
            .name = "user-log-lines",
            .section = "users",
            .kind = SETTING_IS_NUMBER,
            .by_default = "1000",
            .least = "10",
            .most = "1048576",
            .is_reloadable = true,
            FIELD(user_log_lines),
            .doc = "lines of the log that told of a user lately",
            .why = "An eighth of them is forgotten each second. Beyond it lines are left out, and "
                   "their number is told.",
        },
    [SETTING_USER_DESCRIPTORS] =
        {
            .name = "user-descriptors",
            .section = "users",
            .kind = SETTING_IS_NUMBER,
            .by_default = "auto",
            .least = "16",
            .most = "1048576",
            .word = "auto",
            .is_reloadable = true,
            FIELD(user_descriptors),
            .doc = "open files kept for a user's jobs, regions and unread messages",
            .why = "auto: a quarter of what the daemon may open (LimitNOFILE= of the service).",
        },
    [SETTING_REGION_LIMIT] =
        {
            .name = "region-limit",
            .section = "users",
            .kind = SETTING_IS_SIZE,
            .by_default = "50%",
            .is_reloadable = true,
            FIELD(region_limit_bytes),
            .doc = "shared memory that a user may attach",
            .why = "It is the clients' own memory, or a share of the machine's. The daemon keeps "
                   "what is attached alive until it is detached. 0: none.",
        },

    /* records: jobs that have ended. */
    [SETTING_KEEP_JOBS] =
        {
            .name = "keep-jobs",
            .section = "records",
            .kind = SETTING_IS_NUMBER,
            .by_default = "256",
            .least = "1",
            .most = "65536",
            .is_reloadable = true,
            FIELD(keep_jobs),
            .doc = "ended jobs of a user that are remembered",
            .why = "wait, status and a repeated request find the outcome there. Those of which "
                   "somebody has got the outcome go first; of the others 16 times as many stay.",
        },
    [SETTING_KEEP_TIME] =
        {
            .name = "keep-time",
            .section = "records",
            .kind = SETTING_IS_SECONDS,
            .by_default = "600",
            .least = "1",
            .most = "24h",
            .is_reloadable = true,
            FIELD(keep_ns),
            .doc = "time that an ended job is remembered",
            .why = "Long enough for a client to come back after its connection was lost.",
        },
    [SETTING_KEEP_RESULTS] =
        {
            .name = "keep-results",
            .section = "records",
            .kind = SETTING_IS_SIZE,
            .by_default = "4M",
            .least = "64K",
            .most = "1G",
            .is_reloadable = true,
            FIELD(keep_result_bytes),
            .doc = "memory for the results of a user that nobody has fetched yet",
            .why = "Only results inside messages, at most 64 KiB each. An eighth of it is for "
                   "results that were fetched.",
        },

    /* log */
    [SETTING_LOG_LEVEL] =
        {
            .name = "log-level",
            .section = "log",
            .kind = SETTING_IS_LOG_LEVEL,
            .by_default = "warn",
            .is_reloadable = true,
            FIELD(log_level),
            .doc = "error, warn, info or debug",
            .why = "warn: what somebody should know. info: also one line for each job that ends, "
                   "with its user, outcome, times and bytes.",
        },
};
