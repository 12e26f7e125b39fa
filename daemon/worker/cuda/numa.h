/* Which of the host's memory is nearest to a device. */
#pragma once

#define NUMA_SYSFS "/sys/bus/pci/devices"

/* The node of the device at this PCI address ("0000:3b:00.0"); -1: there is but one, or it is not
 * known. */
int numa_node_of(const char *sysfs, const char *pci);

/* Pages that the calling thread takes from now on, or the kernel for it, are of this node as long
 * as there are some; -1: of where the thread runs. Where that may not be chosen nothing changes. */
void numa_prefer(int node);
