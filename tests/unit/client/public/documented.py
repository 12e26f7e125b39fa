"""Whether every function of the public headers says what it does: a comment of its own that begins
with a sentence and names each parameter. Usage: documented.py HEADER..."""

import pathlib
import re
import sys

text = "".join(pathlib.Path(header).read_text() for header in sys.argv[1:])
FUNCTION = re.compile(r"(/\*\*(?:[^*]|\*(?!/))*\*/\s*)?^(?!typedef)[a-z][\w ]*[ *](gad_\w+)\(([^()]*)\);",
                      re.M)
TYPE = re.compile(r"(/\*\*(?:[^*]|\*(?!/))*\*/\s*)?^(?:typedef [\w ]*[ *](gad_\w+)\(([^()]*)\);)", re.M)
faults = []
found = FUNCTION.findall(text) + TYPE.findall(text)
if len(found) < 30:
    faults.append(f"only {len(found)} functions were found")
for comment, name, parameters in found:
    if not re.match(r"/\*\* [A-Z].*?[.:]\s", comment, re.S):
        faults.append(f"{name}: no sentence")
    for parameter in parameters.split(","):
        word = parameter.split()[-1].lstrip("*")
        # error is described once, for all.
        if word not in ("void", "error") and not re.search(rf"\b{word}\b", comment):
            faults.append(f"{name}: says nothing about {word}")
print("\n".join(faults) or f"{len(found)} functions say what they do")
sys.exit(bool(faults))
