// Where a run continues from when no replica has a state: memory, run directory or copies, whichever is newest. The
// model is one array, so each state shows by its weights which one was taken.

#include "train/state/state_finder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "support/program.h"
#include "support/thrown.h"
#include "train/context/other_choices.h"
#include "train/state/resume.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

// Has one array, and an arithmetic that the test chooses.
class OneArray final : public Trainable {
 public:
  std::string graph() const override { return R"({"class_name":"OneArray"})"; }
  std::string configuration() const override { return "{}"; }
  std::string arithmetic() const override { return arithmetic_name; }
  Shape feature_shape() const override { return {1}; }
  Shape target_shape() const override { return {1}; }
  Shape output_shape() const override { return {1}; }
  void prepare(const Workers&) override {}
  void initialize(std::uint64_t) override {}
  std::vector<StateSpan> state() override { return {{"model/w", StateKind::parameter, Shape{2}, weights}}; }
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return 2; }
  void compute_gradients(const ShardBatch&, GradientSink&, std::span<float>) override {}
  void compute_sums(const ShardBatch&, std::span<float>) override {}
  void predict(const ShardBatch&, std::span<float>) override {}
  void apply_update(const Update&) override {}

  std::string arithmetic_name = "library 1, avx2";
  std::vector<float> weights = {0, 0};
};

TrainState choices() {
  TrainState state;
  state.graph = OneArray().graph();
  state.configuration = "{}";
  state.seed = 3;
  return state;
}

// A state with two weights, both equal to the step.
TrainState state_of(OneArray& model, std::int64_t step) {
  TrainState state = choices();
  state.step = step;
  model.weights = {static_cast<float>(step), static_cast<float>(step)};
  return state;
}

// Stands for the watchdog's memory and for the journal.
class Memory final : public NoSupervision {
 public:
  void keep(std::int64_t step, int trainer = 0) {
    OneArray model;
    TrainState state = state_of(model, step);
    state.trainer = trainer;
    const StateImage image = image_of(state, model);
    image_.emplace(image.size_bytes());
    image.copy(0, *image_);
  }

  bool read_from_memory(const std::function<void(std::span<const std::byte>)>& read) override {
    if (image_) read(*image_);
    return image_.has_value();
  }
  void reach(FaultPoint point, std::int64_t step) override {
    if (point == FaultPoint::load) loaded.push_back(step);
  }
  void report_event(const std::string& event, const std::string& detail) override {
    events[event].push_back(nlohmann::json::parse(detail));
  }

  std::vector<std::int64_t> loaded;
  std::map<std::string, std::vector<nlohmann::json>> events;

 private:
  std::optional<std::vector<std::byte>> image_;
};

class Finding : public testing::Test {
 protected:
  Finding() {
    context_.run_directory = folder_.path();
    context_.savepoint_copies = {copies_.path()};
    context_.supervision = memory_;
  }

  static void save(const TemporaryFolder& folder, std::int64_t step) {
    OneArray model;
    const TrainState state = state_of(model, step);
    write_savepoint(posix_file_system(), folder / savepoint_name(step), view_of(state, model));
  }

  static void save_of_second_trainer(const TemporaryFolder& folder, std::int64_t step) {
    OneArray model;
    TrainState state = state_of(model, step);
    state.trainer = 1;
    std::filesystem::create_directories(folder / "trainer2");
    write_savepoint(posix_file_system(), folder / ("trainer2/" + savepoint_name(step)), view_of(state, model));
  }

  static void damage(const TemporaryFolder& folder, std::int64_t step) {
    std::filesystem::resize_file(folder / savepoint_name(step), 700);
  }

  // The step of the state that is found; -1 if nothing is found.
  std::int64_t find() {
    StateFinder finder(context_, model_, choices_);
    const std::string text = finder.find();
    finder.tell_of_found();
    return text.empty() ? -1 : train_state_from_json(text, "what was found").step;
  }

  std::string origin() const { return memory_->events.at("resumed").at(0).at("path"); }

  const TemporaryFolder folder_;
  const TemporaryFolder copies_;
  const std::shared_ptr<Memory> memory_ = std::make_shared<Memory>();
  Replica::Context context_;
  OneArray model_;
  TrainState choices_ = choices();
};

using Arithmetic = Finding;

TEST_F(Finding, FindsNothingAtTheBeginningOfARunAndChangesNothing) {
  model_.weights = {5, 6};

  EXPECT_EQ(find(), -1);

  EXPECT_EQ(model_.weights, (std::vector<float>{5, 6}));
  EXPECT_TRUE(memory_->events.empty());
  EXPECT_TRUE(memory_->loaded.empty());
}

TEST_F(Finding, TakesTheNewestSavepointIfTheMemoryHoldsNothing) {
  for (const std::int64_t step : {4, 12, 8}) save(folder_, step);

  EXPECT_EQ(find(), 12);

  EXPECT_EQ(model_.weights, (std::vector<float>{12, 12}));
  EXPECT_EQ(origin(), folder_ / savepoint_name(12));
  EXPECT_EQ(memory_->events.at("resumed").at(0).at("step"), 12);
  EXPECT_EQ(memory_->loaded, std::vector<std::int64_t>{12});
}

TEST_F(Finding, TakesTheMemoryIfNoSavepointIsNewer) {
  for (const std::int64_t of_savepoint : {4, 9}) {
    save(folder_, of_savepoint);
    memory_->events.clear();
    memory_->keep(9);

    EXPECT_EQ(find(), 9);

    EXPECT_EQ(model_.weights, (std::vector<float>{9, 9}));
    EXPECT_EQ(origin(), "the snapshot in the watchdog's memory");
  }
}

TEST_F(Finding, TakesTheSavepointThatIsNewerThanTheMemory) {
  memory_->keep(9);
  save(folder_, 10);

  EXPECT_EQ(find(), 10);

  EXPECT_EQ(model_.weights, (std::vector<float>{10, 10}));
  EXPECT_EQ(memory_->events.at("resumed").size(), 1U);
}

TEST_F(Finding, TakesACopyThatIsNewerThanAllElse) {
  memory_->keep(9);
  save(folder_, 8);
  save(copies_, 12);

  EXPECT_EQ(find(), 12);

  EXPECT_EQ(origin(), copies_ / savepoint_name(12));
}

TEST_F(Finding, TakesStatesOfItsOwnTrainerAlone) {
  context_.trainer = 1;
  choices_.trainer = 1;
  save(folder_, 30);
  memory_->keep(40);
  EXPECT_EQ(find(), -1);

  save_of_second_trainer(copies_, 3);
  EXPECT_EQ(find(), 3);
  save_of_second_trainer(folder_, 5);
  EXPECT_EQ(find(), 5);
  memory_->keep(7, 1);
  EXPECT_EQ(find(), 7);
}

TEST_F(Finding, SetsADamagedSavepointAsideAndTakesTheOneBefore) {
  save(folder_, 4);
  save(folder_, 8);
  damage(folder_, 8);

  EXPECT_EQ(find(), 4);

  ASSERT_EQ(memory_->events["savepoint_set_aside"].size(), 1U);
  EXPECT_EQ(memory_->events["savepoint_set_aside"][0].at("path"), folder_ / savepoint_name(8));
  EXPECT_FALSE(std::filesystem::exists(folder_ / savepoint_name(8)));
  EXPECT_TRUE(std::filesystem::exists(folder_ / (savepoint_name(8) + ".damaged")));
}

// The damaged savepoint is newer than the memory by its name, but cannot be used.
TEST_F(Finding, IgnoresTheMemoryIfADamagedSavepointIsNewer) {
  memory_->keep(9);
  save(folder_, 4);
  save(folder_, 12);
  damage(folder_, 12);

  EXPECT_EQ(find(), 4);
}

TEST_F(Finding, RefusesAStateThatWasMadeWithOtherChoices) {
  save(folder_, 4);
  choices_.seed = 5;

  try {
    find();
    FAIL() << "another seed was accepted";
  } catch (const OtherChoices& refusal) {  // only for this type does the watchdog put a failed run aside
    EXPECT_THAT(refusal.what(), HasSubstr(folder_ / savepoint_name(4)));
    EXPECT_THAT(refusal.what(), HasSubstr("seed"));
  }
  EXPECT_EQ(model_.weights, (std::vector<float>{0, 0}));
  EXPECT_FALSE(memory_->events.contains("resumed"));
}

TEST_F(Finding, RefusesAStateInMemoryThatWasMadeWithOtherChoices) {
  memory_->keep(4);
  choices_.shards = 2;

  try {
    find();
    FAIL() << "other shards were accepted";
  } catch (const OtherChoices& refusal) {
    EXPECT_THAT(refusal.what(), HasSubstr("the watchdog's memory"));
  }
  EXPECT_EQ(model_.weights, (std::vector<float>{0, 0}));
}

TEST_F(Finding, DoesNotSetAsideWhatCannotBeRead) {
  save(folder_, 4);
  const auto failing = watched_file_system(posix_file_system(), [](const FileOperation& operation) {
    if (operation.name == "read") throw Error(ErrorCode::input_output, "cannot read " + operation.path);
  });
  context_.file_system = failing.get();

  EXPECT_THROW(find(), Error);

  EXPECT_TRUE(std::filesystem::exists(folder_ / savepoint_name(4)));
  EXPECT_FALSE(memory_->events.contains("savepoint_set_aside"));
}

TEST_F(Arithmetic, IsRecordedAtTheFirstStartAndAcceptedAfterwards) {
  StateFinder(context_, model_, choices_).check_arithmetic();

  EXPECT_EQ(read_file(folder_ / "arithmetic.txt"), "library 1, avx2\n");
  EXPECT_NO_THROW(StateFinder(context_, model_, choices_).check_arithmetic());
}

TEST_F(Arithmetic, ThatGivesOtherBitsIsRefusedAndTheRecordStays) {
  StateFinder(context_, model_, choices_).check_arithmetic();
  model_.arithmetic_name = "library 1, avx512";

  try {
    StateFinder(context_, model_, choices_).check_arithmetic();
    FAIL() << "another arithmetic was accepted";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.code(), ErrorCode::incompatible);
    EXPECT_THAT(refusal.what(), HasSubstr("started with library 1, avx2 and would go on with library 1, avx512"));
    EXPECT_THAT(refusal.what(), HasSubstr("accept_other_arithmetic"));
  }
  EXPECT_EQ(read_file(folder_ / "arithmetic.txt"), "library 1, avx2\n");
}

// An example with the layers of another --model was told to look for another machine.
TEST_F(Arithmetic, IsNotBlamedForAnotherModel) {
  StateFinder(context_, model_, choices_).check_arithmetic();
  save(folder_, 4);
  model_.arithmetic_name = "library 1, avx2, packed recurrent kernels";
  choices_.graph = R"({"class_name":"TwoArrays"})";

  const std::string sentence = sentence_thrown_by([&] { StateFinder(context_, model_, choices_).check_arithmetic(); });

  EXPECT_THAT(sentence, HasSubstr("TwoArrays"));
  EXPECT_THAT(sentence, Not(HasSubstr("arithmetic")));
}

// Releases before the second version of our kernels recorded none.
TEST_F(Arithmetic, WithEarlierKernelsIsRefusedByNameAndCanBeAccepted) {
  model_.arithmetic_name = "oneDNN 2.6.3, isa avx2, kernels 2, 1 thread per shard";
  std::ofstream(folder_ / "arithmetic.txt") << "oneDNN 2.6.3, isa avx2, 1 thread per shard\n";

  try {
    StateFinder(context_, model_, choices_).check_arithmetic();
    FAIL() << "a run of earlier kernels was resumed";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.code(), ErrorCode::incompatible);
    EXPECT_THAT(refusal.what(), HasSubstr("the run was started with oneDNN 2.6.3, isa avx2, 1 thread per shard and "
                                          "would go on with oneDNN 2.6.3, isa avx2, kernels 2, 1 thread per shard, "
                                          "which gives other bits"));
    EXPECT_THAT(refusal.what(), HasSubstr("the same release of Holdfast"));
    EXPECT_THAT(refusal.what(), HasSubstr("accept_other_arithmetic"));
  }
  context_.accept_other_arithmetic = true;
  EXPECT_NO_THROW(StateFinder(context_, model_, choices_).check_arithmetic());
}

// Without this check an empty file gave "was started with  and would go on", control characters went to the terminal,
// and a NUL cut the sentence.
TEST_F(Arithmetic, IsReportedAsPrintableTextIfItsRecordIsDamaged) {
  for (const auto& [content, shown] : std::vector<std::pair<std::string, std::string>>{
           {"", "it holds \"\""}, {std::string("a\0\x1b[2J\n\n", 8), "it holds \"a\\x00\\x1b[2J\\x0a\\x0a\""}}) {
    std::ofstream(folder_ / "arithmetic.txt") << content;
    try {
      StateFinder(context_, model_, choices_).check_arithmetic();
      FAIL() << "a damaged record was accepted";
    } catch (const Error& refusal) {
      EXPECT_THAT(refusal.what(), HasSubstr("arithmetic.txt is damaged: " + shown));
      EXPECT_THAT(refusal.what(), HasSubstr("would go on with library 1, avx2. Restore the file"));
    }
  }
}

TEST_F(Arithmetic, ThatIsAcceptedBecomesThatOfTheRun) {
  StateFinder(context_, model_, choices_).check_arithmetic();
  model_.arithmetic_name = "library 1, avx512";
  context_.accept_other_arithmetic = true;

  StateFinder(context_, model_, choices_).check_arithmetic();

  EXPECT_EQ(read_file(folder_ / "arithmetic.txt"), "library 1, avx512\n");
  context_.accept_other_arithmetic = false;
  EXPECT_NO_THROW(StateFinder(context_, model_, choices_).check_arithmetic());
}

}  // namespace
}  // namespace holdfast
