"""What proto/PROTOCOL.md shows is what a real daemon does: its example, byte for byte, its snippet
of Python, and the names of the maps' keys."""

import contextlib
import io
import re
import socket
import struct
import textwrap

import msgpack
import numpy as np
import pytest

import conftest
import wire

DOCUMENT = (conftest.TOP / "proto/PROTOCOL.md").read_text()
EXAMPLE = DOCUMENT[DOCUMENT.index("## 13. A worked example"):]


def blocks(text):
    """The indented blocks, without their indentation."""
    found = re.findall(r"(?:^ {4}.*\n(?:\n+(?= {4}))?)+", text, flags=re.M)
    return [textwrap.dedent(block) for block in found]


def octets(block):
    """The bytes of a dump: pairs of hexadecimal digits, up to a wide gap or the line's end."""
    data = b""
    for line in block.splitlines():
        match = re.match(r"\s*((?:[0-9a-f]{2} )*[0-9a-f]{2})(?= {2,}|\s*$)", line)
        data += bytes.fromhex(match[1]) if match else b""
    return data


def dumps():
    return [octets(block) for block in blocks(EXAMPLE) if octets(block)[:2] == b"GA"]


def read_frame(sock):
    data = b""
    while len(data) < 8 or len(data) < 8 + struct.unpack("<I", data[4:8])[0]:
        piece = sock.recv(1 << 16)
        assert piece, "the daemon closed the connection"
        data += piece
    return data


def test_the_worked_example_in_bytes(daemon):
    hello, run, unknown = dumps()
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20)
        sock.connect(daemon.socket)
        sock.sendall(hello)
        kind, ident, error, result = msgpack.unpackb(read_frame(sock)[8:])
        assert (kind, ident, error) == (1, 1, None)
        assert result["version"] == 1 and result["server"].startswith("gpuarrayd")
        sock.sendall(run)
        kind, ident, error, result = msgpack.unpackb(read_frame(sock)[8:])
        assert (kind, ident, error) == (1, 2, None)
        assert result["outputs"][0]["data"] == bytes.fromhex("0000004000004040")
        sock.sendall(wire.frame(msgpack.packb([0, 3, "fly", [{}]])))
        assert read_frame(sock) == unknown


def test_the_snippet_of_python(daemon, tmp_path, monkeypatch):
    snippet = next(block for block in blocks(EXAMPLE) if "import array" in block)
    assert '"/run/gpuarrayd/socket"' in snippet
    monkeypatch.chdir(tmp_path)
    values = np.arange(1000.0)
    values.tofile("x.bin")
    printed = io.StringIO()
    names = {}
    with contextlib.redirect_stdout(printed):
        exec(snippet.replace("/run/gpuarrayd/socket", daemon.socket), names)
    names["s"].close()
    hello, result = printed.getvalue().splitlines()
    assert "'server'" in hello
    reply = eval(result)  # what print() made of a list of plain values
    assert reply[:3] == [1, 2, None]
    assert reply[3]["outputs"][0]["data"] == values.sum().tobytes()


def documented(method):
    """The keys that the method's line in section 9 names on the right of its arrow."""
    section = DOCUMENT[DOCUMENT.index(f"### {method}\n"):]
    return re.search(r"→ `([^`]*)`", section)[1]


def keys_of(text, name=None):
    """The keys of the outermost map in `text`, or of the one that `name` stands for."""
    if name:
        text = text[text.index(f"{name}:") + len(name) + 1:].lstrip()
    depth, keys, word = 0, [], ""
    for char in text:
        if char in "{[":
            depth += 1
            word = "" if depth > 1 and char == "{" and text[0] == "[" and depth == 2 else word
        inside = depth == (2 if text[0] == "[" else 1)
        if inside and char not in "{[":
            word += char
        if char in "}]":
            depth -= 1
            if depth == 0:
                break
    for part in word.rstrip("}]").split(","):
        key = part.split(":")[0].strip()
        if re.fullmatch(r"[a-z_]+", key):
            keys.append(key)
    return set(keys)


def test_the_keys_of_replies(daemon, w):
    hello = documented("hello")
    assert keys_of(hello) == set(w.server)
    assert keys_of(hello, "limits") == set(w.server["limits"])
    daemon.counts()
    info = w.call("server.info")
    text = documented("server.info")
    assert keys_of(text) == set(info)
    for name in ("pool", "counts"):
        assert keys_of(text, name) == set(info[name])
    assert keys_of(text, "engines") <= set(info["engines"][0])
    stats = w.call("server.stats")
    text = " ".join(documented("server.stats").split())
    assert keys_of(text) == set(stats)
    for name in ("jobs", "bytes", "seconds", "pool", "sessions", "regions", "log", "left_out"):
        assert keys_of(text, name) == set(stats[name]), name
    for name in ("engines", "users"):
        assert keys_of(text, name) == set(stats[name][0]), name
    assert keys_of(documented("server.samples")) == set(w.call("server.samples"))
    plan = w.call("job.plan", args={"a": {"dtype": "<f8", "shape": [3]}}, outputs=[{"expr": "a + 1"}])
    text = documented("job.plan")
    assert keys_of(text) == set(plan)
    assert keys_of(text, "outputs") == set(plan["outputs"][0])
    assert keys_of(text, "passes") == set(plan["passes"][0])
    array = {"dtype": "<f8", "shape": [3, 3]}
    product = w.call("job.plan", args={"a": array}, outputs=[{"expr": "a @ a"}])
    text = re.search(r"`product` is there where the job has matrix products, and is of the first one:\s+`([^`]*)`", DOCUMENT)[1]
    assert set(product) - set(plan) == {"product"}
    assert keys_of(" ".join(text.split())) == set(product["product"])
    assert keys_of(documented("server.ops")) == set(w.call("server.ops")[0])
    job = w.call("job.submit", args={"a": wire.argument(np.arange(3.0))},
                 outputs=[{"expr": "a + 1"}])["job"]
    result = w.call("job.wait", job=job)
    text = next(b for b in blocks(DOCUMENT[DOCUMENT.index("RESULT:\n"):])).replace('"', "")
    assert keys_of(text) == set(result)
    assert keys_of(text, "seconds") == set(result["seconds"])
    assert keys_of(text, "warnings") == set(result["warnings"])
    assert set(result["outputs"][0]) >= {"dtype", "shape", "data"}
    status = w.call("job.status", job=job)
    assert keys_of(documented("job.status")) - {"error"} == set(status)
    assert keys_of(" ".join(documented("job.trace").split())) == set(w.call("job.trace", job=job))


def test_the_limits_in_the_table(w):
    limits = w.server["limits"]
    for text, key in (("body of a frame | 1 MiB (1048576", "body_bytes"),
                      ("descriptors of a frame | 253", "descriptors"),
                      ("one inline array | 64 KiB (65536", "inline_bytes"),
                      ("dimensions of an array | 32", "ndim"), ("arguments of a job | 64", "args"),
                      ("outputs of a job | 16", "outputs"),
                      ("characters (bytes) of an expression | 16384", "expr_chars")):
        assert f"| {text}" in DOCUMENT
        assert limits[key] == int(re.findall(r"\d+", text)[-1])


def test_parameters_out_of_range(w):
    for params in ({"priority": 101}, {"priority": -101}, {"label": "x" * 64}, {"key": "x" * 64},
                   {"settle": 1}, {"progress_ms": -1}):
        with pytest.raises(wire.Error) as caught:
            w.call("job.run", args={}, outputs=[{"expr": "1 + 1"}], **params)
        assert caught.value.code == "bad-request" and caught.value.argument == next(iter(params))
    for engine in ("cuda", "fpga"):
        with pytest.raises(wire.Error) as caught:
            w.call("job.run", args={}, outputs=[{"expr": "1 + 1"}], engine=engine)
        assert caught.value.code == "no-engine"
    assert "outputs" in w.call("job.run", outputs=[{"expr": "1 + 1"}], priority=100, label="x" * 63,
                               progress_ms=1, unknown={"a": [1]})


def test_codes_in_the_document_are_those_of_the_header():
    header = (conftest.TOP / "proto/gpuarrayd-status.h").read_text()
    words = set(re.findall(r'X\([^"]*"([a-z-]+)"', header)) - {"ok"}
    table = DOCUMENT[DOCUMENT.index("## 12. Error codes"):DOCUMENT.index("## 13.")]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    assert {word for cell in cells for word in re.findall(r"`([a-z-]+)`", cell)} == words
