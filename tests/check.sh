#!/bin/sh
# Everything that can be tested here: installs what is missing, builds, then
#   unit tests, the kernel runner and the replayed fuzz corpora under ASan and UBSan,
#   the threaded worker and client under TSan (built with clang),
#   integration tests on real daemons, plain and under ASan and UBSan,
#   the quickstart.
# Ends with a line `N passed, N failed` and exits 0 only when nothing failed.
. "$(dirname "$0")/setup.sh"
need build check
python_for_tests
passed=0
failed=0

# count PASSED FAILED
count() {
    passed=$((passed + $1))
    failed=$((failed + $2))
}

# attempt NAME COMMAND...: one check that either passes or fails.
attempt() {
    name=$1
    shift
    say "$name"
    if "$@"; then count 1 0; else
        count 0 1
        echo "FAILED: $name"
    fi
}

# unit DIR [MESON TEST OPTION...]: Criterion's own counts, one for any other test program.
unit() {
    dir=$1
    shift
    meson test -C "$dir" --no-rebuild --print-errorlogs "$@" >"$dir/test.log" 2>&1 || {
        tail -n 150 "$dir/test.log"
    }
    # shellcheck disable=SC2046
    count $("$python" "$top/tests/tally.py" "$dir/meson-logs/testlog.json")
}

# integration BUILD [PYTEST OPTION...]
integration() {
    dir=$1
    shift
    report=$dir/junit.xml
    rm -f "$report"
    GPUARRAYD_BUILD=$dir "$python" -m pytest -q -p no:cacheprovider \
        --junitxml="$report" "$top/tests/integration" "$@" || true
    # shellcheck disable=SC2046
    count $("$python" "$top/tests/tally.py" "$report")
}

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:exitcode=99
UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
TSAN_OPTIONS=halt_on_error=1:exitcode=99
export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS

attempt "build with gcc" compile "$build" --werror
attempt "build with gcc, ASan and UBSan" compile "$build/asan" --werror \
    -Db_sanitize=address,undefined -Db_lundef=false
attempt "build with clang, TSan" env CC=clang sh -c '. "$1/tests/setup.sh"; compile "$2" --werror \
    -Db_sanitize=thread -Db_lundef=false' "$0" "$top" "$build/tsan"
attempt "includes point one way" "$python" "$top/tests/lint.py" "$top"

say "unit tests, ASan and UBSan"
unit "$build/asan"
say "unit tests of threaded code, TSan"
unit "$build/tsan" --suite threads
say "integration tests"
integration "$build"
say "integration tests, ASan and UBSan"
integration "$build/asan" -m "not slow"
attempt "quickstart" sh "$top/tests/quickstart.sh"

printf '\n%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
