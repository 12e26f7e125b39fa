#!/bin/sh
# From a bare Debian or Ubuntu to wind speeds: installs what is missing, builds, starts a daemon of
# its own, computes on real measurements, by command and in Python, then on an array thirty times
# larger than the pool.
. "$(dirname "$0")/setup.sh"
need build
say "building in $build"
targets="daemon/broker/gpuarrayd daemon/worker/gpuarrayd-worker-cpu client/ctl/gpuarrayctl
    client/libgpuarrayd.so.0.1.0"
optional=daemon/worker/cuda/gpuarrayd-worker-cuda
if has_nvcc; then need cuda; fi
compile "$build"
python_package "$build"
python=$(python_with_numpy)

work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-quickstart.XXXXXX")
trap 'rm -rf "$work"' EXIT
winds=$(dpkg -L ferret-datasets | grep '/monthly_navy_winds\.cdf$')
cp "$winds" "$work/winds.nc"

cat >"$work/tour.sh" <<'TOUR'
set -eu
say() { printf '\n== %s\n' "$*"; }
show() { printf '\n$ %s\n' "$*"; }
seconds() { date +%s.%N; }
lasted() { awk "BEGIN { printf \"%.3f\", $2 - $1 }"; }
cd "$1"

say "wind speeds of 132 months from the components in winds.nc (US Navy, on the globe)"
show "gpuarrayctl run --mask-and-scale 'sqrt(u*u + v*v)' u=winds.nc:/UWND v=winds.nc:/VWND -o speed.npy"
gpuarrayctl run -v --mask-and-scale 'sqrt(u*u + v*v)' u=winds.nc:/UWND v=winds.nc:/VWND -o speed.npy
show "gpuarrayctl show speed.npy"
gpuarrayctl show speed.npy

say "the same in Python"
cat >wind.py <<'PYTHON'
import gpuarrayd as gd
u = gd.open("winds.nc:/UWND", mask_and_scale=True)
v = gd.open("winds.nc:/VWND", mask_and_scale=True)
speed = gd.evaluate("sqrt(u*u + v*v)")
PYTHON
show "python3 wind.py"
cat wind.py - >all.py <<'PYTHON'

import numpy as np
assert np.array_equal(speed, np.load("speed.npy")), "not the command's result"
print(f"\n{type(speed).__name__} of {speed.dtype}, {speed.shape}: every element equals speed.npy")
PYTHON
cat wind.py
"$2" all.py

say "the same speeds 200 times over: 1.1 GB, thirty times the daemon's pool of 32 MiB"
tail -c +4097 speed.npy >one.raw
i=0
while [ $i -lt 200 ]; do
    cat one.raw
    i=$((i + 1))
done >many.raw
show "gpuarrayctl run 'r = 0.5 * 1.225 * s**3; m = mean(s)' s=many.raw:f4:200x132x73x144 -o r=power.npy"
t0=$(seconds)
gpuarrayctl run -v 'r = 0.5 * 1.225 * s**3; m = mean(s)' s=many.raw:f4:200x132x73x144 -o r=power.npy
t1=$(seconds)
rm -f power.npy
show "gpuarrayctl run 'sqrt(s)' s=many.raw:f4:200x132x73x144 -o root.npy"
t2=$(seconds)
gpuarrayctl run -v 'sqrt(s)' s=many.raw:f4:200x132x73x144 -o root.npy
t3=$(seconds)
rm -f root.npy
cp many.raw copy.raw
t4=$(seconds)
bytes=$(wc -c <many.raw)
printf '\nwind power (s**3) and mean in one pass: %s s\nsqrt: %s s\ncp of the same file: %s s\n' \
    "$(lasted "$t0" "$t1")" "$(lasted "$t2" "$t3")" "$(lasted "$t3" "$t4")"
printf '(%s bytes in, as many out; the whole commands, one after the other)\n' "$bytes"

show "gpuarrayctl info"
gpuarrayctl info
TOUR
sh "$top/tests/run-uninstalled.sh" --pool 32M -- sh "$work/tour.sh" "$work" "$python"
say "done; 'sh tests/run-uninstalled.sh' gives a shell with a daemon, 'sh tests/check.sh' tests"
