# Called by run.sh: the first result from nothing running, by the private daemon.
# Usage: first.sh BUILD DIR
set -eu
build=$1
XDG_RUNTIME_DIR=$2/runtime
export XDG_RUNTIME_DIR GPUARRAYD_DAEMON="$build/daemon/broker/gpuarrayd"
unset GPUARRAYD_SOCKET || true
mkdir -m 700 "$XDG_RUNTIME_DIR"
times=
for round in 1 2 3 4 5; do
    t0=$(date +%s%N)
    "$build/client/ctl/gpuarrayctl" run 'sqrt(a)' a=2.0 >/dev/null
    t1=$(date +%s%N)
    times="$times $((t1 - t0))"
    pkill -TERM -f "$XDG_RUNTIME_DIR/gpuarrayd/socket" || true
    while pgrep -f "$XDG_RUNTIME_DIR/gpuarrayd/socket" >/dev/null; do sleep 0.05; done
done
printf '%s\n' $times | sort -n | awk '{ a[NR] = $1 } END {
    printf "first result from nothing running: median %.0f ms (at most 80)\n", a[int((NR + 1) / 2)] / 1e6 }'
