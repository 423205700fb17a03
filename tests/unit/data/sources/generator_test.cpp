// A generator runs once, and its samples are a function of their position afterwards.

#include "holdfast/data/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "holdfast/base/error.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

GeneratorOptions pairs_options() {
  return {.inputs = {{"x", {2}}, {"id", {}, DType::i64}}, .targets = {{"y", {}}}};
}

// Gives samples 0 to count - 1. Only one element of x is written, so the other one shows whether rows are cleared.
Generator pairs(std::int64_t count, std::int64_t& calls, float y = 0.5F) {
  return [count, &calls, y](const SampleArrays& into) {
    const std::int64_t sample = calls++;
    into.inputs.elements<float>("x")[static_cast<std::size_t>(sample % 2)] = static_cast<float>(sample);
    if (sample == count) return false;
    into.inputs.elements<std::int64_t>("id")[0] = 100 + sample;
    into.targets.elements<float>("y")[0] = y;
    return true;
  };
}

void expect_refused_generator(const std::function<void()>& action, const std::string& words) {
  try {
    action();
    ADD_FAILURE() << "nothing was wrong; expected: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(words));
  }
}

TEST(Generator, RunsOnceAndGivesEachPositionAgain) {
  std::int64_t calls = 0;
  const Dataset data = from_generator(pairs_options(), pairs(4, calls));
  std::vector<float> inputs(data.input_layout().words());
  std::vector<float> targets(1);

  EXPECT_EQ(data.size(), 4);
  for (const std::int64_t position : {3, 1, 3}) {
    data.load(0, 7, position, {.features = inputs, .targets = targets});
    const ArrayRow row(data.input_layout(), inputs);
    EXPECT_THAT(row.elements<float>("x"), ElementsAre(0, static_cast<float>(position)));
    EXPECT_EQ(row.elements<std::int64_t>("id")[0], 100 + position);
    EXPECT_EQ(targets[0], 0.5F);
  }
  EXPECT_EQ(calls, 5);
}

TEST(Generator, InAFileIsTheSameDataSetAndLeavesNoName) {
  TemporaryFolder folder;
  std::int64_t calls = 0;
  std::int64_t spilled_calls = 0;
  GeneratorOptions options = pairs_options();
  options.spill_folder = folder / "";
  const Dataset in_memory = from_generator(pairs_options(), pairs(400, calls));
  const Dataset in_file = from_generator(options, pairs(400, spilled_calls));

  EXPECT_EQ(in_file.description(), in_memory.description());
  for (const std::int64_t position : {0, 399, 17}) {
    EXPECT_EQ(loaded(in_file, 0, 0, position), loaded(in_memory, 0, 0, position));
  }
  EXPECT_TRUE(std::filesystem::is_empty(options.spill_folder));
}

TEST(Generator, RunsOnceForAllProcessesWithAFile) {
  TemporaryFolder folder;
  std::int64_t calls = 0;
  std::int64_t memory_calls = 0;
  GeneratorOptions options = pairs_options();
  options.file = folder / "samples";
  const Dataset in_memory = from_generator(pairs_options(), pairs(400, memory_calls));
  const Dataset written = from_generator(options, pairs(400, calls));
  const Dataset read = from_generator(options, pairs(3, calls));

  EXPECT_EQ(calls, 401);
  EXPECT_EQ(written.description(), in_memory.description());
  EXPECT_EQ(read.description(), in_memory.description());
  ASSERT_EQ(read.size(), 400);
  for (const std::int64_t position : {0, 399, 17}) {
    EXPECT_EQ(loaded(written, 0, 0, position), loaded(in_memory, 0, 0, position));
    EXPECT_EQ(loaded(read, 0, 0, position), loaded(in_memory, 0, 0, position));
  }
}

TEST(Generator, RefusesAFileOfOtherArraysOrOneThatIsDamaged) {
  TemporaryFolder folder;
  std::int64_t calls = 0;
  GeneratorOptions options = pairs_options();
  options.file = folder / "samples";
  from_generator(options, pairs(40, calls));
  GeneratorOptions wider = options;
  wider.inputs[0].shape = Shape{3};
  GeneratorOptions twice = options;
  twice.spill_folder = folder / "";

  EXPECT_EQ(code_thrown_by([&] { from_generator(wider, pairs(40, calls)); }), ErrorCode::incompatible);
  expect_refused_generator([&] { from_generator(twice, pairs(40, calls)); }, "a file and a spill_folder");
  std::filesystem::resize_file(options.file, std::filesystem::file_size(options.file) - 1);
  EXPECT_EQ(code_thrown_by([&] { from_generator(options, pairs(40, calls)); }), ErrorCode::invalid_file);
  EXPECT_TRUE(std::filesystem::exists(options.file));
}

TEST(Generator, LeavesNoFileWhenItFails) {
  TemporaryFolder folder;
  GeneratorOptions options = pairs_options();
  options.file = folder / "samples";
  const Generator fails = [](const SampleArrays&) -> bool { throw Error(ErrorCode::invalid_file, "the stream ended"); };

  EXPECT_EQ(code_thrown_by([&] { from_generator(options, fails); }), ErrorCode::invalid_file);
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(options.file).parent_path()));
}

// The JSON library threw an exception of its own, after all samples had been made.
TEST(Generator, IsNotRunForAFileThatCannotHoldItsNames) {
  TemporaryFolder folder;
  std::int64_t calls = 0;
  GeneratorOptions input = pairs_options();
  input.file = folder / "samples";
  input.inputs[0].name = "x\xFF";
  GeneratorOptions target = pairs_options();
  target.file = folder / "samples";
  target.targets[0].name = "y\xFF";
  GeneratorOptions with_nul = pairs_options();
  with_nul.file = folder / "samples";
  with_nul.inputs[0].name = std::string("x\0", 2);
  GeneratorOptions in_memory = pairs_options();
  in_memory.inputs[0].name = "x\xFF";
  const Generator one_sample = [&](const SampleArrays&) { return calls++ == 0; };

  expect_refused_generator([&] { from_generator(input, one_sample); }, R"("x\xff" of an array is not UTF-8)");
  expect_refused_generator([&] { from_generator(target, one_sample); }, R"("y\xff" of an array is not UTF-8)");
  expect_refused_generator([&] { from_generator(with_nul, one_sample); }, "or it holds a NUL");
  EXPECT_EQ(calls, 0);
  EXPECT_FALSE(std::filesystem::exists(input.file));
  EXPECT_EQ(from_generator(in_memory, one_sample).size(), 1);
}

TEST(Generator, WithOtherSamplesIsAnotherDataSet) {
  std::int64_t calls = 0;
  std::int64_t other_calls = 0;

  EXPECT_NE(from_generator(pairs_options(), pairs(4, calls)).description(),
            from_generator(pairs_options(), pairs(4, other_calls, 0.25F)).description());
}

// A spill_folder was the advice even where one was given, and it does not raise a limit.
TEST(Generator, SaysWhichLimitToRaise) {
  TemporaryFolder folder;
  std::int64_t calls = 0;
  GeneratorOptions few = pairs_options();
  few.max_samples = 3;
  GeneratorOptions small = pairs_options();
  small.max_bytes = 50;
  small.spill_folder = folder / "";
  GeneratorOptions in_file = small;
  in_file.spill_folder = "";
  in_file.file = folder / "samples";

  EXPECT_THAT(sentence_thrown_by([&] { from_generator(few, pairs(4, calls)); }),
              EndsWith("which max_samples (3) does not allow; end the generator earlier, or raise the limit and, if "
                       "memory is too small, give a spill_folder"));
  for (const GeneratorOptions& options : {small, in_file}) {
    calls = 0;
    EXPECT_THAT(sentence_thrown_by([&] { from_generator(options, pairs(4, calls)); }),
                EndsWith("which max_bytes (50) does not allow; end the generator earlier, or raise the limit"));
  }
}

TEST(Generator, IsRefusedAboveItsLimitsAndWithoutSamples) {
  std::int64_t calls = 0;
  GeneratorOptions few = pairs_options();
  few.max_samples = 3;
  GeneratorOptions small = pairs_options();
  small.max_bytes = 50;

  expect_refused_generator([&] { from_generator(few, pairs(4, calls)); }, "max_samples (3)");
  calls = 0;
  expect_refused_generator([&] { from_generator(small, pairs(4, calls)); }, "max_bytes (50)");
  calls = 0;
  expect_refused_generator([&] { from_generator(pairs_options(), pairs(0, calls)); }, "no sample");
  expect_refused_generator([&] { from_generator({}, pairs(1, calls)); }, "at least one input");
  expect_refused_generator([&] { from_generator(pairs_options(), nullptr); }, "empty function");
}

}  // namespace
}  // namespace holdfast
