#!/bin/sh
# ptx.sh [TRIALS [FILTER]]
# Runs the interpreter's kernels as nvcc compiled them, without a device: their PTX as C, every access
# checked (tests/unit/kernels/ptx), in the whole of checkcuda or in cases with FILTER in their names,
# against the CPU engine's results. Needs nvcc. One trial of all cases takes half a minute.
. "$(dirname "$0")/../setup.sh"
need build check
tool=tests/unit/kernels/ptx/checkcuda-ptx
targets=$tool compile "$build"
say "running"
"$build/$tool" --trials "${1:-1}" ${2:+"$2"}
