/* System calls that processes of the daemon give up.
 *
 *     broker            everything but FOREIGN                    its children inherit that
 *     worker of a GPU   as the broker, without STARTING           once the device is ready
 *     worker of the CPU nothing but OWN, some only in one form    once its threads are there
 *
 * A client's data meets the worker's code, so a worker is what would be taken over first. What
 * could be done with it then: reading the broker's memory or another worker's, which have the same
 * user (ptrace and its relatives); opening a region again for writing that its owner attached for
 * reading (by /proc/self/fd); opening any file of the service; starting a program; talking to
 * others; signals.
 *
 * What is given up fails, and kills nobody: with EPERM by the two lists of what nobody needs; with
 * ENOSYS where only OWN is allowed, because that is what a C library of next year understands when
 * it tries a call that is not in this list. The broker cannot have a list of its own calls, since
 * filters are inherited and the workers' programs load libraries and a device's driver.
 *
 * Without a privilege a filter asks for no_new_privs. Mitigations of Spec_store_bypass, which some
 * kernels would switch on with it, are not: they slow the kernels down and protect from code in the
 * same process, of which there is none.
 */
#include "daemon/confine.h"
#include "proto/util.h"

#include <seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <fcntl.h>
#include <sched.h>
#include <linux/userfaultfd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED true
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

/* Calls that look into other processes or change the machine. */
static const char *const foreign[] = {"acct",
                                      "add_key",
                                      "adjtimex",
                                      "bpf",
                                      "capset",
                                      "chroot",
                                      "clock_adjtime",
                                      "clock_settime",
                                      "delete_module",
                                      "finit_module",
                                      "fsconfig",
                                      "fsmount",
                                      "fsopen",
                                      "fspick",
                                      "init_module",
                                      "ioperm",
                                      "iopl",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "io_uring_setup",
                                      "kcmp",
                                      "kexec_file_load",
                                      "kexec_load",
                                      "keyctl",
                                      "lookup_dcookie",
                                      "migrate_pages",
                                      "mknod",
                                      "mknodat",
                                      "modify_ldt",
                                      "mount",
                                      "mount_setattr",
                                      "move_mount",
                                      "move_pages",
                                      "open_by_handle_at",
                                      "open_tree",
                                      "perf_event_open",
                                      "personality",
                                      "pidfd_getfd",
                                      "pivot_root",
                                      "process_madvise",
                                      "process_mrelease",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "ptrace",
                                      "quotactl",
                                      "quotactl_fd",
                                      "reboot",
                                      "request_key",
                                      "setdomainname",
                                      "setfsgid",
                                      "setfsuid",
                                      "setgid",
                                      "setgroups",
                                      "sethostname",
                                      "setns",
                                      "setregid",
                                      "setresgid",
                                      "setresuid",
                                      "setreuid",
                                      "settimeofday",
                                      "setuid",
                                      "stime",
                                      "swapoff",
                                      "swapon",
                                      "syslog",
                                      "umount",
                                      "umount2",
                                      "unshare",
                                      "uselib",
                                      "vhangup"};

/* Calls that start a program or signal one. Threads are made with clone() and clone3(). */
static const char *const starting[] = {
    "execve",          "execveat", "fork", "kill", "pidfd_open", "pidfd_send_signal",
    "rt_sigqueueinfo", "tkill",    "vfork"};

static const int signalling_fcntl[] = {F_SETOWN, F_SETOWN_EX, F_SETSIG};

/* What a worker of the CPU engine calls while it serves, itself or through the C library. */
static const char *const own[] = {"brk",
                                  "clock_getres",
                                  "clock_gettime",
                                  "clock_nanosleep",
                                  "close",
                                  "close_range",
                                  "dup",
                                  "epoll_ctl",
                                  "epoll_pwait",
                                  "epoll_pwait2",
                                  "epoll_wait",
                                  "exit",
                                  "exit_group",
                                  "fadvise64",
                                  "fdatasync",
                                  "fstat",
                                  "fstatfs",
                                  "fsync",
                                  "ftruncate",
                                  "futex",
                                  "getcpu",
                                  "getdents64",
                                  "getpid",
                                  "getppid",
                                  "getrandom",
                                  "getrusage",
                                  "gettid",
                                  "gettimeofday",
                                  "lseek",
                                  "mbind",
                                  "madvise",
                                  "membarrier",
                                  "mremap",
                                  "munmap",
                                  "nanosleep",
                                  "newfstatat",
                                  "poll",
                                  "ppoll",
                                  "pread64",
                                  "preadv",
                                  "preadv2",
                                  "pwrite64",
                                  "pwritev",
                                  "pwritev2",
                                  "read",
                                  "readlink",
                                  "readlinkat",
                                  "readv",
                                  "recvfrom",
                                  "recvmsg",
                                  "restart_syscall",
                                  "rseq",
                                  "rt_sigaction",
                                  "rt_sigprocmask",
                                  "rt_sigreturn",
                                  "sched_getaffinity",
                                  "sched_yield",
                                  "sendmsg",
                                  "sendto",
                                  "set_robust_list",
                                  "sigaltstack",
                                  "statx",
                                  "sync_file_range",
                                  "sysinfo",
                                  "time",
                                  "uname",
                                  "write",
                                  "writev"};

/* What it calls in one form alone. */
static const int own_fcntl[] = {F_GETFD,     F_SETFD,     F_GETFL,     F_SETFL,     F_DUPFD_CLOEXEC,
                                F_GET_SEALS, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW};
static const unsigned long own_ioctl[] = {UFFDIO_REGISTER};

/* A call that this kind of processor or this libseccomp does not have needs no rule. */
static int add(scmp_filter_ctx filter, uint32_t action, const char *name, unsigned n_conditions,
               const struct scmp_arg_cmp *conditions)
{
    int number = seccomp_syscall_resolve_name(name);
    return number == __NR_SCMP_ERROR
               ? 0
               : seccomp_rule_add_array(filter, action, number, n_conditions, conditions);
}

static int add_all(scmp_filter_ctx filter, uint32_t action, const char *const *names, size_t n)
{
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        r = add(filter, action, names[i], 0, NULL);
    return r;
}

static int add_where(scmp_filter_ctx filter, uint32_t action, const char *name,
                     struct scmp_arg_cmp condition)
{
    return add(filter, action, name, 1, &condition);
}

static int load(scmp_filter_ctx filter)
{
    int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
    if (r == 0)
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    return r == 0 ? seccomp_load(filter) : r;
}

/* Makes a filter, has it filled, and puts it in force. */
static int confine(uint32_t default_action, int (*fill)(scmp_filter_ctx filter))
{
    if (IS_SANITIZED)
        return 0;
    scmp_filter_ctx filter = seccomp_init(default_action);
    if (!filter)
        return -ENOMEM;
    int r = fill(filter);
    if (r == 0)
        r = load(filter);
    seccomp_release(filter);
    return r;
}

static int forbid_foreign(scmp_filter_ctx filter)
{
    const uint32_t refused = SCMP_ACT_ERRNO(EPERM);
    int r = add_all(filter, refused, foreign, ARRAY_LENGTH(foreign));
    return r ? r
             : add_where(filter, refused, "socket", SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)AF_UNIX));
}

static int forbid_starting(scmp_filter_ctx filter)
{
    const uint32_t refused = SCMP_ACT_ERRNO(EPERM);
    const scmp_datum_t own_id = (scmp_datum_t)getpid();
    int r = add_all(filter, refused, starting, ARRAY_LENGTH(starting));
    if (r == 0)
        r = add_where(filter, refused, "tgkill", SCMP_A0(SCMP_CMP_NE, own_id));
    if (r == 0)
        r = add_where(filter, refused, "rt_tgsigqueueinfo", SCMP_A0(SCMP_CMP_NE, own_id));
    if (r == 0)
        r = add_where(filter, refused, "prlimit64", SCMP_A0(SCMP_CMP_NE, 0));
    for (size_t i = 0; i < ARRAY_LENGTH(signalling_fcntl) && r == 0; i++)
        r = add_where(filter, refused, "fcntl",
                      SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)signalling_fcntl[i]));
    return r;
}

/* Memory that could be executed, descriptors that signal, other processes: not in these forms. */
static int allow_forms(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp is_no_code = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
    const struct scmp_arg_cmp is_own = SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid());
    const struct scmp_arg_cmp is_thread = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD);
    int r = add_where(filter, SCMP_ACT_ALLOW, "mmap", is_no_code);
    if (r == 0)
        r = add_where(filter, SCMP_ACT_ALLOW, "mprotect", is_no_code);
    if (r == 0)
        r = add_where(filter, SCMP_ACT_ALLOW, "tgkill", is_own);
    if (r == 0)
        r = add_where(filter, SCMP_ACT_ALLOW, "clone", is_thread);
    for (size_t i = 0; i < ARRAY_LENGTH(own_fcntl) && r == 0; i++)
        r = add_where(filter, SCMP_ACT_ALLOW, "fcntl",
                      SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)own_fcntl[i]));
    for (size_t i = 0; i < ARRAY_LENGTH(own_ioctl) && r == 0; i++)
        r = add_where(filter, SCMP_ACT_ALLOW, "ioctl",
                      SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)own_ioctl[i]));
    return r;
}

static int allow_own(scmp_filter_ctx filter)
{
    int r = add_all(filter, SCMP_ACT_ALLOW, own, ARRAY_LENGTH(own));
    return r ? r : allow_forms(filter);
}

void confine_hide(void)
{
    if (!IS_SANITIZED)
        prctl(PR_SET_DUMPABLE, 0);
}

int confine_broker(void)
{
    return confine(SCMP_ACT_ALLOW, forbid_foreign);
}

int confine_worker(void)
{
    return confine(SCMP_ACT_ALLOW, forbid_starting);
}

int confine_worker_strictly(void)
{
    return confine(SCMP_ACT_ERRNO(ENOSYS), allow_own);
}
