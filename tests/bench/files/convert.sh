#!/bin/bash
# A copy of an array beside cp of its file, which is the limit, and beside the same job of the daemon,
# in turns, with the file in the page cache: a file that was made here, whose blocks a file system may
# share with the copy (btrfs, xfs), and NumPy's, whose header has another length.
# Usage: run-uninstalled.sh -- convert.sh DIR MIB [ROUNDS]
set -eu
. "$(dirname "$0")/../timing.sh"
cd "$1"
n=$(($2 * 1024 * 256))
truncate -s $((n * 4)) zeros.raw
gpuarrayctl run -q 'x + 1' "x=zeros.raw:f4:$n" -o in.npy
rm zeros.raw
printf "\x93NUMPY\x01\x00v\x00%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': ($n,), }" >numpy.npy
tail -c +4097 in.npy >>numpy.npy
ways="cp convert daemon numpy_cp numpy_convert"
for ((round = 0; round < ${3:-5}; round++)); do
    for way in $ways; do
        ready
        cat numpy.npy >/dev/null
        t0=$(now)
        case $way in
        cp) cp in.npy out.npy ;;
        convert) gpuarrayctl convert -q in.npy out.npy ;;
        daemon) gpuarrayctl run -q --engine cpu x x=in.npy -o out.npy ;;
        numpy_cp) cp numpy.npy out.npy ;;
        numpy_convert) gpuarrayctl convert -q numpy.npy out.npy ;;
        esac
        echo $(($(now) - t0)) >>$way
        rm out.npy
    done
done
limit=$(median <cp)
for way in $ways; do
    awk -v what=$way -v ns="$(median <$way)" -v limit="$limit" -v mib="$2" 'BEGIN {
        printf "%-14s %6.3f s  %6.2f GB/s  %.2f of the speed of cp\n", what, ns / 1e9, mib * 1048576 / ns, limit / ns }'
done
rm in.npy numpy.npy $ways
