# Called by run.sh with a daemon: npy to npy, sqrt of float32 in the page cache, beside cp of the
# same file and a loop in NumPy, in turns; then the private memory of broker and worker after it.
# Usage: files.sh DIR GIB [PYTHON]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../timing.sh"
cd "$1"
n=$(($2 * 1024 * 1024 * 256))
python=${3:-python3}
"$python" -c 'import numpy' 2>/dev/null || python=

# A first npy of ones; 0 * x + 1 over a file of zeros keeps Python out of it.
truncate -s $((n * 4)) zeros.raw
gpuarrayctl run -q 'x + 1' "x=zeros.raw:f4:$n" -o in.npy
rm zeros.raw
: >ours
: >theirs
: >numpy
: >around
for round in 1 2 3 4 5; do
    ready
    t0=$(now)
    cp in.npy copy.npy
    t1=$(now)
    rm copy.npy
    echo $((t1 - t0)) >>theirs
    if [ -n "$python" ]; then
        ready
        "$python" "$here/file_peer.py" in.npy peer.npy >>numpy
        rm peer.npy
    fi
    ready
    t0=$(now)
    gpuarrayctl run --json 'sqrt(x)' x=in.npy -o out.npy >outcome
    t1=$(now)
    rm out.npy
    echo $((t1 - t0)) >>ours
    sed -n 's/.*"around_cache_bytes": *\([0-9]*\).*/\1/p' outcome >>around
done
awk -v a="$(median <ours)" -v b="$(median <theirs)" -v around="$(median <around)" \
    -v numpy="$(median <numpy)" -v gib="$2" 'BEGIN {
    printf "npy to npy, sqrt float32, %d GiB in page cache: %.2f s; cp: %.2f s; ratio %.2f (at most 0.8)\n",
        gib, a / 1e9, b / 1e9, a / b
    printf "  written past the page cache: %.0f %%\n", around / gib / 2^30 * 100
    if (numpy) printf "  NumPy, a loop: %.2f s; %.1f times\n", numpy, numpy / (a / 1e9) }'

# Private memory (anonymous; neither process has a memfd of its own but the crash page) while a job
# of this size runs.
broker=$(gpuarrayctl info --json | sed -n 's/^ *"pid": *\([0-9]*\),*$/\1/p' | head -n 1)
worker=$(tr -d ' ' <"/proc/$broker/task/$broker/children")
pool=$(gpuarrayctl info --json | sed -n 's/^ *"bytes": *\([0-9]*\),*$/\1/p' | head -n 1)
gpuarrayctl run -q 'r = sqrt(x*x); s = sum(x)' x=in.npy -o r=out.npy >/dev/null &
job=$!
while kill -0 $job 2>/dev/null; do
    for pid in $broker $worker; do
        sed -n "s/^Anonymous: *\([0-9]*\) kB/$pid \1/p" "/proc/$pid/smaps_rollup"
    done
    sleep 0.02
done >memory
wait $job
rm out.npy
awk -v broker="$broker" -v worker="$worker" -v pool="$pool" '
    $2 > most[$1] { most[$1] = $2 }
    END {
        printf "private memory, most seen: broker %.1f MiB (at most 16); worker %.1f MiB with a pool of %.0f (at most %.0f)\n",
            most[broker] / 1024, most[worker] / 1024, pool / 1048576, pool / 1048576 + 16
    }' memory
rm in.npy
