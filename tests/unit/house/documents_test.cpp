// Documents link to each other and to sources. A link to a file or section that does not exist fails here, and so does
// a comment in a source that names one. Each index lists every page, and each error code has a section.

#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/folders.h"

namespace holdfast {
namespace {

namespace fs = std::filesystem;
const fs::path kTree = source_folder();

std::string document_text(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> documents() {
  std::vector<fs::path> paths;
  const auto add = [&](const auto& entries) {
    for (const auto& entry : entries) {
      if (entry.path().extension() == ".md") paths.push_back(entry.path());
    }
  };
  add(fs::directory_iterator(kTree));
  add(fs::recursive_directory_iterator(kTree / "docs"));
  return paths;
}

// The anchor that GitHub gives a heading.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0 || c == '-' || c == '_') anchor += static_cast<char>(std::tolower(letter));
    if (c == ' ') anchor += '-';
  }
  return anchor;
}

const std::set<std::string>& anchors_in(const fs::path& document) {
  static std::map<fs::path, std::set<std::string>> known;
  const auto [found, is_new] = known.try_emplace(document);
  std::set<std::string>& anchors = found->second;
  if (!is_new) return anchors;
  std::istringstream text(document_text(document));
  bool is_code = false;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with("```")) is_code = !is_code;
    if (!is_code && line.starts_with("#")) anchors.insert(anchor_of(line.substr(line.find(' ') + 1)));
  }
  return anchors;
}

void expect_target(const fs::path& from, const std::string& target) {
  const std::size_t mark = target.find('#');
  const fs::path path = mark == 0 ? from : from.parent_path() / target.substr(0, mark);
  EXPECT_TRUE(fs::exists(path)) << from << " -> " << target;
  if (mark == std::string::npos || !fs::exists(path)) return;
  EXPECT_TRUE(anchors_in(path).contains(target.substr(mark + 1))) << from << " -> " << target;
}

TEST(Documents, LinkToFilesAndSectionsThatExist) {
  const std::regex link("\\]\\(([^)\\s]+)\\)");
  int links = 0;

  for (const fs::path& document : documents()) {
    const std::string text = document_text(document);
    for (auto match = std::sregex_iterator(text.begin(), text.end(), link); match != std::sregex_iterator(); ++match) {
      const std::string target = (*match)[1];
      if (target.find("://") != std::string::npos) continue;
      expect_target(document, target);
      ++links;
    }
  }

  EXPECT_GT(links, 40);
}

TEST(Documents, HaveThePagesAndSectionsThatSourcesName) {
  const std::regex page("docs/((?:[a-z]+/)?[a-z-]+\\.md)(?:#([a-z0-9_-]+))?");
  int pages = 0;

  for (const char* part : {"base", "format", "exchange", "recovery", "sdk", "cli", "testing", "examples", "scripts"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kTree / part)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = document_text(entry.path());
      for (auto match = std::sregex_iterator(text.begin(), text.end(), page); match != std::sregex_iterator();
           ++match) {
        const fs::path document = kTree / "docs" / (*match)[1].str();
        EXPECT_TRUE(fs::exists(document)) << entry.path() << ": " << match->str();
        ++pages;
        if (!(*match)[2].matched) continue;
        EXPECT_TRUE(anchors_in(document).contains((*match)[2])) << entry.path() << ": " << match->str();
      }
    }
  }

  EXPECT_GT(pages, 100);
}

TEST(Documents, AreListedInTheIndexOfTheirFolder) {
  for (const char* below : {"docs", "docs/decisions", "docs/guide", "docs/hosts"}) {
    const fs::path folder = kTree / below;
    const std::string index = document_text(folder / "index.md");
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename();
      if (entry.path().extension() != ".md" || name == "index.md") continue;
      EXPECT_NE(index.find("](" + name + ")"), std::string::npos) << folder << " does not list " << name;
    }
  }
}

TEST(Documents, ExplainEveryErrorCode) {
  const std::string header = document_text(kTree / "base/include/holdfast/base/error.h");
  const std::size_t begin = header.find("enum class ErrorCode {");
  ASSERT_NE(begin, std::string::npos);
  const std::string codes = header.substr(begin, header.find("};", begin) - begin);
  const std::set<std::string> sections = anchors_in(kTree / "docs/errors.md");
  const std::regex enumerator("\\n +([a-z_]+),");
  int count = 0;

  for (auto match = std::sregex_iterator(codes.begin(), codes.end(), enumerator); match != std::sregex_iterator();
       ++match) {
    EXPECT_TRUE(sections.contains((*match)[1])) << "docs/errors.md has no section " << (*match)[1];
    ++count;
  }

  EXPECT_GT(count, 10);
}

// Tables, headings, programs and links may be longer.
TEST(Documents, HaveLinesThatFitOnAScreen) {
  constexpr std::size_t kColumns = 100;
  for (const fs::path& document : documents()) {
    std::istringstream text(document_text(document));
    bool is_code = false;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("```")) is_code = !is_code;
      const bool may_be_long =
          is_code || line.starts_with("|") || line.starts_with("#") || line.find(' ') == std::string::npos;
      EXPECT_TRUE(may_be_long || line.size() <= kColumns) << document << ": " << line;
    }
  }
}

}  // namespace
}  // namespace holdfast
