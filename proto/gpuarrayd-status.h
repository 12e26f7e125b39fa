/* The stable words of every outcome, and the error a caller may own.
 *
 * One table makes the enum, the words of the wire and the texts. Words never change and are
 * never reused; new ones are appended inside their group. Installed beside gpuarrayd.h.
 *
 * The groups say what is lost: this request, this session, the device, the daemon.
 */
#pragma once

/* X(enum, word, text) */
#define GAD_STATUS_TABLE(X)                                                                        \
    /* This request: correct it and try again. */                                                  \
    X(GAD_BAD_ARGUMENT, "bad-argument", "an argument of the call is not usable")                   \
    X(GAD_BAD_EXPRESSION, "bad-expression", "the expression cannot be compiled")                   \
    X(GAD_UNKNOWN_NAME, "unknown-name", "the expression uses a name that does not exist")          \
    X(GAD_BAD_ARITY, "bad-arity", "a function has the wrong number of arguments")                  \
    X(GAD_BAD_SHAPE, "bad-shape", "shapes do not fit together")                                    \
    X(GAD_BAD_DTYPE, "bad-dtype", "the dtype is not supported here")                               \
    X(GAD_BAD_EXTENT, "bad-extent", "offset, shape and strides do not describe an array")          \
    X(GAD_BAD_DESCRIPTOR, "bad-descriptor", "the file descriptor is not of a usable kind")         \
    X(GAD_READ_ONLY, "read-only", "the output cannot be written")                                  \
    X(GAD_USE_PROVIDER, "use-provider", "the file system is served through a provider only")       \
    X(GAD_BAD_REGION, "bad-region", "the region is not usable")                                    \
    X(GAD_UNKNOWN_REGION, "unknown-region", "there is no such region")                             \
    X(GAD_OVERLAPPING_OUTPUT, "overlapping-output", "an output overlaps another argument")         \
    X(GAD_TOO_LARGE_FOR_POOL, "too-large-for-pool", "the job cannot fit the pool")                 \
    X(GAD_TOO_LARGE_FOR_INLINE, "too-large-for-inline", "too many bytes for an inline array")      \
    X(GAD_LIMIT_EXCEEDED, "limit-exceeded", "a fixed limit of the protocol is exceeded")           \
    X(GAD_SHORT_READ, "short-read", "a source holds fewer bytes than were announced")              \
    X(GAD_NO_SPACE, "no-space", "there is no space for an output")                                 \
    X(GAD_IO_ERROR, "io-error", "reading or writing failed")                                       \
    X(GAD_REGION_FAULT, "region-fault", "memory that was handed over went away under the job")     \
    X(GAD_PROVIDER_FAILED, "provider-failed", "the client could not provide or drain a block")     \
    X(GAD_BAD_CHUNK_TABLE, "bad-chunk-table", "the chunk table does not describe the array")       \
    X(GAD_BAD_JOURNAL, "bad-journal", "the journal is not usable for this job")                    \
    X(GAD_NEGATIVE_POWER, "negative-integer-power", "integer to a negative integer power")         \
    X(GAD_CANCELLED, "cancelled", "the job was cancelled")                                         \
    X(GAD_UNKNOWN_JOB, "unknown-job", "there is no such job")                                      \
    X(GAD_UNKNOWN_METHOD, "unknown-method", "there is no such method")                             \
    X(GAD_BAD_REQUEST, "bad-request", "the request is not of the described form")                  \
    X(GAD_QUOTA_EXCEEDED, "quota-exceeded", "the user's account is used up")                       \
    X(GAD_QUEUE_FULL, "queue-full", "the queue is full")                                           \
    X(GAD_POISONED, "poisoned", "the job stopped the worker twice")                                \
    X(GAD_WORKER_LOST, "worker-lost", "the worker ended and the job cannot be run again")          \
    X(GAD_NO_ENGINE, "no-engine", "the engine that was asked for is not there")                    \
    X(GAD_NOT_FOUND, "not-found", "there is no such file or dataset")                              \
    X(GAD_BAD_FORMAT, "bad-format", "the file is not of the format that it claims")                \
    X(GAD_EXISTS, "exists", "the output exists already")                                           \
    X(GAD_BUSY, "busy", "somebody else has the file open for writing")                             \
    X(GAD_PERMISSION, "permission-denied", "the system refused access")                            \
    X(GAD_NO_MEMORY, "no-memory", "the process has no memory left")                                \
    X(GAD_BAD_INDEX, "bad-index", "an index is outside of its array")                              \
    X(GAD_DATASET_CHANGED, "dataset-changed", "a file of the dataset is not what it was")          \
    X(GAD_BAD_RANK, "bad-rank", "the data has no decomposition of that rank")                      \
    X(GAD_BAD_CHECKPOINT, "bad-checkpoint", "the checkpoint is not usable for this call")          \
    X(GAD_SINGULAR, "singular-matrix", "a matrix that is to be inverted is singular")              \
    X(GAD_BAD_BLOCK, "bad-block", "a function's block has not the shape or dtype that was said")   \
    X(GAD_QUEUE_TIMEOUT, "queue-timeout", "the job had not begun in the time that it may wait")    \
    X(GAD_DEADLINE_EXCEEDED, "deadline-exceeded", "the job had not ended by its deadline")         \
    /* This session: connect anew. */                                                              \
    X(GAD_PROTOCOL, "protocol-error", "the peer does not speak the protocol")                      \
    X(GAD_VERSION, "version-mismatch", "the peer speaks another version of the protocol")          \
    X(GAD_DISCONNECTED, "disconnected", "the connection to the daemon is lost")                    \
    X(GAD_UNTRUSTED, "untrusted-server", "the server is not one that may be trusted")              \
    X(GAD_TIMEOUT, "timeout", "the time is over")                                                  \
    X(GAD_OUTCOME_UNKNOWN, "outcome-unknown", "the job's outcome cannot be known")                 \
    /* The device and the daemon. */                                                               \
    X(GAD_DEVICE_FAULT, "device-fault", "the device reported a fault")                             \
    X(GAD_SHUTTING_DOWN, "shutting-down", "the daemon is leaving")                                 \
    X(GAD_DRAINING, "draining", "the daemon takes no new jobs for now")                            \
    X(GAD_NO_DAEMON, "no-daemon", "no daemon could be reached or started")                         \
    X(GAD_INTERNAL, "internal", "a fault of gpuarrayd itself")

enum gad_status {
    GAD_OK = 0,
#define GAD_STATUS_ENUM(id, word, text) id,
    GAD_STATUS_TABLE(GAD_STATUS_ENUM)
#undef GAD_STATUS_ENUM
        GAD_STATUS_COUNT
};

/* What went wrong, owned by the caller, filled only on failure. Every string ends in NUL and may
 * be empty. `argument` names what the error is about; `expected` and `found` are short. */
struct gad_error {
    enum gad_status status;
    char argument[64];
    char expected[112];
    char found[112];
    char message[352];
};
