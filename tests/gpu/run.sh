#!/bin/sh
# run.sh [--double] [DIRECTORY]
# Tests and measures a bundle (bundle.sh) on this host within 8 minutes. Each step has a time limit,
# and the next one follows whatever it said; what does not fit the 8 minutes is skipped. Left in
# DIRECTORY (./results), from the first step on: the table results.md, to which each step adds its rows,
# and logs.tar.gz. Ends with 1 when a step failed; a step that cannot be run here is skipped and says so.
set -u
here=$(cd "$(dirname "$0")" && pwd)
double=
if [ "${1:-}" = --double ]; then
    double=-double
    shift
fi
if [ -e "$here/packed.tar.xz" ]; then # not every host has xz
    tar -C "$here" -xJf "$here/packed.tar.xz" 2>/dev/null ||
        "${PYTHON:-python3}" -m tarfile -e "$here/packed.tar.xz" "$here" || exit 2
    rm "$here/packed.tar.xz"
fi
results=${RUN_RESULTS:-${1:-$PWD/results}}
mkdir -p "$results" || exit 2
results=$(cd "$results" && pwd)
build=$here/build
GPUARRAYD_BUILD=$build
GPUARRAYD_TEST_WORKER=$build/daemon/worker/gpuarrayd-worker-cuda
if [ "$double" ]; then
    GPUARRAYD_TEST_WORKER=$build/tests/integration/gpuarrayd-worker-cuda-double
fi
PYTHONDONTWRITEBYTECODE=1
GPUARRAYD_TEST_ENGINE=cuda
export GPUARRAYD_BUILD GPUARRAYD_TEST_WORKER GPUARRAYD_TEST_ENGINE PYTHONDONTWRITEBYTECODE
python=${PYTHON:-python3}
"$python" -c 'import msgpack, pytest' 2>/dev/null || {
    PYTHONPATH=$here/pure${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
}
threads=$(nproc)
[ "$threads" -le 8 ] || threads=8
check=$build/tests/gpu/checkcuda$double
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
logs=${RUN_LOGS:-$work/logs} # by names of steps
table=$results/results.md
failed=0
most_s=480
began_all=$(date +%s)

log_of() { echo "$logs/$(echo "$1" | tr -c 'a-z0-9\n' '-').log"; }

# step NAME SECONDS COMMAND...: one row of the table; 77 is skipped.
step() {
    name=$1
    limit=$2
    shift 2
    log=$(log_of "$name")
    printf '%s ... ' "$name"
    began=$(date +%s)
    left=$((most_s - 5 - (began - began_all)))
    [ "$limit" -le "$left" ] || limit=$left
    if [ "$limit" -gt 0 ]; then
        timeout -k 5 "$limit" "$@" >"$log" 2>&1
        code=$?
    else
        echo "$most_s s are over" >"$log"
        code=77
    fi
    took=$(($(date +%s) - began))
    case $code in
    0) verdict=passed ;;
    77) verdict="skipped: $(tail -n 1 "$log")" ;;
    124 | 137) verdict="FAILED: not done in $limit s" ;;
    *) verdict="FAILED: exit $code, $(grep -v '^RESULT' "$log" | tail -n 1 | cut -c 1-120)" ;;
    esac
    case $verdict in FAILED*) failed=1 ;; esac
    echo "$verdict ($took s)"
    printf '| %s | %s | | | %s s |\n' "$name" "$(echo "$verdict" | tr '|' '/')" "$took" >>"$table"
    awk -F '\t' '/^RESULT/ { printf "| %s | %s | %s | %s | %s |\n", $2, $3, $4, $5, $6 }' \
        "$log" >>"$table"
    tar -C "$logs" -czf "$results/logs.tar.gz" .
}

# The runner of kernels says what device there is, or why none is, and ends with 77.
device() { "$check" "no such case" 2>&1; }
need_device() { device >"$work/device" || { cat "$work/device"; return 1; }; }

# with_options WORDS COMMAND...: on a daemon whose jobs the device computes, with these options more.
with_options() {
    need_device || return 77
    options=$1
    shift
    sh "$here/tests/run-uninstalled.sh" --threads "$threads" \
        --options "--engine cuda --cuda-worker $GPUARRAYD_TEST_WORKER $options" -- "$@"
}

with_daemon() { with_options '' "$@"; }

# streams_with OPTIONS MIB: the streams again, on a daemon with these options, which the rows name.
streams_with() {
    with_options "$1" "$build/tests/gpu/stream$double" "$threads" "$2" "$work" >"$work/streams" || return
    awk -F '\t' -v OFS='\t' -v words="$1" '/^RESULT/ { $2 = $2 ", " words } 1' "$work/streams"
}

# chunk_sizes MIB SIZE...: what size of copies fills the link; all that the setting takes.
chunk_sizes() {
    of_mib=$1
    shift
    for size; do streams_with "--chunk-bytes ${size}M" "$of_mib" || return; done
}

# From nothing to the first result: the device's own part of it is that of a program that opens it.
first_result() {
    need_device || return 77
    before=$(date +%s%N)
    device >"$work/device"
    opened=$(date +%s%N)
    with_daemon gpuarrayctl run 'sqrt(x)' x=4 || return
    echo "$before $opened $(date +%s%N)" | awk '{ floor = ($2 - $1) / 1e9; ours = ($3 - $2) / 1e9
        printf "RESULT\tdaemon and worker from nothing to a first result, and their end\t%.2f s\t" \
            "a program that opens the device %.2f s\t%.2f\t\n", ours, floor, ours / floor }'
}

# What the driver says that the worker has of the device's memory, beside what the worker says.
device_memory() {
    need_device || return 77
    if ! command -v nvidia-smi >/dev/null; then
        echo "there is no nvidia-smi"
        return 77
    fi
    # shellcheck disable=SC2016
    with_daemon sh -c 'gpuarrayctl run "sqrt(x)" x=4 && gpuarrayctl info --json >"$0/info" &&
        nvidia-smi --query-compute-apps=pid,used_gpu_memory --format=csv,noheader,nounits >"$0/held"' "$work" ||
        return
    "$python" - "$work/info" "$work/held" <<'PYTHON'
import json
import sys

engine = next(e for e in json.load(open(sys.argv[1]))["engines"] if e["name"].startswith("cuda"))
held = dict(line.replace(" ", "").strip().split(",", 1) for line in open(sys.argv[2]) if "," in line)
theirs = held.get(str(engine["pid"]), "")
if not theirs.isdigit():
    print("the driver does not say what the worker has, as in a container")
    sys.exit(77)
ours = engine["process_device_bytes"] / 2**20
print(f"RESULT\tdevice's memory that the worker says it has ({engine['memory']['process_source']})\t{ours:.0f} MiB\t"
      f"nvidia-smi {theirs} MiB\t{ours / float(theirs):.2f}\t1.00")
PYTHON
}

# sanitize TOOL FILTER [OPTION]: NVIDIA's checker over a part of the runner.
sanitize() {
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    if [ -z "$tool" ] || [ "$double" ]; then
        echo "there is no compute-sanitizer, or no device"
        return 77
    fi
    "$tool" --tool "$1" --error-exitcode 1 "$check" --trials 1 ${3:+"$3"} "$2" && return 0
    # It knows no device at all (some sandboxes): not our fault, and no pass.
    "$tool" --tool "$1" --error-exitcode 1 "$check" --trials 1 "no such case" >/dev/null 2>&1 && return 1
    echo "compute-sanitizer does not run here"
    return 77
}

python_has() { "$python" -c "import $1" 2>/dev/null; }

integration() {
    cd "$here/tests/integration" || return 1
    if ! python_has numpy || ! python_has h5py; then
        echo "Python has no NumPy or no h5py"
        return 77
    fi
    "$python" -m pytest -q -p no:cacheprovider "$@"
}

# package TEST...: tests of the Python package on daemons whose jobs the device computes.
package() {
    PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
    if ! python_has gpuarrayd; then
        echo "the Python package is not in the bundle, or not for this Python"
        return 77
    fi
    integration "$@"
}

# Arrays larger than the pool, of several clients.
crowd() {
    need_device || return 77
    if ! python_has numpy; then
        echo "Python has no NumPy"
        return 77
    fi
    "$python" "$here/tests/gpu/crowd.py" "$1"
}

# The floor is of the same machine and minute: the ping-pong of latency, the copies of checkcuda.
small_job() {
    floor=$(sed -n 's/^FLOOR\t//p' "$(log_of "kernels, rates")")
    with_daemon sh -c "'$build/tests/bench/latency' \"\$GPUARRAYD_SOCKET\" 3000" >"$work/latency" ||
        return 1
    cat "$work/latency"
    sed -n 's/.*: p50 \([0-9.]*\) us.*bare ping-pong: p50 \([0-9.]*\) us.*/\1 \2/p' "$work/latency" |
        awk -v floor="${floor:-0}" '{
            if (floor == 0) { print "there is no floor: kernels, rates was not run"; exit 1 }
            limit = 2.2 * $2 + floor
            printf "RESULT\tsmall job, 1,000 float64 inline, p50\t%.1f us\t2.2 x ping-pong %.1f us " \
                "+ copy, kernel, copy %.1f us\t%.2f\tat most 1.00\n", $1, $2, floor, $1 / limit }'
}

if [ "${RUN_STEP:-}" ]; then
    "$@"
    exit
fi
mib=512
product_mib=512
chunk_mib=256
large="--device-bytes 8G --pinned-bytes 4G"
pool=128M
bench=
fast="cuda/test_cuda.py cuda/test_cuda_jobs.py cuda/test_cuda_functions.py cuda/test_cuda_random.py cuda/test_cuda_trees.py values/test_trees.py"
fast="$fast cuda/test_cuda_products.py values/test_reduction_functions.py values/test_random_functions.py cuda/test_cuda_counts.py"
fast="$fast cuda/test_cuda_near.py cuda/test_cuda_windows.py python/kernels/test_cuda_repeats.py"
if [ "$double" ]; then # the bundle is tried, not the double's speed
    mib=8
    product_mib=16
    chunk_mib=8
    large="--device-bytes 64M --pinned-bytes 32M"
    pool=8M
    bench="--mib 16"
    fast="cuda/test_cuda.py"
fi
# part NAME SECONDS FUNCTION...: a step that is a function of this file, in a shell of its own.
part() {
    name=$1
    limit=$2
    shift 2
    step "$name" "$limit" env RUN_STEP=1 RUN_RESULTS="$results" RUN_LOGS="$logs" sh "$0" ${double:+--double} "$@"
}

mkdir -p "$logs"
{
    driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    echo "Device: $(device | sed -n 1p). Driver: ${driver:-none}. Date: $(date -u +%Y-%m-%d)."
    echo "Host: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) processors," \
        "$threads threads of the daemon."
    echo
    echo '| what | measured | limit in the same run | ratio | target, or time taken |'
    echo '| --- | --- | --- | --- | --- |'
} >"$table"

# shellcheck disable=SC2086
step "kernels, rates" 45 "$check" --bench $bench
part "streaming" 60 with_daemon "$build/tests/gpu/stream$double" "$threads" "$mib" "$work" \
    "$python" "$here/tests/gpu/array_peers.py"
part "matrix products" 90 with_options "--pinned-bytes ${product_mib}M" "$build/tests/gpu/product$double" \
    "$product_mib"
part "small jobs" 15 small_job
part "the first result" 15 first_result
part "device's memory" 15 device_memory
part "chunk sizes" 40 chunk_sizes "$chunk_mib" 2 4 8 16
part "streaming with large memory" 40 streams_with "$large" "$mib"
step "kernels, all functions" 60 "$check"
part "compute-sanitizer memcheck" 20 sanitize memcheck sqrt
part "compute-sanitizer racecheck" 20 sanitize racecheck "sum float"
part "arrays beyond the pool" 40 crowd "$pool"
part "integration tests" 120 integration $fast
# Without those that ask for the processor by name.
part "the python package" 20 package python/test_evaluate.py python/test_futures.py \
    -k "not test_engine_and_label and not test_info_stats_and_ops and not test_a_result"
part "open first axes" 20 package python/files/test_unbounded.py python/files/test_streams.py
part "chunks as blocks of rings" 25 package python/files/test_chunked_arrays.py
part "compute-sanitizer racecheck, counts" 20 sanitize racecheck counts
part "compute-sanitizer racecheck, scans" 20 sanitize racecheck "scans float"
part "compute-sanitizer initcheck" 20 sanitize initcheck programs --unfilled
echo
cat "$table"
exit $failed
