"""Dask: blocks that the daemon of each host computes.

    import dask.array as da
    import gpuarrayd as gd
    r = gd.dask.evaluate("sqrt(a*a + b*b)", a=a, b=b)    # a, b: dask arrays; r too
    r.compute()
    gd.dask.mean(r, axis=0)                              # sum prod var std min max any all, too

Blocks of da.from_array(gd.open("big.npy"), chunks=...) are parts of the file, read by the daemon.

A task of the graph is one job of the daemon on the host where the task runs, so the processes and
threads of Dask on a host share one daemon, its pool and its engine. It works with Dask's threads,
with its processes, and with a cluster of dask.distributed (2023.9.2 and newer), where the plugin
connects the workers:

    client = distributed.Client("tcp://head:8786")
    client.register_plugin(gd.dask.DaemonPlugin())
    gd.dask.daemons(client)                              # which worker uses which daemon

On more than one machine. A cluster has one daemon for each host. Either the service runs there
(then DaemonPlugin(start=False) makes sure that nothing else is used), or the first worker on a host
starts a private daemon, which the others on the host share and which leaves when it is idle.
Daemons do not speak with each other: Dask places the blocks, moves them between hosts, and keeps
the results. Where the data lies is the cluster's affair too: a path must mean the same file on each
host whose tasks open it. The package must be installed on every worker.

dask is imported with this module, and distributed with DaemonPlugin or daemons(); importing
gpuarrayd alone imports neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._collections import evaluate, map_blocks
from ._reductions import all, any, count_nonzero, max, mean, min, prod, std, sum, var

if TYPE_CHECKING:
    from ._plugin import DaemonPlugin as DaemonPlugin
    from ._plugin import daemons as daemons

__all__ = [
    "DaemonPlugin", "daemons", "evaluate", "map_blocks", "sum", "prod", "mean", "var", "std", "min",
    "max", "any", "all", "count_nonzero",
]


def __getattr__(name: str) -> Any:
    if name in ("DaemonPlugin", "daemons"):
        from . import _plugin
        return getattr(_plugin, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
