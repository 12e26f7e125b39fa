# Called by run.sh with a daemon: npy to npy, sqrt of float32 in the page cache, beside cp of the
# same file, in turns; then the private memory of broker and worker after it.
# Usage: files.sh DIR GIB
set -eu
cd "$1"
n=$(($2 * 1024 * 1024 * 256))
now() { date +%s%N; }
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

# A first npy of ones; 0 * x + 1 over a file of zeros keeps Python out of it.
truncate -s $((n * 4)) zeros.raw
gpuarrayctl run -q 'x + 1' "x=zeros.raw:f4:$n" -o in.npy
rm zeros.raw
cat in.npy >/dev/null
: >ours
: >theirs
for round in 1 2 3 4 5; do
    t0=$(now)
    cp in.npy copy.npy
    t1=$(now)
    rm copy.npy
    t2=$(now)
    gpuarrayctl run -q 'sqrt(x)' x=in.npy -o out.npy
    t3=$(now)
    rm out.npy
    echo $((t1 - t0)) >>theirs
    echo $((t3 - t2)) >>ours
done
awk -v a="$(median <ours)" -v b="$(median <theirs)" -v gib="$2" 'BEGIN {
    printf "npy to npy, sqrt float32, %d GiB in page cache: %.2f s; cp: %.2f s; ratio %.2f (at most 1.0)\n",
        gib, a / 1e9, b / 1e9, a / b }'
gpuarrayctl info --json | awk -F'[:,]' '
    /"broker_private_bytes"/ { printf "private memory of the broker: %.1f MiB (at most 16)\n", $2 / 1048576 }
    /"pool_bytes"/ { pool = $2 }
    /"private_bytes"/ { worker = $2 }
    END { printf "private memory of the worker: %.1f MiB, of them pool %.1f (at most pool + 16)\n",
        worker / 1048576, pool / 1048576 }'
rm in.npy
