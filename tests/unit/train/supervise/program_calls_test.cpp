#include "train/supervise/program_calls.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace holdfast {

TEST(ProgramCalls, KnowADirectoryUnderAnyOfItsNames) {
  const TemporaryFolder folder;
  const std::string run = folder / "run";

  const std::string before = call_of(run).directory;
  std::filesystem::create_directory(run);

  EXPECT_EQ(call_of(run).directory, before);
  EXPECT_EQ(call_of(run + "/").directory, before);
  EXPECT_EQ(call_of(folder / "other/../run").directory, before);
  EXPECT_NE(call_of(folder / "run2").directory, before);
}

TEST(ProgramCalls, TravelAsText) {
  const AssignedCalls calls{.earlier = {{.directory = "a", .exit_code = 0}, {.directory = "b", .exit_code = 70}},
                            .own = {.directory = "c"}};

  const AssignedCalls read = assigned_calls_from(to_text(calls));

  ASSERT_EQ(read.earlier.size(), 2U);
  EXPECT_EQ(read.earlier[1].directory, "b");
  EXPECT_EQ(read.earlier[1].exit_code, 70);
  EXPECT_EQ(read.own.directory, "c");
}

}  // namespace holdfast
