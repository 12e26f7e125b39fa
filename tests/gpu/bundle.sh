#!/bin/sh
# bundle.sh [--double] DIRECTORY
# Makes DIRECTORY (it must not exist): the programs of a build, the libraries that they need, the
# tests and the benchmarks, less than 40 MiB as long as programs and libraries are packed, to be
# copied to a host with nothing of ours and an NVIDIA driver that is new enough for the CUDA of the
# build (580 for 13.0; a build by CUDA 12 for older ones). There `sh run.sh` tests and measures, within
# 8 minutes.
#
# What the programs still take from that host is its C library, which must not be older than the one
# here, and a Python 3.11 or newer with NumPy. With --double the programs are those with the test
# double instead of a device, to try the bundle itself.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
double=
if [ "${1:-}" = --double ]; then
    double=-double
    shift
fi
if [ $# != 1 ] || [ -e "$1" ]; then
    echo "usage: bundle.sh [--double] DIRECTORY, which does not exist" >&2
    exit 2
fi
for needed in patchelf xz; do
    command -v $needed >/dev/null || {
        echo "bundle.sh: $needed is missing" >&2
        exit 2
    }
done
out=$1
. "$top/tests/setup.sh"
max_mib=40

programs="daemon/broker/gpuarrayd daemon/worker/gpuarrayd-worker-cpu client/ctl/gpuarrayctl
    tests/bench/latency tests/gpu/stream$double tests/gpu/product$double
    tests/unit/kernels/cuda/checkcuda$double"
if [ "$double" ]; then
    programs="$programs tests/integration/gpuarrayd-worker-cuda-double"
else
    programs="$programs daemon/worker/cuda/gpuarrayd-worker-cuda"
fi
targets=$programs compile "$build" || {
    echo "bundle.sh: the build failed; programs for a device need nvcc (or --double)" >&2
    exit 1
}

# Where a program is in the bundle: three folders down, so that one path to the libraries fits all.
place_of() {
    case $1 in
    tests/unit/kernels/cuda/*) echo "tests/gpu/${1##*/}" ;;
    daemon/worker/cuda/*) echo "daemon/worker/${1##*/}" ;;
    *) echo "$1" ;;
    esac
}

# The C library's own parts are the host's.
is_hosts() {
    case ${1##*/} in
    ld-linux* | libc.so* | libm.so* | libmvec.so* | libpthread.so* | libdl.so* | librt.so* | \
        libresolv.so* | libutil.so*) return 0 ;;
    esac
    return 1
}

# set_rpath PATH FILE. In two steps: patchelf writes over an old path that it replaces, whose end may be the
# name of a symbol as well (".../openblas-pthread": read).
set_rpath() {
    patchelf --remove-rpath "$2"
    patchelf --force-rpath --set-rpath "$1" "$2"
}

libraries_of() { ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p'; }

mkdir -p "$out/lib" "$out/tests"
out=$(cd "$out" && pwd)
for program in $programs; do
    to=$out/build/$(place_of "$program")
    mkdir -p "$(dirname "$to")"
    cp "$build/$program" "$to"
    for library in $(libraries_of "$build/$program"); do
        is_hosts "$library" || [ -e "$out/lib/${library##*/}" ] || cp -L "$library" "$out/lib/"
    done
    strip "$to"
    set_rpath '$ORIGIN/../../../lib' "$to"
done
[ -d "$build/python/gpuarrayd" ] || {
    echo "bundle.sh: the Python package is not built in $build (sh tests/quickstart.sh builds it)" >&2
    exit 1
}
mkdir -p "$out/build/python"
cp -r "$build/python/gpuarrayd" "$out/build/python/"
strip "$out/build/python/gpuarrayd/"*.so
for library in "$out/build/python/gpuarrayd/"*.so; do
    set_rpath '$ORIGIN/../../../lib' "$library"
done
chmod u+w "$out/lib/"*
for library in "$out/lib/"*; do
    strip --strip-unneeded "$library"
    set_rpath '$ORIGIN' "$library"
done

mkdir -p "$out/tests/integration" "$out/tests/gpu"
cp "$top/tests/integration/"*.py "$top/tests/integration/pytest.ini" "$out/tests/integration/"
for part in cuda command values service python; do
    cp -r "$top/tests/integration/$part" "$out/tests/integration/"
done
cp "$top/tests/gpu/"*.py "$out/tests/gpu/"
cp "$top/tests/run-uninstalled.sh" "$out/tests/"
cp "$top/tests/gpu/run.sh" "$top/tests/gpu/README.md" "$out/"
for candidate in "$build/venv/bin/python" python3 /usr/bin/python3; do
    "$candidate" "$top/tests/gpu/pure.py" "$out/pure" 2>/dev/null && break
done
[ -d "$out/pure" ] || {
    echo "bundle.sh: no Python here has pytest and msgpack" >&2
    exit 1
}
find "$out" -name __pycache__ -prune -exec rm -r {} +

say "looking at the bundle"
for file in $(find "$out/build" "$out/lib" -type f); do
    readelf -h "$file" >/dev/null 2>&1 || continue
    for library in $(libraries_of "$file"); do
        case $library in "$out/"*) continue ;; esac
        is_hosts "$library" || echo "$file would take $library of the host" >>"$out/wrong"
    done
    ldd -r "$file" | grep 'not found\|undefined symbol: [^P_]' >>"$out/wrong" || true # Python's are its own
    objdump -T "$file" 2>/dev/null | grep -o 'GLIBC_2\.[0-9]*'
done | sort -t. -k2 -n -u | tail -n 1 | tr _ ' ' >"$out/needs"
if [ -s "$out/wrong" ] || [ ! -s "$out/needs" ]; then
    cat "$out/wrong" >&2
    exit 1
fi
rm "$out/wrong"
# OpenBLAS alone is 35 MiB; what two programs have in common is there once, as far as the dictionary
# reaches. run.sh unpacks it.
tar -C "$out" -cf "$out/packed.tar" lib build
rm -r "$out/lib" "$out/build"
xz --lzma2=preset=0,dict=64MiB "$out/packed.tar"
mib=$(du -sm "$out" | cut -f1)
echo "$out: $mib MiB; needs at least $(cat "$out/needs") on the host"
if [ "$mib" -ge $max_mib ]; then
    echo "bundle.sh: $max_mib MiB or more" >&2
    exit 1
fi
