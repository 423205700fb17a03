// The measurement is replaced by figures of the test, so that the choice does not depend on this machine's disk.

#include "train/saving/compression_choices.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <new>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "support/program.h"

namespace holdfast {
namespace {

Snapshot snapshot_of_bytes(std::uint64_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(float));
  Snapshot snapshot;
  const std::span<float> values = snapshot.add("model/a", Shape{count});
  std::fill(values.begin(), values.end(), 1.0F);
  return snapshot;
}

// The folder of a run, on a storage with figures that the test sets.
class AutomaticCompression : public ::testing::Test {
 protected:
  // What a start of the run chooses.
  SavepointCompression choose(const Snapshot& snapshot, const CompressionChoices::Measure& measure) {
    CompressionChoices choices(*files_, measure);
    const auto note = [this](const std::string& record, const CompressionChoices::Choice& choice) {
      ++told_;
      record_ = record;
      why_ = choice.why;
    };
    const SavepointCompression first = choices.choose(folder_.path(), snapshot, 1, note);
    EXPECT_EQ(choices.choose(folder_.path(), snapshot, 1, note), first);
    return first;
  }
  SavepointCompression choose() { return choose(large_, measure_); }

  const TemporaryFolder folder_;
  const Snapshot large_ = snapshot_of_bytes(CompressionChoices::kSmallestMeasured);
  std::function<void(const FileOperation&)> when_operated_ = [](const FileOperation&) {};
  std::unique_ptr<FileSystem> files_ =
      watched_file_system(posix_file_system(), [this](const FileOperation& operation) { when_operated_(operation); });
  CompressionFigures figures_{.quicker = SavepointCompression::none,
                              .sample_bytes = 1000,
                              .fast_seconds = 0.75,
                              .none_seconds = 0.25,
                              .fast_file_bytes = 800,
                              .none_file_bytes = 1100};
  int measured_ = 0;
  CompressionChoices::Measure measure_ = [this](FileSystem&, const std::string&, const Snapshot&, int) {
    ++measured_;
    return figures_;
  };
  int told_ = 0;
  std::string record_;
  std::string why_;
};

TEST_F(AutomaticCompression, IsTheQuickerOneAndRecordsBothFigures) {
  EXPECT_EQ(choose(), SavepointCompression::none);

  EXPECT_EQ(measured_, 1);
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(record_, folder_ / "compression.json");
  const nlohmann::json record = nlohmann::json::parse(read_file(record_));
  EXPECT_EQ(record.at("compression"), "none");
  EXPECT_EQ(record.at("sample_bytes"), 1000);
  EXPECT_EQ(record.at("fast").at("seconds"), 0.75);
  EXPECT_EQ(record.at("fast").at("file_bytes"), 800);
  EXPECT_EQ(record.at("none").at("seconds"), 0.25);
  EXPECT_EQ(record.at("none").at("file_bytes"), 1100);
  EXPECT_NE(why_.find("0.7500"), std::string::npos) << why_;
  EXPECT_NE(why_.find("0.2500"), std::string::npos) << why_;
}

TEST_F(AutomaticCompression, IsTheRecordedOneInALaterStart) {
  choose();
  figures_.quicker = SavepointCompression::fast;

  EXPECT_EQ(choose(), SavepointCompression::none);

  EXPECT_EQ(measured_, 1);
  EXPECT_NE(why_.find(folder_ / "compression.json"), std::string::npos) << why_;
}

TEST_F(AutomaticCompression, IsMeasuredAgainWhenTheRecordCannotBeUnderstood) {
  for (const std::string text : {"", "no JSON", "[]", "{}", R"({"compression": "zip"})", R"({"compression": 1})"}) {
    write_whole_file(posix_file_system(), folder_ / "compression.json", std::as_bytes(std::span(text)));
    measured_ = 0;

    EXPECT_EQ(choose(), SavepointCompression::none) << text;
    EXPECT_EQ(measured_, 1) << text;
  }
}

TEST_F(AutomaticCompression, IsFastForAStateTooSmallToMeasureWith) {
  EXPECT_EQ(choose(snapshot_of_bytes(CompressionChoices::kSmallestMeasured - 4), measure_), SavepointCompression::fast);

  EXPECT_EQ(measured_, 0);
  EXPECT_EQ(told_, 1);
  EXPECT_NE(why_.find("too small"), std::string::npos) << why_;
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(AutomaticCompression, IsFastOnAFullDiskAndLeavesNoFile) {
  when_operated_ = [](const FileOperation& operation) {
    if (operation.name == "write") throw system_error(ENOSPC, "cannot write " + operation.path);
  };

  EXPECT_EQ(choose(large_, measure_compression), SavepointCompression::fast);

  EXPECT_NE(why_.find("could not be measured"), std::string::npos) << why_;
  EXPECT_TRUE(folder_.names().empty());
}

// The measurement failed the savepoint, which itself had enough memory.
TEST_F(AutomaticCompression, IsFastWhereMemoryIsTooShortToMeasure) {
  const auto no_memory = [](FileSystem&, const std::string&, const Snapshot&, int) -> CompressionFigures {
    throw std::bad_alloc();
  };

  EXPECT_EQ(choose(large_, no_memory), SavepointCompression::fast);

  EXPECT_EQ(why_, "the storage could not be measured, since memory is short; a later start will measure again");
  EXPECT_EQ(told_, 1);
}

TEST_F(AutomaticCompression, HoldsForThisStartWhenItCannotBeRecorded) {
  when_operated_ = [](const FileOperation& operation) {
    if (operation.name == "sync") throw system_error(ENOSPC, "cannot write " + operation.path);
  };

  EXPECT_EQ(choose(), SavepointCompression::none);

  EXPECT_NE(why_.find("measure again"), std::string::npos) << why_;
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(AutomaticCompression, IsChosenForEachFolder) {
  const TemporaryFolder other;
  CompressionChoices choices(*files_, measure_);

  EXPECT_EQ(choices.choose(folder_.path(), large_, 1, {}), SavepointCompression::none);
  figures_.quicker = SavepointCompression::fast;
  EXPECT_EQ(choices.choose(other.path(), large_, 1, {}), SavepointCompression::fast);
  EXPECT_EQ(choices.choose(folder_.path(), large_, 1, {}), SavepointCompression::none);
}

}  // namespace
}  // namespace holdfast
