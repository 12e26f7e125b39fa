#!/bin/sh
# predict.sh [--machine h100|small] [JOB...]: what the CUDA worker would reach on a machine with those rates,
# predicted by a model of its time (tests/double/timeline.c, predict.py); needs no device. A table for each
# machine; a JOB is a name in it. Ten minutes for all of them.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
build=${GPUARRAYD_BUILD:-$top/build}
machines="h100 small"
if [ "${1:-}" = --machine ]; then
    machines=$2
    shift 2
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-predict.XXXXXX")
trap 'rm -rf "$work"' EXIT INT TERM

for machine in $machines; do
    # So slow that what the host does costs little of the modelled time, and jobs still take seconds.
    if [ "$machine" = h100 ]; then pace=400; else pace=100; fi
    printf '\npredicted, %s\n\n' "$machine"
    echo "| job | predicted | bound | of the bound | target | to / from / kernels busy | KiB a copy to / from | calls |"
    echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
    GPUARRAYD_DOUBLE="machine=$machine,pace=$pace,armed=$work/armed-$machine,timeline=$work/$machine" \
        sh "$top/tests/run-uninstalled.sh" \
        --options "--engine cuda --pinned-bytes 512M --cuda-worker $build/tests/integration/gpuarrayd-worker-cuda-double" \
        -- "${PYTHON:-python3}" "$top/tests/gpu/predict.py" "$machine" "$work/$machine" \
        "$work/armed-$machine" "$@"
done
