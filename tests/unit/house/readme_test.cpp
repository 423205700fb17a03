#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/program.h"

namespace holdfast {

// The example is built as a program of its own, so that what the README shows compiles.
TEST(Readme, ShowsTheExampleProgramAsItIsBuilt) {
  const std::string readme = read_file(std::string(HOLDFAST_SOURCE_DIR) + "/README.md");
  const std::string program = read_file(std::string(HOLDFAST_SOURCE_DIR) + "/examples/readme/main.cpp");

  EXPECT_NE(readme.find("```cpp\n" + program + "```\n"), std::string::npos);
  EXPECT_LE(std::count(program.begin(), program.end(), '\n'), 30);
}

}  // namespace holdfast
