#!/bin/sh
# The part of wheel.sh that runs inside the empty root, beside the wheel. Never run it anywhere else:
# it makes a user.
set -eu
if [ "$(id -un)" = root ]; then
    useradd --create-home alice
    cd /home/alice
    exec runuser -u alice -- env HOME=/home/alice sh "$0"
fi

# From nothing to the first result; the Python index's time is in it.
python3 --version
began=$(date +%s%N)
python3 -m venv v
from=$(date +%s%N)
v/bin/pip install -q --disable-pip-version-check /src/gpuarrayd-*.whl
v/bin/python -c 'import gpuarrayd as gd; print(gd.evaluate("sum(sqrt(a))", a=range(10)))'
now=$(date +%s%N)
echo "a venv $(((from - began) / 1000000)) ms, pip install and the first result $(((now - from) / 1000000)) ms"

cat >all.py <<'PROGRAM'
import json, os, subprocess, sys
import numpy as np
import gpuarrayd as gd

prefix = os.path.join(os.path.dirname(gd.__file__), "_prefix")
a = np.random.default_rng(1).normal(size=(300, 40)).astype("f4")
assert np.array_equal(gd.evaluate("sqrt(a*a + 1)", a=a), np.sqrt(a * a + 1))
info = gd.info()
assert info["program"] == prefix + "/bin/gpuarrayd", info["program"]
[engine] = [one for one in info["engines"] if one["name"] == "cpu"]
assert engine["blas"], engine
print(gd.__version__, engine["level"], engine["blas"])
np.testing.assert_allclose(gd.evaluate("exp(a)", a=a), np.exp(a), rtol=1e-5)
np.testing.assert_allclose((gd.lazy(a).T @ gd.lazy(a)).compute(), a.T @ a, rtol=1e-4, atol=1e-3)
s = np.linalg.svd(a.astype("f8"), compute_uv=False)     # OpenBLAS in this process, too
np.testing.assert_allclose(np.asarray(gd.linalg.svd(a.astype("f8"))[1])[:5], s[:5], rtol=1e-6)
for compression in "gzip", "zstd", "lzf", "lz4", "blosc", "bitshuffle", "szip":
    path = f"a-{compression}.h5:/x"
    gd.save(path, gd.lazy(a), compression=compression)
    assert np.array_equal(gd.open(path).compute(), a), compression
gd.save("a.zarr", gd.lazy(a))
assert np.array_equal(gd.open("a.zarr").compute(), a)
gd.close()
PROGRAM
v/bin/python all.py
v/bin/gpuarrayctl version
v/bin/gpuarrayctl run -v 'max(a)' 'a=a-zstd.h5:/x'
v/bin/gpuarrayctl doctor || [ $? = 1 ]
for page in man1/gpuarrayctl.1 man5/gpuarrayd.conf.5; do [ -s "v/share/man/$page" ]; done
[ -s v/share/bash-completion/completions/gpuarrayctl ]
v/bin/pip uninstall -q -y gpuarrayd
left=$(find v -name '*gpuarray*')
[ -z "$left" ] || { echo "left: $left"; exit 1; }
