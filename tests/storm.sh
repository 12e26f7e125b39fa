#!/bin/sh
# storm.sh [SECONDS] [PYTEST OPTION...]: the attacks of tests/integration/hostile in full, each for
# so many seconds (60), on the build that check.sh or quickstart.sh left, as root (the attackers are other
# users). Prints what an honest user saw beside each attack.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=${GPUARRAYD_BUILD:-$top/build}
seconds=${1:-60}
[ $# -eq 0 ] || shift
python=$top/build/venv/bin/python
if [ ! -x "$python" ]; then
    echo "storm.sh: there is no $python; sh tests/check.sh makes it" >&2
    exit 2
fi
if [ "$(id -u)" != 0 ] && [ -z "${GPUARRAYD_SOAK_SECONDS:-}" ]; then
    echo "storm.sh: the attackers are other users: run it as root" >&2
    exit 2
fi
figures=$(mktemp "${TMPDIR:-/tmp}/gpuarrayd-storm.XXXXXX")
trap 'rm -f "$figures"' EXIT
status=0
GPUARRAYD_BUILD=$build GPUARRAYD_STORM_SECONDS=$seconds GPUARRAYD_STORM_FIGURES=$figures \
    PYTHONPATH=$build/python "$python" -m pytest -q -p no:cacheprovider \
    "$top/tests/integration/hostile" "$@" || status=$?
"$python" - "$figures" <<'PYTHON'
import json
import sys

def number(value):
    return f"{1000 * value:.2f}" if isinstance(value, float) else str(value)

print("\nwhat was seen (times in ms)")
for line in open(sys.argv[1]):
    figures = json.loads(line)
    print(figures.pop("name"))
    for kind, values in figures.items():
        if isinstance(values, dict):
            values = "  ".join(f"{name} {number(value)}" for name, value in values.items())
        else:
            values = number(values)
        print(f"    {kind:8} {values}")
PYTHON
exit "$status"
