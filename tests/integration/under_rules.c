/* under-rules FILE COMMAND...: runs COMMAND as a service manager would run the unit, as far as
 * system calls are concerned.
 *
 * FILE has the names of the allowed system calls, one a line; others fail with EPERM. Of those in
 * it, the ones that the unit's further lines restrict are allowed with these arguments only:
 *
 *     RestrictAddressFamilies=AF_UNIX   socket, socketpair (EAFNOSUPPORT otherwise)
 *     MemoryDenyWriteExecute=yes        mmap, mprotect, pkey_mprotect, shmat
 *     RestrictNamespaces=yes            clone, unshare, setns; clone3 is not there
 *
 * Called by test_units.py.
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

#define NAMESPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* Allowed where (argument & mask) is value. */
struct rule {
    const char *name;
    unsigned argument;
    unsigned long mask, value;
};

static const struct rule rules[] = {
    {"socket", 0, ~0ul, AF_UNIX},  {"socketpair", 0, ~0ul, AF_UNIX},
    {"mmap", 2, PROT_EXEC, 0},     {"mmap", 2, PROT_WRITE, 0},
    {"mprotect", 2, PROT_EXEC, 0}, {"pkey_mprotect", 2, PROT_EXEC, 0},
    {"shmat", 2, SHM_EXEC, 0},     {"clone", 0, NAMESPACES, 0},
    {"unshare", 0, NAMESPACES, 0}, {"setns", 0, ~0ul, ~0ul},
};
#define N_RULES (sizeof(rules) / sizeof(rules[0]))

static int allow_some(scmp_filter_ctx filter, const char *name, int number, int *ret_n)
{
    int r = 0;
    *ret_n = 0;
    for (size_t i = 0; i < N_RULES && r == 0; i++) {
        if (strcmp(rules[i].name, name) != 0)
            continue;
        ++*ret_n;
        r = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, number, 1,
            SCMP_CMP(rules[i].argument, SCMP_CMP_MASKED_EQ, rules[i].mask, rules[i].value));
    }
    return r;
}

static int allow(scmp_filter_ctx filter, const char *name)
{
    int n, number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0)
        return 0; /* of another processor, or newer than libseccomp */
    if (strcmp(name, "clone3") == 0)
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), number, 0);
    int r = allow_some(filter, name, number, &n);
    return n > 0 || r ? r : seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

static int read_names(scmp_filter_ctx filter, const char *path)
{
    char name[128];
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    int r = 0;
    while (r == 0 && fscanf(file, "%127s", name) == 1)
        r = allow(filter, name);
    fclose(file);
    return r;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fputs("usage: under-rules FILE COMMAND...\n", stderr);
        return 2;
    }
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    int r = filter ? read_names(filter, argv[1]) : -ENOMEM;
    if (r == 0)
        r = seccomp_load(filter); /* sets no_new_privs as well */
    if (r < 0) {
        fprintf(stderr, "under-rules: %s\n", strerror(-r));
        return 1;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
