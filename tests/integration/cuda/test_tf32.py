"""What a request says of TF32: what it allows, where that has an effect, and who tells of it. On the
processor nothing is rounded; on a device the products of float32 are, and are told so."""

import json

import numpy as np
import pytest

import conftest
from test_products import Held
from wire import Error

N = 96  # rows and columns; the depth is 4 N


def operands(dtype):
    rng = np.random.default_rng(7)
    return [(rng.random(shape) * 40).astype(dtype) for shape in ((N, 4*N), (4*N, N))]


@pytest.fixture(scope="module")
def device():
    d = conftest.Daemon(engine="cuda", pool="64M")
    yield d
    d.stop()


def multiplied(daemon, dtype, **options):
    """(precision of the plan, of the result, the largest error beside the product's own size)."""
    a, b = operands(dtype)
    c = np.zeros((N, N), dtype)
    with daemon.connect() as w:
        held = Held(w, a=a, b=b, c=c)
        planned = w.call("job.plan", outputs=[{"expr": "a @ b"}], **options, args={
            name: {"dtype": one.dtype.str, "shape": one.shape} for name, one in (("a", a), ("b", b))})
        reply = w.call("job.run", outputs=[{"expr": "a @ b", "to": held.at("c")}],
                       args={"a": held.at("a"), "b": held.at("b")}, **options)
        exact = a.astype("f8") @ b.astype("f8")
        error = np.abs(held["c"].astype("f8") - exact).max() / np.abs(exact).max()
        held.leave()
    return planned["product"]["precision"], reply["product"]["precision"], error


@pytest.mark.parametrize("dtype, name", [("f4", "float32"), ("f8", "float64"), ("i4", "int32")])
def test_the_processor_takes_no_notice(daemon, dtype, name):
    plain = multiplied(daemon, dtype)
    assert plain == multiplied(daemon, dtype, tf32=True) == multiplied(daemon, dtype, tf32=False)
    assert plain[:2] == (name, name)
    assert plain[2] < 4 * N * 2**-24  # the bound of any order of adding; TF32's is 2**13 times that


def test_a_device_says_what_it_did(device):
    assert multiplied(device, "f4")[:2] == ("float32", "float32")
    assert multiplied(device, "f4", tf32=False)[:2] == ("float32", "float32")
    *said, error = multiplied(device, "f4", tf32=True)
    assert said == ["tf32", "tf32"] and error < 2**-10
    assert multiplied(device, "f8", tf32=True)[:2] == ("float64", "float64")
    assert multiplied(device, "i4", tf32=True)[:2] == ("int32", "int32")


def test_jobs_without_a_product_may_say_it(daemon, device):
    for one in (daemon, device):
        with one.connect() as w:
            reply = w.call("job.run", outputs=[{"expr": "2 * 3"}], tf32=True)
            assert "product" not in reply


@pytest.mark.parametrize("value", [1, 0, "true", None, [], {"allow": True}])
def test_it_is_a_bool(daemon, value):
    with daemon.connect() as w:
        for method in ("job.plan", "job.run", "job.submit"):
            with pytest.raises(Error) as caught:
                w.call(method, outputs=[{"expr": "1"}], tf32=value)
            assert (caught.value.code, caught.value.argument) == ("bad-request", "tf32")


@pytest.mark.parametrize("is_device", [False, True])
def test_commands(daemon, device, tmp_path, is_device):
    one = device if is_device else daemon
    want = "tf32" if is_device else "float32"
    a, b = operands("f4")
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    matmul = ["matmul", tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "c.npy"]
    run = ["run", "a @ b", f"a={tmp_path}/a.npy", f"b={tmp_path}/b.npy", "-o", tmp_path / "c.npy"]
    for words in (matmul, run):
        for how in (["--json"], ["--explain", "--json"]):
            assert json.loads(one.ctl(*words, *how).stdout)["product"]["precision"] == "float32"
            found = json.loads(one.ctl(*words, "--tf32", *how).stdout)
            assert found["product"]["precision"] == want
        assert f" in {want}\n" in one.ctl(*words, "--tf32", "-v").stderr
    job = one.ctl("submit", *run[1:], "--tf32").stdout.strip()
    one.ctl("wait", job)
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), a @ b, rtol=2**-9)
