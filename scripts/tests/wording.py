#!/usr/bin/env python3
"""Shows that a change touched words alone: comments, texts of string literals, names of tests.

    scripts/tests/wording.py [BASE [COMMIT]]      BASE: HEAD; COMMIT: the working tree

Compares each C++ and CUDA source of both, token by token. A comment is not a token, adjacent string literals are one
token, whatever they say, and the second name of TEST(Suite, Name) is any name. `#include <...>` is compared as it is.
Prints each source with another token, and the first of these. Exit code: 0 words alone, 1 more, 2 not done.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCES = (".h", ".hpp", ".c", ".cpp", ".cu", ".cuh")
TOKEN = re.compile(
    r"""
    (?P<comment>//(?:[^\n\\]|\\.)*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)")
  | (?P<include>\#[ \t]*include[ \t]*[<"][^>"\n]*[>"])
  | (?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<character>'(?:[^'\\\n]|\\.)+')
  | (?P<number>\.?\d(?:'?[\w.]|[eEpP][+-])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<space>[\s\\]+)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
TEXT = '"..."'


def tokens(source):
    found = []
    for match in TOKEN.finditer(source):
        kind = match.lastgroup if match.lastgroup != "mark" else "raw"
        if kind in ("comment", "space"):
            continue
        token = TEXT if kind in ("text", "raw") else match.group()
        if token == TEXT and found and found[-1] == TEXT:
            continue
        found.append(token)
    # TEST ( Suite , Name )
    for at, token in enumerate(found):
        if token in ("TEST", "TEST_F", "TEST_P", "TYPED_TEST", "TYPED_TEST_P") and found[at + 1 : at + 2] == ["("]:
            found[at + 4] = "..."
    return found


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def content(commit, path):
    if commit is None:
        return Path(path).read_text() if Path(path).exists() else ""
    try:
        return git("show", f"{commit}:{path}")
    except subprocess.CalledProcessError:
        return ""


def main():
    if len(sys.argv) > 3 or "--help" in sys.argv:
        print(__doc__)
        return 2
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    commit = sys.argv[2] if len(sys.argv) > 2 else None
    changed = git("diff", "--name-only", "--no-renames", "--relative", base, *([commit] if commit else [])).splitlines()
    sources = [path for path in changed if path.endswith(SOURCES)]
    others = 0
    for path in sources:
        before, after = tokens(content(base, path)), tokens(content(commit, path))
        if before == after:
            continue
        others += 1
        at = next((i for i, pair in enumerate(zip(before, after)) if pair[0] != pair[1]), min(len(before), len(after)))
        print(f"{path}: {' '.join(before[at : at + 8])}  ->  {' '.join(after[at : at + 8])}")
    print(f"{len(sources)} sources changed, {others} of them in more than words")
    return 1 if others else 0


if __name__ == "__main__":
    sys.exit(main())
