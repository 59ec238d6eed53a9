#!/usr/bin/env python3
"""Prints the slowest tests of the last run of each profile, and how long the profile took.

    scripts/slowest.py [COUNT]      default: 20

Reads target/nextest/PROFILE/junit.xml, which .config/nextest.toml asks for.
"""

import os
import pathlib
import sys
import xml.etree.ElementTree as xml


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    root = pathlib.Path(__file__).resolve().parent.parent
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
    reports = sorted(target.glob("nextest/*/junit.xml"))
    if not reports:
        print(f"slowest: no report below {target}/nextest: run make test", file=sys.stderr)
        return 1
    tests = []
    for report in reports:
        profile = report.parent.name
        suites = xml.parse(report).getroot()
        cases = list(suites.iter("testcase"))
        print(f"{profile:<8} {len(cases):>5} tests {float(suites.get('time', 0)):>8.0f} s")
        tests += [(float(case.get("time", 0)), profile, case.get("name")) for case in cases]
    print()
    for seconds, profile, name in sorted(tests, reverse=True)[:count]:
        print(f"{seconds:>8.1f} s  {profile:<8} {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
