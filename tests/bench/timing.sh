# What the benchmarks of files share: nanoseconds, the median of a column, and a beginning at which nobody
# pays for writing back what the other left and in.npy is in the page cache.
now() { date +%s%N; }
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
ready() {
    sync
    cat in.npy >/dev/null
}
