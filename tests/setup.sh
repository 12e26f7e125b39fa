# Sourced by quickstart.sh and check.sh: packages, build, Python. Needs only POSIX sh, apt and dpkg.
set -eu
top=${top:-$(cd "$(dirname "$0")/.." && pwd)}
build=${GPUARRAYD_BUILD:-$top/build}
# Where ccache is, and has nothing yet, it takes from the compiler what was read, and does not read
# all headers itself before: a quarter of the time of small files.
CCACHE_DEPEND=1
export CCACHE_DEPEND

say() { printf '\n== %s\n' "$*"; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

is_installed() {
    dpkg-query -W -f '${db:Status-Abbrev}\n' "$1" 2>/dev/null | grep -q '^ii'
}

is_known() {
    apt-cache show "$1" >/dev/null 2>&1
}

# find_missing PURPOSE...: into $missing. PACKAGE|-: not missing where apt does not know it.
find_missing() {
    missing=
    for purpose; do
        for choice in $(sed -n "s/^$purpose \([^ ]*\).*/\1/p" "$top/tests/packages.txt"); do
            found=
            for package in $(printf '%s' "$choice" | tr '|' ' '); do
                if [ "$package" = - ] && ! is_known "${choice%|-}"; then found=yes; fi
                if [ "$package" != - ] && is_installed "$package"; then found=yes; fi
            done
            if [ -z "$found" ]; then missing="$missing $choice"; fi
        done
    done
}

# need PURPOSE...: installs what of the list is missing, and nothing when nothing is.
need() {
    find_missing "$@"
    if [ -z "$missing" ]; then return 0; fi
    as_root apt-get update -qq
    find_missing "$@" # more is known now
    say "installing:$missing"
    chosen=
    for choice in $missing; do
        found=
        for package in $(printf '%s' "$choice" | tr '|' ' '); do
            if [ -z "$found" ] && is_known "$package"; then found=$package; fi
        done
        if [ -z "$found" ]; then
            echo "no package of '$choice' is known to apt" >&2
            return 1
        fi
        chosen="$chosen $found"
    done
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $chosen >"${TMPDIR:-/tmp}/gpuarrayd-apt.log" 2>&1 || {
        tail -n 20 "${TMPDIR:-/tmp}/gpuarrayd-apt.log" >&2
        return 1
    }
}

# has_nvcc: whether the CUDA worker can be built, where kernels/cuda/meson.build looks too.
has_nvcc() { nvcc_knows ''; }

# nvcc_knows OPTION: whether its help has it.
nvcc_knows() {
    for nvcc in nvcc "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" /usr/local/cuda/bin/nvcc; do
        if command -v "$nvcc" >/dev/null; then
            "$nvcc" --help | grep -q -e "$1"
            return
        fi
    done
    return 1
}

# compile DIR [MESON OPTION...]: configures once, builds $targets and those of $optional that are to
# be had, or what targets.py picks by $pick (everything when all are unset); the log is shown only
# when it fails.
compile() {
    dir=$1
    shift
    mkdir -p "$dir"
    log=$dir/compile.log
    if [ ! -f "$dir/build.ninja" ]; then
        meson setup "$dir" "$top" "$@" >"$log" 2>&1 || {
            cat "$log" >&2
            return 1
        }
    fi
    found=
    for target in ${optional:-}; do
        if grep -q "^build $target:" "$dir/build.ninja"; then found="$found $target"; fi
    done
    # shellcheck disable=SC2086
    picked=${pick:+$(python3 "$top/tests/targets.py" "$dir" $pick)}
    # shellcheck disable=SC2086
    ninja -C "$dir" ${targets:-} $found $picked >"$log" 2>&1 || {
        tail -n 40 "$log" >&2
        return 1
    }
}

# python_package BUILD [MESON OPTION...]: the Python package on the libgpuarrayd of BUILD, in
# BUILD/python, which is what PYTHONPATH names for tests and run-uninstalled.sh. By meson alone, so
# that no index is needed; pip's way is test_package.py's.
python_package() {
    library=$1
    shift
    made=$library/python-build
    log=$library/python.log
    if [ ! -f "$made/build.ninja" ]; then
        PKG_CONFIG_PATH=$library/meson-uninstalled meson setup "$made" "$top/client/python" \
            -Dpython.platlibdir="$library/python" -Dpython.purelibdir="$library/python" \
            "$@" >"$log" 2>&1 || {
            cat "$log" >&2
            return 1
        }
    fi
    if ! ninja -C "$made" >"$log" 2>&1 || ! rm -rf "$library/python" ||
        ! meson install -C "$made" >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        return 1
    fi
}

# python_with_numpy: prints a Python that has NumPy: the tests' own, else one of the system.
python_with_numpy() {
    for candidate in "$build/venv/bin/python" python3 /usr/bin/python3; do
        if "$candidate" -c 'import numpy' >/dev/null 2>&1; then
            echo "$candidate"
            return 0
        fi
    done
    echo "no Python has NumPy: install python3-numpy" >&2
    return 1
}

# make_venv: NumPy 2 of the index, and what else the tests want, in a virtual environment under the
# build folder. Not if it is there.
make_venv() {
    if cmp -s "$top/tests/requirements.txt" "$build/venv/ready"; then return 0; fi
    mkdir -p "$build"
    rm -rf "$build/venv"
    python3 -m venv "$build/venv" >"$build/venv.log" 2>&1 &&
        "$build/venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check \
            -r "$top/tests/requirements.txt" >>"$build/venv.log" 2>&1 &&
        cp "$top/tests/requirements.txt" "$build/venv/ready"
}

# python_for_tests MADE: the Python of the tests. MADE: how make_venv ended; where the index did not
# answer it is the distribution's NumPy with NEP 50 promotion switched on.
python_for_tests() {
    python=$build/venv/bin/python
    if [ "$1" != 0 ]; then
        echo "the Python index does not answer: using the distribution's NumPy" >&2
        need fallback
        python=/usr/bin/python3 # the distribution's, whatever else is on PATH
        NPY_PROMOTION_STATE=weak
        export NPY_PROMOTION_STATE
    fi
    export python
}
