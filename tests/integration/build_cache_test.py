"""The checksum that scripts/building/cached leaves for a precompiled header, with a compiler that compiles nothing."""

import subprocess
import tempfile
import unittest
from pathlib import Path

CACHED = Path(__file__).resolve().parents[2] / "scripts" / "building" / "cached"
# Writes a precompiled header, in which there is the name of its folder, and the rule for make.
COMPILER = """#!/bin/sh
echo "precompiled in $PWD" >all.pch
printf 'all.pch: \\\\\\n %s \\\\\\n %s\\n' "$1" "$2" >all.pch.d
"""


class Checksum(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.compiler = self.folder / "compiler"
        self.compiler.write_text(COMPILER)
        self.compiler.chmod(0o755)

    def build(self, name, first="int first;\n", second="int second;\n"):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        for file, text in (("first.h", first), ("second.h", second)):
            if text is not None:
                (folder / file).write_text(text)
        subprocess.run([CACHED, self.compiler, "first.h", "second.h", "-o", "all.pch"], cwd=folder, check=True,
                       stderr=subprocess.DEVNULL)
        self.assertIn(str(folder), (folder / "all.pch").read_text())
        self.assertFalse((folder / "all.pch.text").exists())
        checksum = folder / "all.pch.sum"
        return checksum.read_text() if checksum.exists() else None

    def test_is_that_of_the_headers_wherever_they_lie(self):
        checksum = self.build("one")
        self.assertIsNotNone(checksum)
        self.assertEqual(self.build("two"), checksum)
        self.assertNotEqual(self.build("three", first="int other;\n"), checksum)
        self.assertNotEqual(self.build("four", second="int other;\n"), checksum)

    def test_of_an_earlier_build_goes_when_a_header_cannot_be_read(self):
        self.assertIsNotNone(self.build("one"))
        (self.folder / "one" / "second.h").unlink()
        self.assertIsNone(self.build("one", second=None))

    def test_is_not_made_of_objects(self):
        subprocess.run([CACHED, "sh", "-c", ": >one.o", "-o", "one.o"], cwd=self.folder, check=True)
        self.assertEqual(list(self.folder.glob("*.sum")), [])

    def test_is_not_made_when_the_compiler_fails(self):
        result = subprocess.run([CACHED, "sh", "-c", "exit 3", "-o", "all.pch"], cwd=self.folder)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(list(self.folder.glob("*.sum")), [])


if __name__ == "__main__":
    unittest.main()
