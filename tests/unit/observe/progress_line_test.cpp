#include "holdfast/observe/progress_line.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/played_context.h"
#include "support/program.h"

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

TEST(ProgressLine, WritesPlainLinesWhereThereIsNoTerminal) {
  const TemporaryFolder folder;
  std::FILE* file = std::fopen((folder / "out").c_str(), "w");
  PlayedContext context;
  ProgressLine line(file);

  line.on_step_end(context, {{"loss", 1}});
  line.on_step_end(context, {{"loss", 0.5}});
  line.on_epoch_end(context, {{"loss", 0.25}});
  std::fclose(file);

  const std::string text = read_file(folder / "out");
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
  EXPECT_NE(text.find("loss 0.2500"), std::string::npos) << text;
}

}  // namespace holdfast
