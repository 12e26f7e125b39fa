# Called by run.sh with a daemon: an npy transposed into a new npy, in turns with the fastest way to
# copy as many bytes, cp, and NumPy on memory maps.
# Usage: transpose.sh DIR GIB [PYTHON]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../timing.sh"
cd "$1"
rows=16384
columns=$(($2 * 16384))
python=${3:-python3}
"$python" -c 'import numpy' 2>/dev/null || python=

truncate -s $((rows * columns * 4)) zeros.raw
gpuarrayctl run -q 'x + float32(index(0) * 7 + index(1))' "x=zeros.raw:f4:${rows}x$columns" -o in.npy
rm zeros.raw
: >ours
: >copies
: >cps
: >numpy
for round in 1 2 3 4 5; do
    ready
    t0=$(now)
    cp in.npy copy.npy
    t1=$(now)
    rm copy.npy
    echo $((t1 - t0)) >>cps
    ready
    t0=$(now)
    gpuarrayctl run -q x x=in.npy -o copy.npy
    t1=$(now)
    rm copy.npy
    echo $((t1 - t0)) >>copies
    ready
    t0=$(now)
    gpuarrayctl transpose -q in.npy -o out.npy
    t1=$(now)
    echo $((t1 - t0)) >>ours
    if [ "$round" -eq 1 ] && [ -n "$python" ]; then
        "$python" "$here/transpose_peer.py" check in.npy out.npy
    fi
    rm -f out.npy
    if [ -n "$python" ] && [ "$round" -le 2 ]; then
        ready
        "$python" "$here/transpose_peer.py" transpose in.npy peer.npy >>numpy
        rm peer.npy
    fi
done
rm in.npy
awk -v a="$(median <ours)" -v b="$(median <copies)" -v c="$(median <cps)" \
    -v numpy="$(median <numpy)" -v gib="$2" 'BEGIN {
    fastest = b < c ? b : c
    printf "transpose npy to npy, float32, %d GiB in page cache: %.2f s; copy: %.2f s, cp %.2f s; %.2f of the faster (at least 0.60)\n",
        gib, a / 1e9, b / 1e9, c / 1e9, fastest / a
    if (numpy) printf "  NumPy, memory maps in blocks: %.2f s; %.1f times\n", numpy, numpy / (a / 1e9) }'
