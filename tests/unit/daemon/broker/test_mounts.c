/* Mounts: the form of mountinfo's lines, and which file systems are served. */
#include "daemon/broker/sessions/mounts.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct mounts *from_text(const char *text)
{
    char path[] = "/tmp/gpuarrayd-mounts-XXXXXX";
    struct mounts *mounts = NULL;
    int fd = mkstemp(path);

    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, (int)write(fd, text, strlen(text)), (int)strlen(text)));
    close(fd);
    cr_assert(eq(int, mounts_new(path, &mounts), 0));
    unlink(path);
    return mounts;
}

Test(mounts, reads_id_and_type_of_every_line)
{
    struct mounts *m =
        from_text("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"
                  "37 35 0:40 / /home/a\\040b rw shared:2 master:3 - nfs4 server:/x rw\n"
                  "38 35 0:41 / /tmp rw - tmpfs tmpfs rw");

    cr_assert(eq(str, (char *)mounts_type(m, 36), "ext3"));
    cr_assert(eq(str, (char *)mounts_type(m, 37), "nfs4"));
    cr_assert(eq(str, (char *)mounts_type(m, 38), "tmpfs"));
    cr_assert(eq(ptr, (void *)mounts_type(m, 39), NULL));
    mounts_free(m);
}

Test(mounts, finds_the_type_by_the_device_where_the_mount_is_not_ours)
{
    struct mounts *m = from_text("36 35 98:7 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n"
                                 "37 35 0:40 / /home/a\\040b rw shared:2 - nfs4 server:/x rw\n"
                                 "38 35 98:8 / /else rw - xfs /dev/sdb rw\n"
                                 "39 35 98 / /else rw - ext4 /dev/sdb rw\n");

    cr_assert(eq(str, (char *)mounts_type_of_device(m, (uint64_t)98 << 32 | 7), "ext3"));
    cr_assert(eq(str, (char *)mounts_type_of_device(m, (uint64_t)98 << 32 | 8), "xfs"));
    cr_assert(eq(str, (char *)mounts_type_of_device(m, 40), "nfs4"));
    cr_assert(eq(ptr, (void *)mounts_type_of_device(m, 98), NULL));
    cr_assert(eq(ptr, (void *)mounts_type(m, 39), NULL));
    mounts_free(m);
}

Test(mounts, lines_of_another_form_name_nothing)
{
    struct mounts *m = from_text("\n36\n37 - \nx y - ext4 z\n"
                                 "99999999999999999999999 1 0:1 / / rw - ext4 x rw\n"
                                 "40 1 0:1 / / rw - averyveryverylongnameofafilesystem x rw\n");

    cr_assert(eq(ptr, (void *)mounts_type(m, 36), NULL));
    cr_assert(eq(ptr, (void *)mounts_type(m, UINT64_MAX), NULL));
    cr_assert(eq(int, file_system_classify(mounts_type(m, 37)), FILE_SYSTEM_OTHER));
    cr_assert(eq(int, file_system_classify(mounts_type(m, 40)), FILE_SYSTEM_OTHER));
    mounts_free(m);
}

Test(mounts, many_mounts_are_no_problem)
{
    static char text[200000];
    size_t n = 0;

    for (unsigned i = 1; i <= 3000; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%u 1 0:%u / /m rw - %s x rw\n", i, i,
                              i % 2 ? "ext4" : "cifs");
    struct mounts *m = from_text(text);
    cr_assert(eq(str, (char *)mounts_type(m, 2999), "ext4"));
    cr_assert(eq(str, (char *)mounts_type(m, 3000), "cifs"));
    mounts_free(m);
}

Test(mounts, knows_the_root_of_this_process)
{
    struct mounts *m = NULL;

    cr_assert(eq(int, mounts_new(NULL, &m), 0));
    cr_assert(eq(ptr, (void *)mounts_type(m, UINT64_MAX), NULL));
    cr_assert(eq(ptr, mounts_free(m), NULL));
    cr_assert(eq(int, mounts_new("/nonexistent", &m), -ENOENT));
}

Test(mounts, local_pseudo_and_other_file_systems)
{
    static const char *const local[] = {"ext2", "ext4", "xfs",   "btrfs",
                                        "zfs",  "f2fs", "tmpfs", "overlay"};
    static const char *const other[] = {"nfs", "nfs4",     "cifs", "fuse", "fuse.sshfs", "fuseblk",
                                        "9p",  "virtiofs", "ceph", "ext",  "ext44",      ""};

    for (unsigned i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        cr_assert(eq(int, file_system_classify(local[i]), FILE_SYSTEM_LOCAL));
    for (unsigned i = 0; i < sizeof(other) / sizeof(other[0]); i++)
        cr_assert(eq(int, file_system_classify(other[i]), FILE_SYSTEM_OTHER));
    cr_assert(eq(int, file_system_classify("proc"), FILE_SYSTEM_PSEUDO));
    cr_assert(eq(int, file_system_classify(NULL), FILE_SYSTEM_OTHER));
}
