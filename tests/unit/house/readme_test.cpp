// The README, docs/training.md and docs/data.md show programs. The examples are built as programs of their own, so what
// the pages show compiles as long as it is the text of the examples.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/folders.h"
#include "support/program.h"

namespace holdfast {
namespace {

std::string example(const std::string& name, const std::string& file = "main.cpp") {
  return read_file(source_folder() + "/examples/" + name + "/" + file);
}

std::vector<std::string> code_in(const std::string& page) {
  const std::string begin = "```cpp\n";
  const std::string text = read_file(source_folder() + "/" + page);
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    blocks.push_back(text.substr(at, text.find("```\n", at) - at));
  }
  return blocks;
}

int filled_lines(const std::string& text) {
  std::istringstream lines(text);
  int filled = 0;
  for (std::string line; std::getline(lines, line);) filled += line.empty() ? 0 : 1;
  return filled;
}

// The style of this house in shorter lines, as clang-format takes it on its command line.
std::string style_of_a_hundred_columns() {
  std::istringstream lines(read_file(source_folder() + "/.clang-format"));
  std::string style;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ColumnLimit:")) line = "ColumnLimit: 100";
    if (!line.empty() && !line.starts_with("#")) style += (style.empty() ? "{" : ", ") + line;
  }
  return style + "}";
}

}  // namespace

TEST(Readme, ShowsTheFirstProgramAsItIsBuilt) {
  const std::vector<std::string> blocks = code_in("README.md");
  ASSERT_EQ(blocks.size(), 1U);

  EXPECT_EQ(blocks[0], example("readme"));
  EXPECT_LE(std::count(blocks[0].begin(), blocks[0].end(), '\n'), 30);
}

TEST(Readme, CanBeReadInOneGo) {
  const std::string readme = read_file(source_folder() + "/README.md");

  EXPECT_LE(std::count(readme.begin(), readme.end(), '\n'), 110);
}

TEST(TrainingPage, ShowsTheExampleProgramsAsTheyAreBuilt) {
  const std::vector<std::string> blocks = code_in("docs/training.md");
  ASSERT_EQ(blocks.size(), 8U);

  EXPECT_NE(example("residual", "residual_network.cpp").find(blocks[0]), std::string::npos) << blocks[0];
  for (std::size_t block = 1; block < 4; ++block) {
    EXPECT_NE(example("two_towers").find(blocks[block]), std::string::npos) << blocks[block];
  }
  const std::string optimizers =
      read_file(source_folder() + "/tests/unit/train_device/optimizers_on_a_device_test.cpp");
  EXPECT_NE(optimizers.find(blocks[4]), std::string::npos) << blocks[4];
  EXPECT_NE(example("transfer").find(blocks[5]), std::string::npos) << blocks[5];
  EXPECT_NE(example("samples_in_a_file").find(blocks[6]), std::string::npos) << blocks[6];
  EXPECT_EQ(blocks[7], example("predict"));
}

// A newcomer with a CSV file should need no more than this.
TEST(DataPage, ShowsTheExampleProgramAsItIsBuilt) {
  const std::vector<std::string> blocks = code_in("docs/data.md");
  ASSERT_EQ(blocks.size(), 9U);

  const std::string program = example("tabular");
  EXPECT_EQ(blocks[0], program.substr(program.find("#include")));
  EXPECT_LE(filled_lines(blocks[0]), 25);
  const std::string test = read_file(source_folder() + "/tests/unit/data/tables/table_encoder_test.cpp");
  EXPECT_NE(test.find(blocks[1]), std::string::npos) << blocks[1];
  const std::string files = read_file(source_folder() + "/tests/unit/data/files/array_files_test.cpp");
  EXPECT_NE(files.find(blocks[3]), std::string::npos) << blocks[3];
  EXPECT_NE(files.find(blocks[4]), std::string::npos) << blocks[4];
  const std::string texts = read_file(source_folder() + "/tests/unit/data/tables/text_encoder_test.cpp");
  EXPECT_NE(texts.find(blocks[5]), std::string::npos) << blocks[5];
  const std::string tokens = read_file(source_folder() + "/tests/unit/data/files/tokens_test.cpp");
  EXPECT_NE(tokens.find(blocks[6]), std::string::npos) << blocks[6];
  const std::string sequences = read_file(source_folder() + "/tests/unit/train/fit/training_on_sequences_test.cpp");
  EXPECT_NE(sequences.find(blocks[7]), std::string::npos) << blocks[7];
  EXPECT_NE(sequences.find(blocks[8]), std::string::npos) << blocks[8];
}

TEST(DataPage, ShowsTheExampleOfPicturesAsItIsBuilt) {
  const std::string program = example("pictures");
  const std::string shown = program.substr(program.find("#include"));

  EXPECT_EQ(code_in("docs/data.md")[2], shown);
  EXPECT_LE(filled_lines(shown), 30);
}

// As many lines as most editors show them in.
TEST(DataPage, ShowsExamplesThatStayShortInLinesOfAHundredCharacters) {
  const std::string formatter = "/usr/bin/clang-format";
  if (!std::filesystem::exists(formatter)) GTEST_SKIP() << formatter << " is missing";
  for (const auto& [name, most] : {std::pair("tabular", 25), std::pair("pictures", 30)}) {
    const std::string path = source_folder() + "/examples/" + name + "/main.cpp";

    const ProgramResult laid_out = run_program(formatter, {"--style=" + style_of_a_hundred_columns(), path});

    ASSERT_EQ(laid_out.exit_code, 0) << laid_out.output;
    EXPECT_LE(filled_lines(laid_out.output.substr(laid_out.output.find("#include"))), most) << name;
  }
}

}  // namespace holdfast
