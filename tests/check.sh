#!/bin/sh
# Everything that can be tested here: installs what is missing, builds, then
#   unit tests, the kernel runner and the replayed fuzz corpora under ASan and UBSan, but on the plain
#   build those of values alone and of what is off under sanitizers (suite "values"),
#   the threaded worker under TSan (built with clang),
#   integration tests on real daemons under ASan and UBSan (of files about values one case in four of
#   each function, see tests/integration/conftest.py); on the plain build the Python package's, and
#   of the others those of values and of what takes too long or is smaller under sanitizers,
#   the quickstart.
# Ends with a line `N passed, N failed` and exits 0 only when nothing failed.
. "$(dirname "$0")/setup.sh"
need build check
if has_nvcc; then need cuda; fi
passed=0
failed=0
mkdir -p "$build"
: >"$build/failures" # their names
alone=0 # of those that passed: at the second try
began=$(date +%s)

# Each phase says after how many seconds it begins.
say() { printf '\n== %s (at %d s)\n' "$*" $(($(date +%s) - began)); }

# count PASSED FAILED
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
}

# note NAME...: what failed is named once more at the end.
note() { echo "FAILED: $*" | tee -a "$build/failures"; }

# note_names FILE: of tally.py, its counts first.
note_names() {
    sed 1d "$1" | while read -r name; do note "$name"; done
}

# attempt NAME COMMAND...: one check that either passes or fails.
attempt() {
    name=$1
    shift
    say "$name"
    if "$@"; then count 1 0; else
        count 0 1
        note "$name"
    fi
}

# unit DIR [MESON TEST OPTION...]: Criterion's own counts, one for any other test program. As with
# integration tests below, few that fail run once more alone, unless a sanitizer said why.
unit() {
    dir=$1
    shift
    log=$dir/meson-logs/testlog.json
    rm -f "$log" "$dir"/meson-logs/alone*
    meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes $(($(nproc) + 1)) "$@" \
        >"$dir/test.log" 2>&1 || tail -n 150 "$dir/test.log"
    again=$("$python" "$top/tests/tally.py" --again "$log")
    if [ -n "$again" ]; then
        say "again, alone: $again"
        # shellcheck disable=SC2086
        meson test -C "$dir" --no-rebuild --print-errorlogs --num-processes 1 --logbase alone \
            $again || true
    fi
    set -- "$dir"/meson-logs/alone*.json
    if [ ! -f "$1" ]; then set --; fi
    "$python" "$top/tests/tally.py" "$log" "$@" >"$dir/test.counts"
    read -r n_passed n_failed n_alone <"$dir/test.counts"
    count "$n_passed" "$n_failed"
    alone=$((alone + n_alone))
    note_names "$dir/test.counts"
}

# pytest_at BUILD REPORT [PYTEST OPTION OR PATH...]
pytest_at() {
    at=$1
    shift
    to=$1
    shift
    GPUARRAYD_BUILD=$at PYTHONPATH=$at/python "$python" -m pytest -q -o cache_dir="$at/failed" \
        --junitxml="$to" "$@" || true
    "$python" "$top/tests/tally.py" "$to" >"$to.counts"
}

# integration BUILD REPORT [PYTEST OPTION OR PATH...]: files side by side, the tests of a file one
# after the other. Two files more than there are processors keep them busy while others wait. What
# then lacks time is not always what is tested: a few that fail run once more, with nothing beside
# them, and those that pass so are named, and counted apart at the end.
integration() {
    dir=$1
    report=$dir/$2 # says where the time went
    shift 2
    rm -rf "$report.xml" "$report-alone.xml" "$dir/failed"
    pytest_at "$dir" "$report.xml" -n $(($(nproc) + 2)) --dist loadfile "$@"
    read -r n_passed n_failed _ <"$report.xml.counts"
    names=$report.xml.counts
    if [ "$n_failed" -gt 0 ] && [ "$n_failed" -le 5 ]; then
        say "$n_failed of them again, alone"
        pytest_at "$dir" "$report-alone.xml" -v --last-failed --last-failed-no-failures none "$@"
        read -r well badly _ <"$report-alone.xml.counts"
        if [ $((well + badly)) -eq "$n_failed" ]; then
            alone=$((alone + well))
            n_passed=$((n_passed + well))
            n_failed=$badly
            names=$report-alone.xml.counts
        fi
    fi
    count "$n_passed" "$n_failed"
    note_names "$names"
}

# The package and its library under ASan and UBSan, inside a Python that is not: the sanitizers'
# libraries come first, every byte is malloc's, and what they say goes into files, because a report
# in a child or in the daemon must not be lost either. Python itself leaks. Of the tests those in
# which the extension and the library do most.
integration_of_package() {
    reports=$build/asan/python-report
    rm -f "$reports".* "$build/asan/python-count"
    (
        cd "$top/tests/integration/python"
        LD_PRELOAD="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:exitcode=99:log_path=$reports
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1:exitcode=99:log_path=$reports
        PYTHONMALLOC=malloc
        export LD_PRELOAD ASAN_OPTIONS UBSAN_OPTIONS PYTHONMALLOC
        passed=0
        failed=0
        alone=0
        integration "$build/asan" python-junit -m "not slow" test_core.py test_core_refusals.py \
            test_core_threads.py test_arguments.py test_evaluate.py test_fork.py test_futures.py \
            test_interrupt.py test_loss.py test_time_limits.py kernels/test_linalg_solve.py
        echo "$passed $failed $alone" >"$build/asan/python-count"
    ) || true
    [ -s "$build/asan/python-count" ] || echo 0 1 0 >"$build/asan/python-count"
    read -r n_passed n_failed n_alone <"$build/asan/python-count"
    count "$n_passed" "$n_failed"
    alone=$((alone + n_alone))
    for file in "$reports".*; do
        if [ -e "$file" ]; then
            count 0 1
            note "a sanitizer's report of the package's tests"
            head -n 60 "$file"
        fi
    done
}

# What is compiled of Python lies in the build folder, once for all processes: before they begin, since
# each of those that begin together would compile all of the tests.
PYTHONPYCACHEPREFIX=$build/pycache
export PYTHONPYCACHEPREFIX
unset PYTHONDONTWRITEBYTECODE
compile_tests() {
    "$build/venv/bin/python" -m pytest -q -p no:cacheprovider --collect-only --tb=no \
        "$top/tests/integration" >"$build/collected.log" 2>&1 || true # what they import is not built yet
}
{ make_venv && compile_tests; } & # the index is waited for while the compiler works
venv=$!
ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
TSAN_OPTIONS=halt_on_error=1:exitcode=99
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS

# Where nvcc is, the CUDA worker is built once, for one architecture, whose own code is not optimised
# (by a toolkit that can, hardly compiled: in 7 s instead of 40): it runs nowhere here. What it does on the host runs on the test double of the CUDA runtime, in every
# build.
# Under sanitizers with -O1 and line tables alone, which their reports need: half of the time to
# compile. The kernels have levels of their own. At -O1 gcc warns of texts that are never cut short.
# Functions of many accesses call ASan's checks: in a copy each, they took longest to compile. lld links
# in half of the time.
pick="--but tests/unit --but tests/fuzz --suite values" # those run under sanitizers
attempt "build with gcc" compile "$build" --werror -Dnvcc_architectures=75 \
    "-Dnvcc_args=-Xptxas,-O0$(nvcc_knows Ofast-compile && echo ,-Ofc=max)" -Ddebug=false
pick="--but tests/bench --but tests/gpu" # those run as they are meant to, quickly
CC_LD=lld
export CC_LD
attempt "build with gcc, ASan and UBSan" compile "$build/asan" --werror \
    -Db_sanitize=address,undefined -Db_lundef=false -Dcuda=disabled \
    -Doptimization=1 \
    "-Dc_args=-g1 -Wno-format-truncation --param=asan-instrumentation-with-call-threshold=30"
pick=
attempt "build with clang, TSan" env CC=clang pick="--but . --suite threads" sh -c '
    . "$1/tests/setup.sh"
    compile "$2" --werror -Db_sanitize=thread -Db_lundef=false -Dcuda=disabled \
        -Doptimization=1 -Dc_args=-g1' "$0" "$top" "$build/tsan"
unset CC_LD
wait "$venv" && made=0 || made=$?
python_for_tests "$made"
attempt "build the Python package" python_package "$build" --werror
attempt "build the Python package, ASan and UBSan" python_package "$build/asan" --werror \
    -Db_sanitize=address,undefined -Db_lundef=false
attempt "includes point one way" "$python" "$top/tests/lint.py" "$top"

say "unit tests of values"
unit "$build" --suite values
say "unit tests, ASan and UBSan"
unit "$build/asan" --no-suite values
say "unit tests of threaded code, TSan"
unit "$build/tsan" --suite threads
say "integration tests"
integration "$build" junit "$top/tests/integration" -m "slow or plain"
say "integration tests, ASan and UBSan"
integration "$build/asan" junit "$top/tests/integration" -m "not slow" \
    --ignore="$top/tests/integration/python"
say "integration tests of the Python package, ASan and UBSan"
integration_of_package
rm -rf "$build/bundle"
if [ -x "$build/daemon/worker/cuda/gpuarrayd-worker-cuda" ]; then double=; else double=--double; fi
# shellcheck disable=SC2086
attempt "bundle for hosts with a device" sh "$top/tests/gpu/bundle.sh" $double "$build/bundle"
attempt "quickstart" sh "$top/tests/quickstart.sh"

say done
cat "$build/failures"
[ "$alone" = 0 ] || echo "$alone passed alone only (named above): they failed beside others"
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
