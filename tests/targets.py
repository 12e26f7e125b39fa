"""What of a build folder is to be built, so that no program is compiled where nobody runs it.

--but FOLDER    everything but what this folder of the tree defines; may be repeated
--suite NAME    and the programs of the tests of this suite, with what they start
"""

import argparse
import json
import pathlib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("build", type=pathlib.Path)
parser.add_argument("--but", action="append", default=[])
parser.add_argument("--suite")
options = parser.parse_args()
info = options.build / "meson-info"
top = json.loads((info / "meson-info.json").read_text())["directories"]["source"]
needed = {needs for test in json.loads((info / "intro-tests.json").read_text())
          if options.suite in [suite.split(":")[-1] for suite in test["suite"]]
          for needs in test["depends"]}


def is_wanted(target):
    folder = pathlib.Path(target["defined_in"]).parent.relative_to(top)
    return target["id"] in needed or (
        target["build_by_default"] and not any(folder.is_relative_to(name) for name in options.but))


for target in json.loads((info / "intro-targets.json").read_text()):
    if is_wanted(target):
        print(*(pathlib.Path(name).relative_to(options.build) for name in target["filename"]))
