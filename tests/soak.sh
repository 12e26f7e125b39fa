#!/bin/sh
# soak.sh [SECONDS] [PYTEST OPTION...]: jobs of every kind by several clients for so long (3600), on the
# build that check.sh or quickstart.sh left. Fails where a result is wrong, or where memory or
# descriptors of the daemon or of a client grow; prints what they had in each third of the time.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
GPUARRAYD_SOAK_SECONDS=${1:-3600}
export GPUARRAYD_SOAK_SECONDS
[ $# -eq 0 ] || shift
exec sh "$top/tests/storm.sh" 1 -k test_soak "$@"
