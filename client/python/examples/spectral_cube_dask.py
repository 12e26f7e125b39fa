"""The hyperspectral scan of spectral_cube.py with Dask: four processes, one daemon.

    python spectral_cube_dask.py --bands 224 --rows 2000 --columns 1000 --folder /scratch
    python spectral_cube_dask.py --scheduler tcp://head:8786 --folder /shared

Dask cuts the scan into blocks and sees to who does what; what is done with a block is done by the
daemon of its host. The blocks are pieces of a mapped file, which the daemon reads itself. On one
host the line of spectral_cube.py alone is faster: Dask is for several hosts, or for the steps of
a larger graph.
"""

import argparse
import tempfile

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import gpuarrayd as gd
from spectral_cube import absorbance_in_blocks, make_scan, timed


class MappedFile:
    """An npy file for dask.array: it travels as a path, and is mapped where a task needs it."""

    def __init__(self, path):
        mapped = np.load(path, mmap_mode="r")
        self.path, self.shape, self.dtype, self.ndim = path, mapped.shape, mapped.dtype, mapped.ndim

    def __getitem__(self, where):
        return np.load(self.path, mmap_mode="r")[where]

    def __setitem__(self, where, block):
        np.load(self.path, mmap_mode="r+")[where] = block


def absorbance(source, dark, white, destination):
    scan = da.from_array(MappedFile(source), chunks=(16, 128, -1), asarray=False)
    result = gd.dask.evaluate("-log10(clip((scan - dark) / (white - dark), 1e-4, 1))",
                              scan=scan, dark=dark, white=white)
    np.lib.format.open_memmap(destination, "w+", result.dtype, result.shape)
    da.store(result, MappedFile(destination), lock=False)


def main():
    parser = argparse.ArgumentParser(description="Absorbance of a hyperspectral scan, with Dask.")
    parser.add_argument("--bands", type=int, default=64)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--columns", type=int, default=256)
    parser.add_argument("--folder", help="where the files go, for all hosts; default: temporary")
    parser.add_argument("--scheduler", help="of a cluster; default: four processes on this host")
    args = parser.parse_args()
    cluster = args.scheduler or LocalCluster(n_workers=4, threads_per_worker=1,
                                             dashboard_address="127.0.0.1:0")
    with Client(cluster) as client, tempfile.TemporaryDirectory(dir=args.folder) as folder:
        client.register_plugin(gd.dask.DaemonPlugin())
        used = {(daemon["host"], daemon["pid"]) for daemon in gd.dask.daemons(client).values()}
        print(f"{len(gd.dask.daemons(client))} workers, {len(used)} daemon(s)")
        scan, loop, blocks = (f"{folder}/{name}.npy" for name in ("scan", "loop", "blocks"))
        dark, white = make_scan(scan, args.bands, args.rows, args.columns)
        print(f"loop over blocks: {timed(absorbance_in_blocks, scan, dark, white, loop):.3f} s")
        print(f"with Dask:        {timed(absorbance, scan, dark, white, blocks):.3f} s")
        expected, found = np.load(loop, mmap_mode="r"), np.load(blocks, mmap_mode="r")
        for band in range(args.bands):
            np.testing.assert_allclose(found[band], expected[band], rtol=1e-5, atol=1e-6)
        print("they agree")
    if not args.scheduler:
        cluster.close()


if __name__ == "__main__":
    main()
