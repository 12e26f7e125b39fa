# Called by run.sh with a daemon: makes an npy and times its sum beside reading it and beside NumPy.
# Usage: sum.sh BUILD DIR GIB [PYTHON]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$1
python=${4:-python3}
n=$(($3 * 1024 * 1024 * 256))
cd "$2"
truncate -s $((n * 4)) zeros.raw
gpuarrayctl run -q 'x + 1' "x=zeros.raw:f4:$n" -o sum.npy
rm zeros.raw
sync
cat sum.npy >/dev/null
if "$python" -c 'import numpy' 2>/dev/null; then
    "$build/tests/bench/sum" sum.npy "$python" "$here/peer.py"
else
    "$build/tests/bench/sum" sum.npy
fi
rm sum.npy
