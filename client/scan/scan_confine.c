/* The system calls of a shared scan's process.
 *
 * Codecs meet bytes here that a client chose, for readers who trust that nobody else can touch what
 * they get. Who takes the process over has the files that it was given and the ring, both of which
 * its readers know as the work of those files: no other one can be opened, no descriptor made, no
 * program started, no other process seen or signalled, and none of its memory executed. Descriptors
 * are looked at by statx(), which takes a path, too: only the one at the address that is told.
 *
 * A call that is not in the list fails with ENOSYS, which C libraries of later years understand.
 */
#include "client/scan/scan_confine.h"
#include "proto/util.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

static const char *const own[] = {
    "brk",         "clock_gettime", "clock_nanosleep", "close",
    "epoll_ctl",   "epoll_pwait",   "epoll_wait",      "exit",
    "exit_group",  "futex",         "getpid",          "getrandom",
    "gettid",      "gettimeofday",  "madvise",         "mremap",
    "munmap",      "poll",          "ppoll",           "pread64",
    "read",        "recvfrom",      "recvmsg",         "restart_syscall",
    "rseq",        "rt_sigaction",  "rt_sigprocmask",  "rt_sigreturn",
    "sched_yield", "sendmsg",       "sendto",          "set_robust_list",
    "sigaltstack", "write",
};

static int add(scmp_filter_ctx filter, const char *name, unsigned n_conditions,
               const struct scmp_arg_cmp *conditions)
{
    int number = seccomp_syscall_resolve_name(name);
    return number == __NR_SCMP_ERROR
               ? 0
               : seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, n_conditions, conditions);
}

static int fill(scmp_filter_ctx filter, const char *no_path)
{
    const struct scmp_arg_cmp is_no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    const struct scmp_arg_cmp is_look = SCMP_A1(SCMP_CMP_EQ, F_GETFL);
    const struct scmp_arg_cmp is_own = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
    const struct scmp_arg_cmp is_descriptor[] = {
        SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)(uintptr_t)no_path),
        SCMP_A2(SCMP_CMP_EQ, AT_EMPTY_PATH | AT_STATX_DONT_SYNC)};
    int r = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(own) && r == 0; i++)
        r = add(filter, own[i], 0, NULL);
    if (r == 0)
        r = add(filter, "mmap", 1, &is_no_code);
    if (r == 0)
        r = add(filter, "mprotect", 1, &is_no_code);
    if (r == 0)
        r = add(filter, "fcntl", 1, &is_look);
    if (r == 0)
        r = add(filter, "statx", ARRAY_LENGTH(is_descriptor), is_descriptor);
    return r ? r : add(filter, "tgkill", 1, &is_own); /* abort() */
}

int scan_confine(const char *no_path)
{
    if (IS_SANITIZED)
        return 0;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int r = filter ? fill(filter, no_path) : -ENOMEM;
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    if (r == 0)
        r = seccomp_load(filter);
    seccomp_release(filter);
    return r;
}
