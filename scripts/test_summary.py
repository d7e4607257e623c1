#!/usr/bin/env python3
"""Prints what a test run must not hide: failed and skipped tests, tests that passed only when repeated, the slowest ones.

    scripts/test_summary.py TARGET_DIRECTORY SKIPPED_FILE

`cargo nextest` writes target/nextest/PROFILE/junit.xml; only reports since `$BEGAN` (seconds of the epoch) count.
"""
import os
import pathlib
import sys
import xml.etree.ElementTree as xml

SLOWEST = 10
# Of what a failed test printed.
FAILURE_LINES = 15


def cases(target):
    began = float(os.environ.get("BEGAN", 0))
    for report in sorted(target.glob("nextest/*/junit.xml")):
        if report.stat().st_mtime < began:
            continue
        for suite in xml.parse(report).getroot().iter("testsuite"):
            for case in suite.iter("testcase"):
                yield suite.get("name"), case


def main():
    target, skipped = map(pathlib.Path, sys.argv[1:])
    found = list(cases(target))
    slow = sorted(((float(case.get("time", 0)), suite, case.get("name")) for suite, case in found), reverse=True)
    if slow:
        print(f"{len(slow)} tests, {sum(time for time, _, _ in slow):.0f} s one after the other; the slowest:")
        for seconds, suite, name in slow[:SLOWEST]:
            print(f"{seconds:7.1f} s  {suite} {name}")
    for suite, case in found:
        for failure in [*case.findall("failure"), *case.findall("error")]:
            print(f"!! FAILED {suite} {case.get('name')}")
            for line in (failure.text or failure.get("message") or "").splitlines()[-FAILURE_LINES:]:
                print(f"!!   {line[:300]}")
    flaky = [(suite, case.get("name")) for suite, case in found if case.find("flakyFailure") is not None]
    for suite, name in flaky:
        print(f"!! FLAKY {suite} {name}: failed, then passed; see CONTRIBUTING.md")
    lines = skipped.read_text().splitlines() if skipped.exists() else []
    if lines:
        print(f"!! {len(lines)} SKIPPED, so nothing is known about:")
        for line in lines:
            print(f"!!   {line.removeprefix('SKIPPED ')}")


if __name__ == "__main__":
    main()
