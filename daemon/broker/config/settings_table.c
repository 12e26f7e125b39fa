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

/* A row: name, section, kind, default, least and most (NULL: no bound), where it is in struct
 * options, and the other fields. */
#define ROW(name_, section_, kind_, by_default_, least_, most_, member, ...)                       \
    {                                                                                              \
        .name = (name_), .section = (section_), .kind = SETTING_IS_##kind_,                        \
        .by_default = (by_default_), .least = (least_), .most = (most_),                           \
        .offset = offsetof(struct options, member),                                                \
        .size = sizeof(((struct options *)NULL)->member), __VA_ARGS__                              \
    }

const struct setting settings_table[SETTING_COUNT] = {
    /* server: the socket, and how the daemon leaves. */
    [SETTING_SOCKET] =
        ROW("socket", "server", TEXT, "/run/gpuarrayd/socket", NULL, NULL, socket_path,
            .doc = "path of the socket",
            .why = "Clients look for the service at the default; another path must be given to "
                   "them in GPUARRAYD_SOCKET. A socket that was handed over by systemd is used "
                   "instead."),
    [SETTING_SOCKET_MODE] =
        ROW("socket-mode", "server", MODE, "0660", "0", "0777", socket_mode,
            .doc = "mode of the socket, octal",
            .why = "Who may write to the socket may use the daemon: its owner and its group. A "
                   "private daemon's is 0600."),
    [SETTING_GROUP] =
        ROW("group", "server", TEXT, "own", NULL, NULL, group, .word = "own",
            .doc = "group of the socket, by name or number",
            .why = "own: the daemon's own group. Whoever is in it may use the daemon. The daemon "
                   "must be root or a member to give its socket to another group."),
    [SETTING_ADMIN_GROUP] =
        ROW("admin-group", "server", TEXT, "none", NULL, NULL, admin_group, .word = "none",
            .is_reloadable = true, .doc = "group of admins, by name or number",
            .why = "As root and the daemon's own user, its members may see, cancel and pause "
                   "everybody's jobs, say weights and have the daemon take no more jobs. It is the "
                   "groups of the process that count, as it connected."),
    [SETTING_IDLE_EXIT] =
        ROW("idle-exit", "server", SECONDS, "0", NULL, NULL, idle_exit_ns, .is_reloadable = true,
            .doc = "leave after so long without session or job",
            .why = "0: stay. With socket activation the next client starts it again; a daemon "
                   "that stays answers at once."),
    [SETTING_SETTLE_TIME] = ROW(
        "settle-time", "server", SECONDS, "10", "0", "1h", settle_ns, .is_reloadable = true,
        .doc = "at the end, wait so long for owners to put computed outputs in their places",
        .why = "Renaming a file takes milliseconds, a full disk cache that is written out first "
               "takes seconds. It should be less than the service manager's stop time-out."),
    /* sessions: what one connection may make wait. */
    [SETTING_CLIENT_TIMEOUT] = ROW(
        "client-timeout", "sessions", SECONDS, "30", "1", "24h", client_timeout_ns,
        .is_reloadable = true,
        .doc = "drop a client that leaves more than 4 MiB unread, and reads nothing, for so long",
        .why = "Less where its user has more than user-replies; also one that has sent a part of "
               "a message and not the rest. Both wait in the daemon's memory. A client that is "
               "stopped in a debugger may need more."),
    [SETTING_SESSION_REQUESTS] =
        ROW("session-requests", "sessions", NUMBER, "8192", "16", "1048576", session_requests,
            .is_reloadable = true,
            .doc = "requests of a connection, and waits of a user, that may be unanswered",
            .why = "A client sends many without waiting, to keep the worker busy. More than "
                   "user-jobs are of little use."),
    [SETTING_SESSION_REPLIES] =
        ROW("session-replies", "sessions", SIZE, "64M", "8M", "1T", session_reply_bytes,
            .is_reloadable = true,
            .doc = "drop a client at once that leaves so many bytes of replies unread",
            .why = "From 4 MiB on it is not read from, so only jobs that were under way can bring "
                   "it here. Large results of jobs are not counted: see user-replies."),
    [SETTING_MESSAGE_MEMORY] =
        ROW("message-memory", "sessions", SIZE, "3M", "1M", "1T", message_memory_bytes,
            .is_reloadable = true, .doc = "memory for large requests of a user's connections",
            .why = "Beyond it those that hold much are not read from until others hold less: the "
                   "daemon stays small, and nobody is refused. All users together have twice as "
                   "much."),

    /* engine: what computes, and what the worker is given. */
    [SETTING_ENGINE] =
        ROW("engine", "engine", ENGINE, "auto", NULL, NULL, engine,
            .doc = "what computes: auto, cpu or cuda",
            .why = "auto: the processor, and NVIDIA devices where there are any; each job goes "
                   "where it ends sooner. cpu: no device is opened. cuda: devices alone, and the "
                   "daemon refuses to start without one."),
    [SETTING_POOL] =
        ROW("pool", "engine", SIZE, "32M", "64K", "1T", pool_bytes,
            .doc = "memory that all jobs run in, taken once",
            .why = "Element-wise work and sums stream through it: more makes them no faster. A job "
                   "that keeps accumulators may use three eighths of it."),
    [SETTING_THREADS] =
        ROW("threads", "engine", NUMBER, "auto", "1", "1024", n_threads, .word = "auto",
            .doc = "threads that compute",
            .why = "auto: one for each processor that the daemon may use. Fewer leave the rest to "
                   "programs that do not ask the daemon."),
    [SETTING_LEVEL] =
        ROW("level", "engine", LEVEL, "auto", NULL, NULL, level, .word = "auto",
            .doc = "instructions of the processor: plain, baseline, avx2 or avx512",
            .why = "auto: the best that the processor has. Last bits of a few functions differ "
                   "between them: name one to get the same results on different machines."),
    [SETTING_HANG_TIMEOUT] = ROW(
        "hang-timeout", "engine", SECONDS, "60", "0.01", "24h", hang_timeout_ns,
        .is_reloadable = true,
        .doc = "processor time that a tile may take before the worker is replaced",
        .why = "A tile takes milliseconds, or says in between that it goes on; a minute means a "
               "fault. Time in which a loaded machine gave it no processor does not count. Ten "
               "times as long is given to one that waits, for a disk or whatever else."),
    [SETTING_WORKER] =
        ROW("worker", "engine", TEXT, "auto", NULL, NULL, worker, .word = "auto",
            .doc = "path of the worker's program",
            .why = "auto: beside the daemon's own program, then in the installation's libexec "
                   "directory."),

    /* cuda: what a device's worker is given. */
    [SETTING_DEVICES] =
        ROW("devices", "cuda", DEVICES, "all", NULL, NULL, device_mask, .word = "all",
            .doc = "NVIDIA devices that may be used, by number",
            .why = "Their numbers are those that gpuarrayctl info shows. Each has a worker and a "
                   "queue of its own."),
    [SETTING_DEVICE_BYTES] = ROW(
        "device-bytes", "cuda", SIZE, "auto", "12M", "1T", device_bytes, .word = "auto",
        .is_no_share = true, .doc = "memory of a device that all its jobs run in, taken once",
        .why = "auto: 1600M, less on a small card. The rest of the card stays free for programs "
               "that do not ask the daemon. Jobs stream through it: more makes matrix "
               "products faster, and few others. An eighth, at most 32M, is cuBLAS's; what the "
               "pool does not have is for matrix products, a third at least."),
    [SETTING_PINNED_BYTES] =
        ROW("pinned-bytes", "cuda", SIZE, "auto", "10M", "1T", pinned_bytes, .word = "auto",
            .doc = "locked memory of the machine that copies to and from a device pass, taken once",
            .why = "auto: 512M, less where the machine or the card has less. It cannot be swapped "
                   "out. The pool of a device is the smaller of this and two thirds of what of "
                   "device-bytes is not cuBLAS's."),
    [SETTING_CHUNK_BYTES] = ROW(
        "chunk-bytes", "cuda", SIZE, "auto", "2M", "16M", chunk_bytes, .word = "auto",
        .is_no_share = true, .doc = "piece of the pool that one copy to a device and back passes",
        .why = "auto: by a measurement of the link at start. Larger pieces make the most of "
               "the link, smaller ones let more of them overlap and jobs take turns sooner."),
    [SETTING_DEVICE_DEPTH] =
        ROW("device-depth", "cuda", NUMBER, "auto", "3", "16", device_depth, .word = "auto",
            .doc = "pieces that may be at a device at a time",
            .why = "auto: by the same measurement, at least three: one is copied there while one "
                   "is computed and one is copied back."),
    [SETTING_REGISTER_BYTES] =
        ROW("register-bytes", "cuda", SIZE, "auto", "0", "1T", register_bytes, .word = "auto",
            .doc = "shared memory of clients that may be locked so that a device reads it itself",
            .why = "auto: as the machine's memory and the measurement of the link advise. Only "
                   "memory that is used again is locked, and it is let go when idle. 0: none; "
                   "everything is copied through pinned-bytes."),
    [SETTING_CUDA_WORKER] =
        ROW("cuda-worker", "cuda", TEXT, "auto", NULL, NULL, cuda_worker, .word = "auto",
            .doc = "path of the program that works with a device",
            .why = "auto: looked for where the worker's program is. Without it there are no "
                   "devices."),

    /* queue: what all users share. */
    [SETTING_MAX_QUEUE] =
        ROW("max-queue", "queue", NUMBER, "16384", "1", "1048576", max_queue, .is_reloadable = true,
            .doc = "jobs that may wait, of all users",
            .why = "A waiting job takes about 2 KiB and its descriptors. One more is refused with "
                   "queue-full."),
    [SETTING_MAX_ACTIVE] =
        ROW("max-active", "queue", NUMBER, "256", "1", "16384", max_active, .is_reloadable = true,
            .doc = "jobs that the worker has in hand at a time",
            .why = "They take turns tile by tile. Enough that threads never wait for the broker; "
                   "few enough that the others can still be put in order."),
    [SETTING_USER_ACTIVE] =
        ROW("user-active", "queue", NUMBER, "4", "1", "16384", user_active, .is_reloadable = true,
            .doc = "so many jobs of each user are active whatever others have there",
            .why = "At most max-active. With it a newcomer's job starts at once while somebody's "
                   "thousand jobs fill the worker."),
    [SETTING_PROVIDER_TIMEOUT] =
        ROW("provider-timeout", "queue", SECONDS, "30", "0.1", "24h", provider_timeout_ns,
            .is_reloadable = true,
            .doc = "time that a job's client may leave it without a block while others wait for "
                   "the pool's memory that it keeps",
            .why = "The memory is then theirs. The job begins again when its client answers; where "
                   "it cannot it ends with provider-failed."),

    /* users: what one user may have and hold. */
    [SETTING_USER_WEIGHT] =
        ROW("user-weight", "users", NUMBER, "1", "1", "1000", user_weight, .is_reloadable = true,
            .doc = "weight of a user whose jobs compute beside others'",
            .why = "A user of weight 2 has twice the time of one of weight 1 while both have work; "
                   "alone everybody has all of it. Admins may say another one with "
                   "'gpuarrayctl users --weight', until the next reload."),
    [SETTING_USER_SESSIONS] =
        ROW("user-sessions", "users", NUMBER, "64", "1", "65536", user_sessions,
            .is_reloadable = true, .doc = "connections of a user",
            .why =
                "A program needs one. Each takes a descriptor. 8 more are in reserve, to look at "
                "jobs and to cancel them when all others are in use."),
    [SETTING_USER_JOBS] =
        ROW("user-jobs", "users", NUMBER, "4096", "1", "1048576", user_jobs, .is_reloadable = true,
            .doc = "jobs of a user that wait, run or settle",
            .why = "A quarter of the queue: one user cannot fill it for the others. At most "
                   "max-queue and max-active together."),
    [SETTING_USER_REQUESTS] =
        ROW("user-requests", "users", SIZE, "64M", "1M", "1T", user_request_bytes,
            .is_reloadable = true,
            .doc = "memory for the messages of a user's jobs that have not ended",
            .why = "A message has at most 1 MiB, and only arrays inside it make it large."),
    [SETTING_USER_REPLIES] =
        ROW("user-replies", "users", SIZE, "8M", "2M", "1T", user_reply_bytes,
            .is_reloadable = true,
            .doc = "memory for results and replies that a user's connections have not read",
            .why = "Beyond it jobs whose results come in messages wait, and connections that leave "
                   "more than 32 KiB unread are not read from, until they read. A result counts "
                   "once, however many wait for it. All users together have four times as much."),
    [SETTING_USER_PLAN_TIME] =
        ROW("user-plan-time", "users", SECONDS, "10", "100ms", "24h", user_plan_ns,
            .is_reloadable = true,
            .doc = "time of a processor that planning a user's jobs may have taken lately",
            .why = "An eighth of it is forgotten each second, so a user alone may plan all the "
                   "time. Beyond it requests that take long to plan are refused; others are "
                   "counted."),
    [SETTING_USER_LOG_LINES] =
        ROW("user-log-lines", "users", NUMBER, "1000", "10", "1048576", user_log_lines,
            .is_reloadable = true, .doc = "lines of the log that told of a user lately",
            .why = "An eighth of them is forgotten each second. Beyond it lines are left out, and "
                   "their number is told."),
    [SETTING_USER_DESCRIPTORS] =
        ROW("user-descriptors", "users", NUMBER, "auto", "16", "1048576", user_descriptors,
            .word = "auto", .is_reloadable = true,
            .doc = "open files kept for a user's jobs, regions and unread messages",
            .why = "auto: a quarter of what the daemon may open (LimitNOFILE= of the service)."),
    [SETTING_REGION_LIMIT] =
        ROW("region-limit", "users", SIZE, "50%", NULL, NULL, region_limit_bytes,
            .is_reloadable = true, .doc = "shared memory that a user may attach",
            .why = "It is the clients' own memory, or a share of the machine's. The daemon keeps "
                   "what is attached alive until it is detached. 0: none."),

    /* records: jobs that have ended. */
    [SETTING_KEEP_JOBS] =
        ROW("keep-jobs", "records", NUMBER, "256", "1", "65536", keep_jobs, .is_reloadable = true,
            .doc = "ended jobs of a user that are remembered",
            .why = "wait, status and a repeated request find the outcome there. Those of which "
                   "somebody has got the outcome go first; of the others 16 times as many stay."),
    [SETTING_KEEP_TIME] =
        ROW("keep-time", "records", SECONDS, "600", "1", "24h", keep_ns, .is_reloadable = true,
            .doc = "time that an ended job is remembered",
            .why = "Long enough for a client to come back after its connection was lost."),
    [SETTING_KEEP_RESULTS] =
        ROW("keep-results", "records", SIZE, "4M", "64K", "1G", keep_result_bytes,
            .is_reloadable = true,
            .doc = "memory for the results of a user that nobody has fetched yet",
            .why = "Only results inside messages, at most 64 KiB each. An eighth of it is for "
                   "results that were fetched."),

    /* log */
    [SETTING_LOG_LEVEL] =
        ROW("log-level", "log", LOG_LEVEL, "warn", NULL, NULL, log_level, .is_reloadable = true,
            .doc = "error, warn, info or debug",
            .why = "warn: what somebody should know. info: also one line for each job that ends, "
                   "with its user, outcome, times and bytes."),
};
