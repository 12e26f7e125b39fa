#!/bin/sh
# The benchmarks, each beside its physical limit and its peer in the same run, as ratios.
# Usage: run.sh [GIB]: size of the large files (4). Needs three times that free in TMPDIR or /tmp.
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/setup.sh"
gib=${1:-4}
if [ ! -x "$build/client/ctl/gpuarrayctl" ]; then
    echo "nothing is built in $build; sh tests/quickstart.sh does" >&2
    exit 2
fi
python=$(python_with_numpy) # NumPy is the peer
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
uname -srm
sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1
nproc | sed 's/$/ CPUs/'
for name in regions expression; do
    sh "$top/tests/run-uninstalled.sh" -- "$build/tests/bench/$name" "$python" "$top/tests/bench/peer.py"
done
sh "$top/tests/run-uninstalled.sh" -- sh "$top/tests/bench/files/files.sh" "$work" "$gib" "$python"
sh "$top/tests/run-uninstalled.sh" -- sh "$top/tests/bench/reductions.sh" "$build" "$work" 2 "$python"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/counts.py" "$work" 1
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/previews.py" "$work"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/many.py" "$build/tests/bench/read_files" \
    "$work"
sh "$top/tests/run-uninstalled.sh" --pool 64M -- sh "$top/tests/bench/linalg/transpose.sh" "$work" 2 "$python"
sh "$top/tests/run-uninstalled.sh" --pool 256M -- "$python" "$top/tests/bench/linalg/matmul.py" "$work" 256
sh "$top/tests/run-uninstalled.sh" --pool 256M -- "$python" "$top/tests/bench/linalg/decompositions.py" "$work"
sh "$top/tests/run-uninstalled.sh" -- "$build/tests/bench/random" 100 "$python" "$top/tests/bench/random_peer.py"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/random_file.py" "$work" "$((gib * 125)),2000,2000"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/filters.py" "$work" "$build/tests/bench/codecs"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/npz.py" "$work" "$build/tests/bench/inflate" 1
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/zarr_stores.py" "$work" 1
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/take.py" "$work" 1024
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/loader.py" "$work" \
    "$build/tests/bench/row_copies" "$((gib * 250000))"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/loader.py" "$work" \
    "$build/tests/bench/row_copies" "$((gib * 2000000))" 128 256 3 512M
rm "$work/rows.npy"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/files/trainers.py" "$work"
sh "$top/tests/run-uninstalled.sh" -- "$build/tests/bench/shared_scans" 256 4 "$work"
sh "$top/tests/run-uninstalled.sh" -- sh -c "'$build/tests/bench/heap' \"\$GPUARRAYD_SOCKET\""
sh "$top/tests/run-uninstalled.sh" -- sh -c "'$build/tests/bench/latency' \"\$GPUARRAYD_SOCKET\""
sh "$top/tests/run-uninstalled.sh" -- sh -c "'$build/tests/bench/throughput' \"\$GPUARRAYD_SOCKET\""
"$python" "$top/tests/bench/jobs/accounting.py" "$build"
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/jobs/hostile_programs.py" || true
if [ "$(id -u)" = 0 ]; then # the others are users of their own
    sh "$top/tests/run-uninstalled.sh" --pool 256M -- "$python" "$top/tests/bench/jobs/people.py" "$work"
fi
echo "on one processor:"
taskset -c 0 sh "$top/tests/run-uninstalled.sh" --threads 1 -- "$python" "$top/tests/bench/jobs/python.py" \
    "$build/tests/bench/rounds" 0
sh "$top/tests/run-uninstalled.sh" -- "$python" "$top/tests/bench/jobs/python.py" "$build/tests/bench/rounds"
sh "$top/tests/bench/jobs/first.sh" "$build" "$work"
