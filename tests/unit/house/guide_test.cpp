// The code in docs/guide is that of the examples, which tests run. A page shows a program by a link, and below it the
// blocks are parts of the files that were linked. Code within the text stands in an example or in a test.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/folders.h"
#include "support/program.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;

const fs::path& guide() {
  static const fs::path folder = fs::path(source_folder()) / "docs/guide";
  return folder;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> pages;
  for (const auto& entry : fs::directory_iterator(guide())) pages.push_back(entry.path());
  return pages;
}

// The files of the examples that `text` links to.
std::set<std::string> examples_in(const std::string& text) {
  static const std::regex link("\\]\\(\\.\\./\\.\\./(examples/[a-z_]+/[a-z_]+\\.(?:cpp|h))\\)");
  std::set<std::string> files;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), link); match != std::sregex_iterator(); ++match) {
    files.insert((*match)[1]);
  }
  return files;
}

// With one space for any white space.
std::string in_one_line(const std::string& text) {
  std::string line;
  for (const char letter : text) {
    const bool is_space = letter == ' ' || letter == '\n';
    if (!is_space || (!line.empty() && line.back() != ' ')) line += is_space ? ' ' : letter;
  }
  return line;
}

// All C++ of the examples and tests.
std::string compiled_code() {
  std::string code;
  for (const char* folder : {"examples", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / folder)) {
      const fs::path ending = entry.path().extension();
      if (ending == ".cpp" || ending == ".h") code += read_file(entry.path());
    }
  }
  return in_one_line(code);
}

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern); match != std::sregex_iterator(); ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

// What a reader may copy from the sentences of a page: calls with numbers, texts or options, options with a value, and
// faults. A name alone, such as fit(), is a reference.
std::vector<std::string> code_within(const std::string& page) {
  static const std::regex inlined("`([^`\n]+)`");
  static const std::regex faults("HOLDFAST_FAULTS=(\\S+)");
  static const std::regex concrete("[a-z_]\\(.*[\"0-9{].*\\)|\\{\\{?\\.[a-z]|^\\.[a-z_]+ = ");
  std::vector<std::string> found = matches(page, faults);
  for (const std::string& code : matches(page, inlined)) {
    if (std::regex_search(code, concrete)) found.push_back(code);
  }
  return found;
}

}  // namespace

TEST(Guide, ShowsPartsOfTheExamplesThatItLinks) {
  const std::string begin = "```cpp\n";
  int blocks = 0;
  for (const fs::path& page : pages()) {
    const std::string text = read_file(page);
    for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
      at += begin.size();
      const std::size_t end = text.find("```\n", at);
      const std::string block = text.substr(at, end - at);
      // The link may stand after the only block of a page.
      const std::string around = text.substr(0, text.find("\n#", end));
      bool is_found = false;
      for (const std::string& file : examples_in(around)) {
        is_found = is_found || read_file(source_folder() + "/" + file).find(block) != std::string::npos;
      }
      EXPECT_TRUE(is_found) << page << " shows what none of its examples has:\n" << block;
      ++blocks;
    }
  }

  EXPECT_GT(blocks, 15);
}

TEST(Guide, BeginsThePageOfLibTorchWithAProgramThatATestRuns) {
  const std::string program = read_file(source_folder() + "/tests/consumer/torch/train.cpp");

  EXPECT_NE(read_file(source_folder() + "/docs/torch.md").find("```cpp\n" + program + "```\n"), std::string::npos);
}

TEST(Guide, ShowsExamplesThatTestsRun) {
  std::string tests;
  for (const char* folder : {"integration", "resilience"}) {
    for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "tests" / folder)) {
      if (entry.path().extension() == ".cpp") tests += read_file(entry.path());
    }
  }
  tests += "\"resilience_test\"";  // is a test itself

  int examples = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& file : examples_in(read_file(page))) {
      const std::string name = file.substr(9, file.find('/', 9) - 9);
      EXPECT_NE(tests.find('"' + name + '"'), std::string::npos) << page << ": no test runs " << name;
      ++examples;
    }
  }

  EXPECT_GT(examples, 10);
}

TEST(Guide, NamesCodeThatIsCompiled) {
  const std::string compiled = compiled_code();
  std::size_t found = 0;

  for (const fs::path& page : pages()) {
    for (const std::string& code : code_within(read_file(page))) {
      EXPECT_NE(compiled.find(code), std::string::npos)
          << page << " names `" << code
          << "`, which no example and no test has; see unit/train/fit/guide_code_test.cpp";
      ++found;
    }
  }

  EXPECT_GT(found, 25U);
}

}  // namespace holdfast
