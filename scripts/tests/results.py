"""Reads the XML files of GoogleTest, pytest and CTest, and prints which tests were skipped, and why. The last line counts
them.

scripts/test ends with it: a test that could not run here must not look like one that passed.

    python3 scripts/tests/results.py FOLDER...
"""

import collections
import sys
import xml.etree.ElementTree as Xml
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Skip:
    program: str
    test: str
    why: str


def reason_of(text):
    """GoogleTest begins with the place in the source, and pytest too; the sentence comes last."""
    lines = [line.strip() for line in (text or "").splitlines() if line.strip()]
    return lines[-1] if lines else "it does not say why"


def cases_in(file):
    """(test, None or why it was skipped, whether it failed) of each test in an XML file; none where it is cut off."""
    try:
        root = Xml.parse(file).getroot()
    except (OSError, Xml.ParseError):
        return
    for case in root.iter("testcase"):
        # CTest gives its tests' names twice.
        name = ".".join(dict.fromkeys(part for part in (case.get("classname"), case.get("name")) if part))
        skip = case.find("skipped")
        has_failed = case.find("failure") is not None or case.find("error") is not None
        yield name, None if skip is None else reason_of(skip.get("message") or skip.text), has_failed


def read(folders):
    """The number of tests in all XML files of these folders, and those that were skipped.

    CTest tells of programs; one that has a file of its own is not counted again.
    """
    count, skips = 0, []
    for folder in folders:
        files = sorted(Path(folder).glob("*.xml"))
        with_own_file = {file.stem for file in files}
        for file in files:
            for name, why, _ in cases_in(file):
                if file.stem == "ctest" and name in with_own_file:
                    continue
                count += 1
                if why is not None:
                    skips.append(Skip(file.stem, name, why))
    return count, skips


def summary(count, skips):
    """A line for each reason, and the count last: it is all that many readers see."""
    lines = []
    groups = collections.defaultdict(list)
    for skip in skips:
        groups[skip.program, skip.why].append(skip.test)
    for (program, why), tests in sorted(groups.items()):
        which = tests[0] if len(tests) == 1 else f"{len(tests)} tests"
        lines.append(f"skipped: {program}: {which}: {why}")
    lines.append(f"{len(skips)} of {count} tests were skipped")
    return "\n".join(lines)


if __name__ == "__main__":
    print(summary(*read(sys.argv[1:])))
