// ARCHITECTURE.md is the map of the repository: each file that it names must exist.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "support/folders.h"

namespace holdfast {
namespace {

const std::filesystem::path kSource = source_folder();

std::string map() {
  std::ifstream file(kSource / "ARCHITECTURE.md");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// In the map, P stands for any part.
bool is_a_pattern(const std::string& path) {
  return path.starts_with("P/") || path.find("/P/") != std::string::npos;
}

TEST(Architecture, NamesOnlyPathsThatExist) {
  const std::string text = map();
  const std::regex path("`([A-Za-z0-9_.]+/[A-Za-z0-9_./]*)`");
  int paths = 0;

  for (auto match = std::sregex_iterator(text.begin(), text.end(), path); match != std::sregex_iterator(); ++match) {
    const std::string name = (*match)[1];
    if (is_a_pattern(name)) continue;
    EXPECT_TRUE(std::filesystem::exists(kSource / name)) << name;
    ++paths;
  }

  EXPECT_GT(paths, 50);
}

TEST(Architecture, CanBeReadInOneGo) {
  const std::string text = map();

  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 150);
}

}  // namespace
}  // namespace holdfast
