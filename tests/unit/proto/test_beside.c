/* Programs are found around the one that looks. */
#include "proto/system/beside.h"
#include "proto/util.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

Test(beside, finds_what_lies_in_its_own_folder)
{
    char own[PATH_MAX] = "", found[PATH_MAX];
    cr_assert(lt(i64, 0, readlink("/proc/self/exe", own, sizeof(own) - 1)));
    cr_assert(beside_find(strrchr(own, '/') + 1, "/nowhere", found, sizeof(found)));
    cr_assert(eq(str, found, own));
}

Test(beside, falls_back_to_where_it_was_installed)
{
    char found[PATH_MAX];
    cr_assert(beside_find("no-such-program", "/bin/sh", found, sizeof(found)));
    cr_assert(eq(str, found, "/bin/sh"));
    cr_assert(not(beside_find("no-such-program", "/nowhere/at/all", found, sizeof(found))));
    cr_assert(eq(str, found, "/nowhere/at/all"));
}

Test(beside, takes_no_path_that_is_cut_short)
{
    char own[PATH_MAX] = "", found[8];
    cr_assert(lt(i64, 8, readlink("/proc/self/exe", own, sizeof(own) - 1)));
    cr_assert(not(beside_find(strrchr(own, '/') + 1, own, found, sizeof(found))));
}

Test(beside, programs_are_files_that_can_be_started)
{
    char path[] = "/tmp/gad-beside.XXXXXX";
    _cleanup_fd_ int fd = mkstemp(path);
    cr_assert(le(int, 0, fd));
    cr_assert(not(beside_is_program(path)));
    cr_assert(zero(int, fchmod(fd, 0700)));
    cr_assert(beside_is_program(path));
    unlink(path);
    cr_assert(not(beside_is_program(path)));
    cr_assert(not(beside_is_program("/tmp")));
}
