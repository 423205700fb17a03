#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/program.h"

namespace holdfast {
namespace {

std::string example(const std::string& name) {
  return read_file(std::string(HOLDFAST_SOURCE_DIR) + "/examples/" + name + "/main.cpp");
}

std::vector<std::string> code_of_readme() {
  const std::string begin = "```cpp\n";
  const std::string readme = read_file(std::string(HOLDFAST_SOURCE_DIR) + "/README.md");
  std::vector<std::string> blocks;
  for (std::size_t at = readme.find(begin); at != std::string::npos; at = readme.find(begin, at)) {
    at += begin.size();
    blocks.push_back(readme.substr(at, readme.find("```\n", at) - at));
  }
  return blocks;
}

}  // namespace

// The examples are built as programs of their own, so that what the README shows compiles.
TEST(Readme, ShowsTheExampleProgramsAsTheyAreBuilt) {
  const std::vector<std::string> blocks = code_of_readme();
  ASSERT_EQ(blocks.size(), 3U);

  EXPECT_EQ(blocks[0], example("readme"));
  EXPECT_LE(std::count(blocks[0].begin(), blocks[0].end(), '\n'), 30);
  EXPECT_EQ(blocks[1], example("predict"));
  EXPECT_NE(example("samples_in_a_file").find(blocks[2]), std::string::npos) << blocks[2];
}

}  // namespace holdfast
