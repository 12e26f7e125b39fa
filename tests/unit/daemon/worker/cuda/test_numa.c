/* The node of a device, from what the kernel says of its address; and that pages come from there.
 */
#include "daemon/worker/cuda/numa.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int node_where_it_says(const char *text)
{
    char sysfs[] = "/tmp/gpuarrayd-numa-XXXXXX", device[64], path[80];
    cr_assert(mkdtemp(sysfs) != NULL);
    snprintf(device, sizeof(device), "%s/0000:3b:00.0", sysfs);
    snprintf(path, sizeof(path), "%s/numa_node", device);
    cr_assert(zero(int, mkdir(device, 0700)));
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
    int node = numa_node_of(sysfs, "0000:3b:00.0");
    cr_assert(eq(int, numa_node_of(sysfs, "0000:3c:00.0"), -1)); /* of another */
    unlink(path);
    rmdir(device);
    rmdir(sysfs);
    return node;
}

Test(numa, is_what_the_kernel_says)
{
    cr_assert(eq(int, node_where_it_says("1\n"), 1));
    cr_assert(eq(int, node_where_it_says("0\n"), 0));
    cr_assert(eq(int, node_where_it_says("-1\n"), -1));
}

Test(numa, is_none_where_nothing_can_be_believed)
{
    cr_assert(eq(int, node_where_it_says(""), -1));
    cr_assert(eq(int, node_where_it_says("here\n"), -1));
    cr_assert(eq(int, node_where_it_says("4096\n"), -1));
}

static int mode_now(unsigned long *ret_nodes)
{
    int mode = -1;
    *ret_nodes = 0;
    return syscall(SYS_get_mempolicy, &mode, ret_nodes, 1024, NULL, 0) == 0 ? mode : -1;
}

Test(numa, is_preferred_until_it_is_not_any_more)
{
    unsigned long nodes[1024 / 64];
    if (mode_now(nodes) < 0) /* containers often refuse it */
        cr_skip_test("the kernel tells no policy here");
    numa_prefer(0);
    cr_assert(eq(int, mode_now(nodes), MPOL_PREFERRED));
    cr_assert(eq(u64, nodes[0], 1));
    numa_prefer(-1);
    cr_assert(eq(int, mode_now(nodes), MPOL_DEFAULT));
}
