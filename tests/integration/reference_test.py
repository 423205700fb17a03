"""Which comments of a header are those of a member, and that the API reference has no member without one."""

import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "doc"))

import comments  # noqa: E402

HEADER = """#pragma once

// Counts things:
//
//   Counter counter;
//   counter.add();

#include <string>

namespace holdfast {

// How a Counter counts.
struct CounterOptions {
  int step = 1;  // not 0;
                 // it may be negative
  int limit = 0;
};

class Counter : public Base {
 public:
  Counter() = default;
  explicit Counter(const CounterOptions& options = {});
  Counter(const Counter&) = delete;
  // What Base promises.
  int kind() const override;

  // Adds the step to `count`.
  void add();
  void add(int times);
  int count() const { return count_; }

  // Each is a name.
  std::string first() const;
  bool is_named() const;

 private:
  int count_ = 0;
};

// The size of everything.
enum class Size { small, large };

}  // namespace holdfast
"""


class Comments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "counter.h"

    def lines(self, text=HEADER):
        self.path.write_text(text)
        return comments.Filter(self.path).result().split("\n")

    def line_with(self, text):
        (line,) = [line for line in self.lines() if text in line]
        return line

    def test_keep_their_lines(self):
        for line, before in zip(self.lines(), HEADER.split("\n"), strict=True):
            if "#include" in before or "void add" in before:
                self.assertIn(before.strip(), line)

    def test_at_the_top_describe_the_class_with_the_name_of_the_header(self):
        lines = self.lines()

        self.assertEqual(lines[1:3], ["/// \\class holdfast::Counter", "/// Counts things:"])
        self.assertEqual(lines[3:6], ["/// \\code{.cpp}", "/// Counter counter;", "/// counter.add(); \\endcode"])

    def test_after_a_member_describe_it(self):
        lines = self.lines()
        (first,) = [number for number, line in enumerate(lines) if "int step" in line]

        self.assertTrue(lines[first].endswith("int step = 1;  ///< not 0;"), lines[first])
        self.assertEqual(lines[first + 1].strip(), "///< it may be negative")
        self.assertEqual(lines[first + 2], "  int limit = 0;")

    def test_above_a_member_describe_its_overloads_and_nothing_else(self):
        self.assertIn("/// Adds the step to <code>count</code>.", self.line_with("/// Adds"))
        self.assertIn("/** Adds the step", self.line_with("void add(int"))
        self.assertNotIn("/**", self.line_with("int count() const"))

    def test_of_each_describe_all_that_follow(self):
        self.assertIn("/** Each is a name. */ bool is_named", self.line_with("is_named"))

    def test_that_name_a_base_leave_its_comments_to_an_override(self):
        self.assertEqual(self.line_with("What Base promises"), "  // What Base promises.")
        self.assertEqual(self.line_with("kind()"), "  int kind() const override;")

    def test_of_members_that_say_all_are_written_by_rules(self):
        self.assertIn("/** Makes one with the default of each member. */ Counter()", self.line_with("Counter()"))
        self.assertIn("/** Makes one with these options; see CounterOptions. */ explicit", self.line_with("explicit"))
        self.assertIn("/** Is not copied. */ Counter(const", self.line_with("Counter(const Counter&)"))

    def test_of_an_enumeration_on_one_line_describe_its_values(self):
        shown = "/** See holdfast::Size. */ small, /** See holdfast::Size. */ large"

        self.assertIn(shown, self.line_with("enum class"))

    def test_in_private_code_stay_as_they_are(self):
        lines = self.lines("namespace a {\nint f() {\n  // Why.\n  return 1;\n}\n\n// Apart.\n\nint g();\n}\n")

        self.assertEqual([line for line in lines if "/" in line], ["  // Why.", "// Apart."])


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)

    def run_script(self, root):
        return subprocess.run(
            [root / "scripts" / "reference", self.top / "pages"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
        )

    def small_tree(self, header):
        root = self.top / "tree"
        shutil.copytree(ROOT / "scripts" / "doc", root / "scripts" / "doc")
        shutil.copy(ROOT / "scripts" / "reference", root / "scripts" / "reference")
        (root / "CMakeLists.txt").write_text("project(Holdfast VERSION 1.2.3 LANGUAGES CXX)\n")
        for part in ("base", "format", "exchange", "recovery", "testing", "sdk"):
            (root / part / "include" / "holdfast").mkdir(parents=True)
        (root / "base" / "include" / "holdfast" / "counter.h").write_text(header)
        return root

    def test_fails_where_a_public_member_has_no_comment(self):
        header = (
            "// Counts.\nclass Counter {\n public:\n  // One more.\n  void add();\n\n  int count() const;\n};\n"
            "// The size of everything.\nenum class Size {\n  small,  // below 3\n  large,\n};\n"
        )

        ended = self.run_script(self.small_tree(header))

        self.assertEqual(ended.returncode, 1, ended.stdout)
        self.assertRegex(ended.stdout, r"counter\.h:7: .*count.* is not documented")
        self.assertRegex(ended.stdout, r"counter\.h:12: .*large.* is not documented")
        self.assertNotRegex(ended.stdout, "add|small")

    def test_has_pages_where_all_members_have_comments(self):
        header = "// Counts.\nclass Counter {\n public:\n  // One more.\n  void add();\n\n private:\n  int i_;\n};\n"

        ended = self.run_script(self.small_tree(header))

        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertIn("One more.", (self.top / "pages" / "classCounter.html").read_text())
        self.assertIn("1.2.3", (self.top / "pages" / "index.html").read_text())

    def test_of_holdfast_has_every_public_member(self):
        ended = self.run_script(ROOT)

        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertTrue((self.top / "pages" / "classholdfast_1_1Trainer.html").exists())


if __name__ == "__main__":
    unittest.main()
