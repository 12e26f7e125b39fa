#!/bin/sh
# Measures the device's functions of mathematics without a device and writes
# kernels/cuda/ACCURACY.md.
#   accuracy_device.sh [NUMBER OF ARGUMENTS]
# Needs nvcc: its PTX is turned into C and runs on this processor (tests/unit/kernels/cuda). 10^7
# arguments for each function and dtype, unless a number is given; some minutes on two cores. Fails,
# and leaves the table alone, when something is beyond 4 ulp or an exact function differs.
. "$(dirname "$0")/setup.sh"
need build check
tool=tests/unit/kernels/cuda/measure-device
targets=$tool compile "$build"
table=$build/ACCURACY-device.md
say "measuring"
"$build/$tool" --arguments "${1:-10000000}" >"$table"
cp "$table" "$top/kernels/cuda/ACCURACY.md"
say "kernels/cuda/ACCURACY.md is written"
