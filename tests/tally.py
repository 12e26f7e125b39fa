"""tally.py REPORT [ALONE]: prints "PASSED FAILED ALONE" of a meson testlog.json or a JUnit file, then
a line for each that failed. The file ALONE is of a second try of some of them, which replaces the
first; ALONE of the line are those that passed only then.
tally.py --again TESTLOG: names of the programs that deserve a second try.

Criterion programs count each of their tests (their own synthesis line), others count one. A program
that failed without failing a test of its own (a crash, a leak at exit) counts as one failure, and a
missing file too: silence is never a pass. What a sanitizer reported once is true: no second try.
"""

import json
import re
import sys
import xml.etree.ElementTree

FAILURE = re.compile(r"^\[FAIL\] (\S+::\S+?):", re.MULTILINE)
SYNTHESIS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+)")
REPORT = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|: runtime error: ")
MOST_AGAIN = 5


def of_program(test):
    """Passed, failed and what is said of it."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", test.get("stdout", "") + test.get("stderr", ""))
    found = SYNTHESIS.search(text)
    is_good = test["result"] in ("OK", "EXPECTEDFAIL", "SKIP")
    passed = int(found[2]) if found else int(test["result"] == "OK")
    failed = int(found[3]) if found else 0  # crashes among them
    if not is_good:
        failed = max(failed, 1)
    said = f"{test['name']} ({test['result']}) " + " ".join(FAILURE.findall(text))
    return passed, failed, [said] if failed else [], REPORT.search(text)


def programs(path):
    with open(path, encoding="utf-8") as lines:
        return {test["name"]: of_program(test) for test in map(json.loads, lines)}


def of_meson(path, alone_path=None):
    found = programs(path)
    alone = programs(alone_path) if alone_path else {}
    n_alone = sum(found[name][1] for name in alone if alone[name][1] == 0)
    values = (found | alone).values()
    return (sum(v[0] for v in values), sum(v[1] for v in values), n_alone,
            [line for v in values for line in v[2]])


def again(path):
    failed = {name: v for name, v in programs(path).items() if v[1]}
    if len(failed) > MOST_AGAIN or any(v[3] for v in failed.values()):
        return []
    return [name.split(" / ")[-1] for name in failed]


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
    return passed, failed, 0, names


if sys.argv[1] == "--again":
    try:
        print(*again(sys.argv[2]))
    except (OSError, ValueError):
        pass  # counted as a failure below
    sys.exit()
try:
    read = of_junit if sys.argv[1].endswith(".xml") else of_meson
    passed, failed, alone, names = read(*sys.argv[1:])
except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
    passed, failed, alone, names = 0, 1, 0, [f"{sys.argv[1]}: {error}"]
if passed == failed == 0:
    failed, names = 1, [f"{sys.argv[1]}: nothing was tested"]
print(passed, failed, alone)
for name in names:
    print(name)
