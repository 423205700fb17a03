// The line on a terminal of any width, and the plain lines elsewhere. A pseudo-terminal shows what a
// user would see.

#include "holdfast/observe/progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <unistd.h>

#include "holdfast/base/terminal.h"

#include "support/played_context.h"
#include "support/program.h"
#include "support/pseudo_terminal.h"

namespace holdfast {

TEST(ProgressLine, ShowsPositionMeansSpeedAndTimeLeft) {
  PlayedContext context;
  context.epoch_number = 2;
  context.step_number = 108;

  EXPECT_EQ(progress_text(context, {{"accuracy", 0.96121}, {"loss", 0.1}},
                          {.samples_per_second = 5230.4, .seconds_left = 75}),
            "epoch 3/10  batch 12/48  step 108  accuracy 0.9612  loss 0.1000  5230 samples/s  1 min 15 s left");
  EXPECT_EQ(progress_text(context, {{"loss", 0.1}}, {}), "epoch 3/10  batch 12/48  step 108  loss 0.1000");
}

TEST(ProgressLine, WritesAPlainLineForEachEpochWithoutATerminal) {
  const TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "out").c_str(), "w");
  PlayedContext context;
  ProgressLine line(file);

  for (const double loss : {0.5, 0.25}) {
    line.on_step_end(context, {{"loss", 1}});
    line.on_step_end(context, {{"loss", 0.5}});
    line.on_epoch_end(context, {{"loss", loss}});
  }
  std::fclose(file);

  const std::string text = read_file(folder / "out");
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("loss 0.2500"), std::string::npos) << text;
}

// The pause of a recovery counted as time of the steps around it.
TEST(ProgressLine, MeasuresSpeedAnewAfterARecovery) {
  const TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "out").c_str(), "w");
  PlayedContext context;
  ProgressLine line(file);
  const auto step_in = [&](int generation) {
    context.generation_number = generation;
    ++context.batch_number;
    line.on_step_end(context, {});
  };

  step_in(0);
  step_in(0);
  step_in(1);
  line.on_epoch_end(context, {});
  const std::string with_one_step = read_file(folder / "out");
  step_in(1);
  step_in(1);
  line.on_epoch_end(context, {});
  std::fclose(file);

  EXPECT_EQ(with_one_step.find("samples/s"), std::string::npos) << with_one_step;
  EXPECT_NE(read_file(folder / "out").find("samples/s"), std::string::npos);
}

TEST(ProgressLine, LeavesOutTheLeastImportantPartsUntilItFits) {
  PlayedContext context;
  context.step_number = 108;
  const Logs logs{{"accuracy", 0.96121}, {"loss", 0.1}};
  const ProgressSpeed speed{.samples_per_second = 5230.4, .seconds_left = 75};
  const std::string widest =
      "epoch 1/10  batch 12/48  step 108  accuracy 0.9612  loss 0.1000  5230 samples/s  1 min 15 s left";

  EXPECT_EQ(progress_text(context, logs, speed, static_cast<int>(widest.size())), widest);
  EXPECT_EQ(progress_text(context, logs, speed, static_cast<int>(widest.size()) - 1),
            "epoch 1/10  batch 12/48  accuracy 0.9612  loss 0.1000  5230 samples/s  1 min 15 s left");
  EXPECT_EQ(progress_text(context, logs, speed, 79),
            "epoch 1/10  batch 12/48  accuracy 0.9612  loss 0.1000  1 min 15 s left");
  EXPECT_EQ(progress_text(context, logs, speed, 60), "epoch 1/10  accuracy 0.9612  loss 0.1000  1 min 15 s left");
  EXPECT_EQ(progress_text(context, logs, speed, 40), "epoch 1/10  accuracy 0.9612  loss 0.1000");
  EXPECT_EQ(progress_text(context, logs, speed, 19), "epoch 1/10  accurac");
}

// A progress line on a terminal, and the events of a training for it.
class ProgressOnATerminal {
 public:
  explicit ProgressOnATerminal(int columns)
      : terminal(columns), stream_(::fdopen(::dup(terminal.program_end()), "w")), line(stream_) {}
  ~ProgressOnATerminal() { std::fclose(stream_); }

  void step(const Logs& logs) { line.on_step_end(context, logs); }
  void end_epoch(const Logs& logs) { line.on_epoch_end(context, logs); }

  PseudoTerminal terminal;
  PlayedContext context;

 private:
  std::FILE* stream_;

 public:
  ProgressLine line;
};

const Logs kManyLogs{{"accuracy", 0.9612},
                     {"loss", 0.1},
                     {"gr\xC3\xB6\xC3\x9F"
                      "e",
                      3},
                     {"top_5_accuracy", 0.99},
                     {"val_accuracy", 0.9},
                     {"val_loss", 0.3}};

// Once, each of five updates per second left a row on a terminal of 80 columns.
TEST(ProgressLine, TakesOneRowOfATerminalOfAnyWidth) {
  for (const int columns : {1, 2, 5, 20, 79, 80, 81, 200}) {
    ProgressOnATerminal progress(columns);
    // The model of the screen does not know characters of several bytes.
    const Logs logs = {{"accuracy", 0.9612}, {"loss", 0.1}, {"top_5_accuracy", 0.99}, {"val_loss", 0.3}};

    for (int i = 0; i < 3; ++i) progress.step(logs);

    EXPECT_LE(progress.terminal.screen().rows().size(), 1U) << columns;
    progress.end_epoch(logs);
    progress.end_epoch(logs);
    EXPECT_LE(progress.terminal.screen().rows().size(), 2U) << columns;
    for (const std::string& row : progress.terminal.screen().rows()) {
      EXPECT_LT(row.size(), static_cast<std::size_t>(std::max(columns, 2))) << row;
    }
  }
}

TEST(ProgressLine, CountsColumnsAndNotBytes) {
  ProgressOnATerminal progress(60);

  progress.step(kManyLogs);

  progress.terminal.screen();
  const std::string& written = progress.terminal.written();
  const std::size_t begin = written.find("epoch");
  const std::string line = written.substr(begin, written.find('\r', begin) - begin);
  EXPECT_EQ(columns_of(line), 59) << line;
  EXPECT_EQ(line.size(), 61U) << line;
}

TEST(ProgressLine, IsWrittenAgainAtOnceWhenTheTerminalChangesItsWidth) {
  ProgressOnATerminal progress(100);
  const Logs logs{{"accuracy", 0.9612}, {"loss", 0.1}, {"val_loss", 0.3}};
  progress.step(logs);
  const std::vector<std::string> wide = progress.terminal.screen().rows();

  progress.terminal.resize(20);
  ASSERT_GT(progress.terminal.screen().rows().size(), 1U) << "the terminal wraps what stands there";
  progress.step(logs);
  const std::vector<std::string> narrow = progress.terminal.screen().rows();
  progress.terminal.resize(100);
  progress.step(logs);

  ASSERT_EQ(narrow.size(), 1U);
  EXPECT_EQ(narrow[0], "epoch 1/10  accurac");
  EXPECT_EQ(progress.terminal.screen().rows(), wide);
}

// The next output, from any process, begins at the start of the line.
TEST(ProgressLine, LeavesTheCursorInTheFirstColumn) {
  ProgressOnATerminal progress(80);

  progress.step({{"loss", 0.1}});

  progress.terminal.screen();
  EXPECT_TRUE(progress.terminal.written().ends_with("\r"));
}

TEST(ProgressLine, KeepsTheLastLineOfEachEpoch) {
  ProgressOnATerminal progress(80);

  progress.step({{"loss", 0.1}});
  progress.end_epoch({{"loss", 0.25}});
  progress.context.epoch_number = 1;
  progress.step({{"loss", 0.1}});
  progress.end_epoch({{"loss", 0.125}});

  const std::vector<std::string> rows = progress.terminal.screen().rows();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows[0].starts_with("epoch 1/10") && rows[0].find("loss 0.2500") != std::string::npos) << rows[0];
  EXPECT_TRUE(rows[1].starts_with("epoch 2/10") && rows[1].find("loss 0.1250") != std::string::npos) << rows[1];
}

}  // namespace holdfast
