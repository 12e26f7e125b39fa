#!/bin/bash
# Pipes through a job beside pipes alone, in one run. 'two' is what is to be compared: a job between
# two pipes beside cat in its place; 'one' is a single pipe.
#
#     tests/bench/files/pipes.sh BUILD [MIB [ROUNDS]]
#
# 1 GiB of float32 by default, in the page cache. Prints seconds and ratios, the best of the rounds.
set -eu
build=$(realpath "$1")
mib=${2:-1024}
rounds=${3:-5}
ctl=$build/client/ctl/gpuarrayctl
folder=$(mktemp -d "${BENCH_FOLDER:-/dev/shm}/pipes.XXXXXX")
export GPUARRAYD_DAEMON=$build/daemon/broker/gpuarrayd XDG_RUNTIME_DIR=$folder
unset GPUARRAYD_SOCKET
trap 'kill $daemon 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$folder"' EXIT
export GPUARRAYD_SOCKET=$folder/socket
"$GPUARRAYD_DAEMON" --socket "$GPUARRAYD_SOCKET" --engine cpu 2>"$folder/log" & daemon=$!
until "$ctl" ping >/dev/null 2>&1; do sleep 0.1; done

n=$((mib * 262144))
truncate -s $((n * 4)) "$folder/zeros.raw"
"$ctl" run -q 'x + 1' "x=$folder/zeros.raw:f4:$n" -o "$folder/a.npy"
rm "$folder/zeros.raw"

# Seconds of a command, in thousandths.
took() {
    local begin end
    begin=$(date +%s%N)
    eval "$1"
    end=$(date +%s%N)
    echo $(((end - begin) / 1000000))
}

declare -A best
for ((i = 0; i < rounds; i++)); do
    for what in one two elementwise sum; do
        case $what in
        one) command="cat '$folder/a.npy' | cat >/dev/null" ;;
        two) command="cat '$folder/a.npy' | cat | cat >/dev/null" ;;
        elementwise) command="cat '$folder/a.npy' | '$ctl' run 'sqrt(a)' a=- -o - | cat >/dev/null" ;;
        sum) command="cat '$folder/a.npy' | '$ctl' run 'sum(a)' a=- >/dev/null" ;;
        esac
        ms=$(took "$command")
        [ "${best[$what]:-999999}" -lt "$ms" ] || best[$what]=$ms
    done
done
for what in one two elementwise sum; do
    awk -v what=$what -v ms="${best[$what]}" -v one="${best[one]}" -v two="${best[two]}" -v mib="$mib" 'BEGIN {
        printf "%-12s %7.3f s  %6.2f GB/s  %.2f of one pipe, %.2f of two\n", what, ms / 1e3,
            mib * 1.048576 / ms, one / ms, two / ms }'
done
