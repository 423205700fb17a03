// The language of sources and documents, as far as a program can judge it. It fails for two banned words, for a
// sentence that begins with "Of", for a long source that does not begin with its reason or hardly explains itself, and
// for a part whose public headers have too few comments.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/folders.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

const fs::path kRepository = source_folder();
const std::vector<std::string> kParts = {"base", "format", "exchange", "recovery", "sdk", "cli", "testing"};

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::string name_in_tree(const fs::path& path) {
  return fs::relative(path, kRepository).generic_string();
}

bool is_cpp(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".h", ".hpp", ".c", ".cc", ".cpp", ".cu", ".cuh"};
  return kExtensions.contains(path.extension().string());
}

bool is_script(const fs::path& path) {
  static const std::set<std::string> kExtensions = {".py", ".sh", ".cmake"};
  if (kExtensions.contains(path.extension().string()) || path.filename() == "CMakeLists.txt") return true;
  if (path.has_extension()) return false;
  const std::vector<std::string> lines = lines_of(path);
  return !lines.empty() && lines.front().starts_with("#!");
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// All files that are read as English, except those that must name the banned words.
std::vector<fs::path> texts() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(kRepository)) {
    const bool is_text = entry.path().extension() == ".md" || entry.path().filename() == "CMakeLists.txt";
    if (is_text) found.push_back(entry.path());
  }
  for (const char* folder : {"base", "bench", "cli", "cmake", "docs", "examples", "exchange", "format", "python",
                             "recovery", "scripts", "sdk", "testing", "tests"}) {
    for (const fs::path& path : files_below(kRepository / folder)) {
      const std::string extension = path.extension().string();
      if (is_cpp(path) || is_script(path) || extension == ".md" || extension == ".scenario") found.push_back(path);
    }
  }
  std::erase_if(found, [](const fs::path& path) { return path.filename() == "language_test.cpp"; });
  return found;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Include guards stand above the comment.
bool is_a_guard(const std::string& line) {
  return line.starts_with("#pragma once") || line.starts_with("#ifndef HOLDFAST_") ||
         line.starts_with("#define HOLDFAST_");
}

bool begins_with_a_comment(const std::vector<std::string>& lines) {
  const auto first = std::find_if(lines.begin(), lines.end(),
                                  [](const std::string& line) { return !line.empty() && !is_a_guard(line); });
  return first != lines.end() && (first->starts_with("//") || first->starts_with("/*"));
}

struct Lines {
  int comment = 0;  // lines that hold a comment and no code
  int code = 0;
};

Lines count_lines(const fs::path& path) {
  Lines count;
  for (const std::string& line : lines_of(path)) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) continue;
    const std::string_view text = std::string_view(line).substr(begin);
    const bool is_comment = text.starts_with("//") || text.starts_with("/*") || text.starts_with("* ");
    ++(is_comment ? count.comment : count.code);
  }
  return count;
}

// "After" says when, and "a process that ..." says what: these two words hid it.
TEST(Language, AvoidsTwoWords) {
  const std::vector<fs::path> paths = texts();
  for (const fs::path& path : paths) {
    int number = 0;
    for (const std::string& line : lines_of(path)) {
      ++number;
      const std::string lower = in_lower_case(line);
      for (const char* word : {"behind", "whoever"}) {
        if (lower.find(word) == std::string::npos) continue;
        ADD_FAILURE() << name_in_tree(path) << ":" << number << ": \"" << word << "\": " << line;
      }
    }
  }

  EXPECT_GT(paths.size(), 1000U);
}

// Such a sentence has no verb, or has its subject last. A comment is read alone: what it is "of" must be in it.
TEST(Language, BeginsNoSentenceOfACommentOrPageWithOf) {
  // A docstring of Python has no mark on its later lines, so all lines of scripts are read as comments.
  const std::regex headless("(^ *|# |\"\"\"|[.:?!|] )Of [a-z0-9`]");
  int comments = 0;
  for (const fs::path& path : texts()) {
    const bool is_in_cpp = is_cpp(path);
    if (!is_in_cpp && !is_script(path) && path.extension() != ".md") continue;
    int number = 0;
    for (const std::string& line : lines_of(path)) {
      ++number;
      const std::size_t mark = is_in_cpp ? line.find("// ") : 0;
      if (mark == std::string::npos) continue;
      ++comments;
      const std::string comment = is_in_cpp ? line.substr(mark + 3) : line;
      if (comment.find("Of ") == std::string::npos) continue;  // looking for a pattern takes long
      EXPECT_FALSE(std::regex_search(comment, headless))
          << name_in_tree(path) << ":" << number << ": give the sentence a subject and a verb: " << comment;
    }
  }

  EXPECT_GT(comments, 10000);
}

TEST(Language, BeginsLongSourcesWithTheirReason) {
  constexpr std::size_t kLong = 80;
  int long_sources = 0;
  for (const std::string& part : kParts) {
    for (const fs::path& path : files_below(kRepository / part)) {
      if (!is_cpp(path)) continue;
      const std::vector<std::string> lines = lines_of(path);
      if (lines.size() <= kLong) continue;
      EXPECT_TRUE(begins_with_a_comment(lines)) << name_in_tree(path) << " has " << lines.size()
                                                << " lines; begin it with a comment that says why it is as it is";
      ++long_sources;
    }
  }

  EXPECT_GT(long_sources, 100);
}

// A little below the tenth that they should have, so that a change of few lines does not fail. Public headers: below.
TEST(Language, ExplainsLongSources) {
  constexpr double kLeast = 0.09;
  constexpr int kLong = 80;
  int long_sources = 0;
  for (const std::string& part : kParts) {
    for (const fs::path& path : files_below(kRepository / part)) {
      if (!is_cpp(path) || name_in_tree(path).find("/include/") != std::string::npos) continue;
      const Lines lines = count_lines(path);
      if (lines.comment + lines.code <= kLong) continue;
      EXPECT_GE(lines.comment, kLeast * lines.code)
          << name_in_tree(path) << " has " << lines.comment << " lines of comment and " << lines.code
          << " of code; say why its functions do what they do";
      ++long_sources;
    }
  }

  EXPECT_GT(long_sources, 100);
}

TEST(Language, SaysInPublicHeadersWhatSignaturesCannot) {
  constexpr double kLeast = 0.5;
  // The command has no header for applications, and that of sdk/parquet lies in sdk/include.
  for (const char* part : {"base", "format", "exchange", "recovery", "sdk", "sdk/torch", "testing"}) {
    Lines sum;
    std::string sparse;
    for (const fs::path& path : files_below(kRepository / part / "include")) {
      if (!is_cpp(path)) continue;
      const Lines lines = count_lines(path);
      sum.comment += lines.comment;
      sum.code += lines.code;
      if (lines.comment < kLeast * lines.code) {
        sparse +=
            "\n  " + name_in_tree(path) + ": " + std::to_string(lines.comment) + " to " + std::to_string(lines.code);
      }
    }
    ASSERT_GT(sum.code, 0) << part;
    EXPECT_GE(sum.comment, kLeast * sum.code) << part << "/include has too few lines of comment for its lines of code:"
                                              << " describe more in one of" << sparse;
  }
}

}  // namespace
}  // namespace holdfast
