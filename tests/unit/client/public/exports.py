"""What the shared library shows: every function of the headers, under the version node, and nothing else.
Usage: exports.py LIBRARY HEADER..."""

import pathlib
import re
import subprocess
import sys

library, *headers = sys.argv[1:]
lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True,
                       capture_output=True).stdout.splitlines()
symbols = [line.split()[-1] for line in lines if line.split()[-2] != "A"]  # A: the node itself
unversioned = [symbol for symbol in symbols if not symbol.endswith("@@GPUARRAYD_0")]
if unversioned:
    sys.exit(f"not of version GPUARRAYD_0: {', '.join(unversioned)}")
shown = {symbol.split("@")[0] for symbol in symbols}
text = "".join(re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.S)
               for header in headers)
declared = set(re.findall(r"\b(gad_\w+)\s*\([^()]*\)\s*;", text))
# A callback's type is no function.
declared -= set(re.findall(r"typedef\s+\w+\s+(gad_\w+)\s*\(", text))
if not declared:
    sys.exit(f"no function found in {headers}")
for what, names in (("not in the header", shown - declared), ("not shown", declared - shown)):
    if names:
        sys.exit(f"{what}: {', '.join(sorted(names))}")
