"""Prints "PASSED FAILED" of a meson testlog.json or a JUnit file.

Criterion programs count each of their tests (their own synthesis line), others count one. A program
that failed without failing a test of its own (a crash, a leak at exit) counts as one failure, and a
missing file too: silence is never a pass.
"""

import json
import re
import sys
import xml.etree.ElementTree

SYNTHESIS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")


def of_meson(path):
    passed = failed = 0
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        text = re.sub(r"\x1b\[[0-9;]*m", "", test.get("stdout", "") + test.get("stderr", ""))
        found = SYNTHESIS.search(text)
        bad = 0
        if found:
            passed += int(found[2])
            bad = int(found[3]) + int(found[4])
        elif test["result"] == "OK":
            passed += 1
        if test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP") and bad == 0:
            bad = 1
        failed += bad
    return passed, failed


def of_junit(path):
    passed = failed = 0
    for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
        n_bad = int(suite.get("failures")) + int(suite.get("errors"))
        passed += int(suite.get("tests")) - n_bad - int(suite.get("skipped"))
        failed += n_bad
    return passed, failed


try:
    counts = (of_junit if sys.argv[1].endswith(".xml") else of_meson)(sys.argv[1])
except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
    print(f"{sys.argv[1]}: {error}", file=sys.stderr)
    counts = (0, 1)
if counts == (0, 0):
    counts = (0, 1)
print(*counts)
