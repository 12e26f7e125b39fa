# Called by run.sh with a daemon: makes an npy and times reductions of it beside reading it and beside
# NumPy and Dask.
# Usage: reductions.sh BUILD DIR GIB [PYTHON]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
python=${4:-python3}
shape=$(($3 * 2048))x131072
cd "$2"
truncate -s $(($3 * 1024 * 1024 * 1024)) zeros.raw
gpuarrayctl run -q 'x + float32(index(1) % 1000)' "x=zeros.raw:f4:$shape" -o reduced.npy
rm zeros.raw
sync
cat reduced.npy >/dev/null
if "$python" -c 'import numpy' 2>/dev/null; then
    "$build/tests/bench/reductions" reduced.npy "$python" "$here/peer.py"
else
    "$build/tests/bench/reductions" reduced.npy
fi
rm reduced.npy
