"""Prints "PASSED FAILED" of a meson testlog.json or a JUnit file, then a line for each that failed.

Criterion programs count each of their tests (their own synthesis line), others count one. A program
that failed without failing a test of its own (a crash, a leak at exit) counts as one failure, and a
missing file too: silence is never a pass.
"""

import json
import re
import sys
import xml.etree.ElementTree

FAILURE = re.compile(r"^\[FAIL\] (\S+::\S+?):", re.MULTILINE)
SYNTHESIS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+)")


def of_meson(path):
    passed = failed = 0
    names = []
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        text = re.sub(r"\x1b\[[0-9;]*m", "", test.get("stdout", "") + test.get("stderr", ""))
        found = SYNTHESIS.search(text)
        bad = 0
        if found:
            passed += int(found[2])
            bad = int(found[3])  # crashes among them
        elif test["result"] == "OK":
            passed += 1
        if test["result"] not in ("OK", "EXPECTEDFAIL", "SKIP") and bad == 0:
            bad = 1
        failed += bad
        if bad:
            names.append(f"{test['name']} ({test['result']}) " + " ".join(FAILURE.findall(text)))
    return passed, failed, names


def of_junit(path):
    passed = failed = 0
    names = []
    for suite in xml.etree.ElementTree.parse(path).getroot().iter("testsuite"):
        n_bad = int(suite.get("failures")) + int(suite.get("errors"))
        passed += int(suite.get("tests")) - n_bad - int(suite.get("skipped"))
        failed += n_bad
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                names.append(f"{case.get('classname')}::{case.get('name')}")
    return passed, failed, names


try:
    passed, failed, names = (of_junit if sys.argv[1].endswith(".xml") else of_meson)(sys.argv[1])
except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
    passed, failed, names = 0, 1, [f"{sys.argv[1]}: {error}"]
if passed == failed == 0:
    failed, names = 1, [f"{sys.argv[1]}: nothing was tested"]
print(passed, failed)
for name in names:
    print(name)
