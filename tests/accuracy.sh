#!/bin/sh
# Measures how far from exact the functions of mathematics are and writes kernels/ACCURACY.md.
#   accuracy.sh [NUMBER OF ARGUMENTS]
# 10^7 arguments for each function and dtype, unless a number is given; some minutes on two cores.
# Fails, and leaves the table alone, when something is beyond 4 ulp.
. "$(dirname "$0")/setup.sh"
need build check
tool=tests/unit/kernels/cpu/measure-accuracy
targets=$tool compile "$build"
table=$build/ACCURACY.md
say "measuring"
"$build/$tool" --arguments "${1:-10000000}" >"$table"
cp "$table" "$top/kernels/ACCURACY.md"
say "kernels/ACCURACY.md is written"
