/* The pinned slab is on the node of the device: what passes the link from another one passes the
 * way between the processors, too, which others use. Called while the card is opened.
 */
#include "daemon/worker/cuda/numa.h"

#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_NODES (8 * (int)sizeof(unsigned long))

int numa_node_of(const char *sysfs, const char *pci)
{
    char path[256];
    int node = -1;
    if (snprintf(path, sizeof(path), "%s/%s/numa_node", sysfs, pci) >= (int)sizeof(path))
        return -1;
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    if (fscanf(file, "%d", &node) != 1 || node >= MAX_NODES)
        node = -1;
    fclose(file);
    return node;
}

void numa_prefer(int node)
{
    const unsigned long nodes = node >= 0 ? 1ul << node : 0;
    const int mode = node >= 0 ? MPOL_PREFERRED : MPOL_DEFAULT;
    (void)syscall(SYS_set_mempolicy, mode, node >= 0 ? &nodes : NULL, MAX_NODES);
}
