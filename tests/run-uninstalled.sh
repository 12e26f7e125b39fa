#!/bin/sh
# run-uninstalled.sh [--pool SIZE] [--threads N] [--options WORDS] [--] [COMMAND...]
# Runs a command (default: a shell) with the built gpuarrayctl on PATH, the built package on
# PYTHONPATH and a daemon of its own on a private socket, and ends the daemon afterwards. Exits as
# the command did. WORDS are more options of the daemon.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${GPUARRAYD_BUILD:-$top/build}
pool=32M
threads=
options=
while [ $# -gt 0 ]; do
    case $1 in
    --pool) pool=$2; shift 2 ;;
    --threads) threads=$2; shift 2 ;;
    --options) options=$2; shift 2 ;;
    --) shift; break ;;
    -*) echo "usage: run-uninstalled.sh [--pool SIZE] [--threads N] [--options WORDS] [--]" \
        "[COMMAND...]" >&2; exit 2 ;;
    *) break ;;
    esac
done
if [ ! -x "$build/daemon/broker/gpuarrayd" ]; then
    echo "run-uninstalled.sh: nothing is built in $build; sh tests/quickstart.sh does" >&2
    exit 2
fi
[ $# -gt 0 ] || set -- "${SHELL:-sh}"

dir=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd.XXXXXX")
daemon=
finish() {
    status=$?
    trap - EXIT INT TERM
    if [ -n "$daemon" ]; then
        kill -TERM "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cuda=$build/daemon/worker/cuda/gpuarrayd-worker-cuda
if [ ! -x "$cuda" ]; then cuda=; fi
mkfifo "$dir/ready"
# shellcheck disable=SC2086
"$build/daemon/broker/gpuarrayd" --socket "$dir/socket" --pool "$pool" \
    ${threads:+--threads "$threads"} --worker "$build/daemon/worker/gpuarrayd-worker-cpu" \
    ${cuda:+--cuda-worker "$cuda"} $options --ready-fd 3 3>"$dir/ready" &
daemon=$!
if [ "$(head -c 1 "$dir/ready" | wc -c)" != 1 ]; then
    echo "run-uninstalled.sh: the daemon did not start" >&2
    exit 1
fi
PATH=$build/client/ctl:$build/daemon/broker:$PATH
GPUARRAYD_SOCKET=$dir/socket
PYTHONPATH=$build/python${PYTHONPATH:+:$PYTHONPATH}
export PATH GPUARRAYD_SOCKET PYTHONPATH
"$@"
