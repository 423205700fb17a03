// The file always has one line for each epoch of the state, whatever process wrote before and wherever
// it was killed.

#include "holdfast/observe/csv_logger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "support/disks/memory_file_system.h"
#include "support/program.h"
#include "support/text_bytes.h"
#include "support/thrown.h"
#include "unit/callbacks/support/played_epochs.h"

namespace holdfast {
namespace {

const std::string kThreeEpochs = "epoch,loss,val_loss\n0,1,2\n1,0.5,1.5\n2,0.25,1.25\n";

void write_text(FileSystem& files, const std::string& path, const std::string& text) {
  if (files.exists(path)) files.remove(path);
  files.create(path)->write_at(0, bytes_of(text));
}

}  // namespace

TEST(CSVLogger, WritesALineForEachEpochWithTheColumnsOfKeras) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "deep/log.csv"});

  training.begin(logger);
  EXPECT_EQ(read_file(folder / "deep/log.csv"), "");
  training.end_epoch(logger, {{"val_loss", 0.1}, {"loss", 1.0 / 3}, {"accuracy", 1e-7}});
  training.end_epoch(logger, {{"val_loss", std::nan("")}, {"loss", -std::numeric_limits<double>::infinity()}});

  EXPECT_EQ(read_file(folder / "deep/log.csv"),
            "epoch,accuracy,loss,val_loss\n0,1e-07,0.3333333333333333,0.1\n1,NA,-inf,nan\n");
}

TEST(CSVLogger, LiesInTheRunDirectoryByDefault) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  training.context.directory = folder.path();
  CSVLogger logger;

  training.begin(logger);

  EXPECT_EQ(folder.names(), std::vector<std::string>{"log.csv"});
  PlayedEpochs alone;
  EXPECT_EQ(code_thrown_by([&] { alone.begin(logger); }), ErrorCode::invalid_argument);
}

TEST(CSVLogger, QuotesNamesThatHoldTheSeparator) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "log.csv", .separator = ';'});

  training.end_epoch(logger, {{"a;\"b\"", 1}, {"c,d", 2}});

  EXPECT_EQ(read_file(folder / "log.csv"), "epoch;\"a;\"\"b\"\"\";c,d\n0;1;2\n");
  for (const char separator : std::string("+-.07enaiN\"\r\n\0", 14)) {
    EXPECT_EQ(code_thrown_by([&] { CSVLogger({.separator = separator}); }), ErrorCode::invalid_argument) << separator;
  }
}

TEST(CSVLogger, BeginsTheFileAnewForAnotherTraining) {
  const TemporaryFolder folder;
  write_text(posix_file_system(), folder / "log.csv", kThreeEpochs);
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "log.csv"});

  training.begin(logger);

  EXPECT_EQ(read_file(folder / "log.csv"), "");
}

// A second fit() emptied the file of the first one.
TEST(CSVLogger, KeepsTheEpochsOfEarlierCallsWhereItAppends) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  training.context.earlier = {{kThreePlayedEpochs[0], kThreePlayedEpochs[1]}};
  CSVLogger logger({.path = folder / "log.csv", .append = true});

  training.begin(logger);
  EXPECT_EQ(read_file(folder / "log.csv"), "epoch,loss,val_loss\n0,1,2\n1,0.5,1.5\n");
  training.end_epoch(logger, {{"loss", 0.25}});
  training.end_step(logger);

  EXPECT_EQ(read_file(folder / "log.csv"), "epoch,loss,val_loss\n0,1,2\n1,0.5,1.5\n0,0.25,NA\n");
}

TEST(CSVLogger, CutsOffLinesThatTheStateDoesNotHaveAtTheFirstStepAfterARestart) {
  const TemporaryFolder folder;
  write_text(posix_file_system(), folder / "log.csv", kThreeEpochs + "3,9,9\n4,9,9\n");
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "log.csv"});
  training.go_back_to(kThreePlayedEpochs);

  training.end_step(logger);

  EXPECT_EQ(read_file(folder / "log.csv"), kThreeEpochs);
}

TEST(CSVLogger, CutsOffLinesThatTheStateOfASurvivorHasLost) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "log.csv"});
  for (const Logs& logs : kThreePlayedEpochs) training.end_epoch(logger, logs);
  training.end_epoch(logger, {{"loss", 9}, {"val_loss", 9}});
  training.go_back_to(kThreePlayedEpochs);

  training.end_step(logger);

  EXPECT_EQ(read_file(folder / "log.csv"), kThreeEpochs);
}

// Rank 0 died at the end of an epoch, before it wrote the line; the others have the epoch.
TEST(CSVLogger, LosesNoLineWhenThePrimaryRankDies) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  CSVLogger dead({.path = folder / "log.csv"});
  training.end_epoch(dead, kThreePlayedEpochs[0]);
  training.go_back_to({kThreePlayedEpochs[0], kThreePlayedEpochs[1]});
  CSVLogger survivor({.path = folder / "log.csv"});

  training.end_epoch(survivor, kThreePlayedEpochs[2]);

  EXPECT_EQ(read_file(folder / "log.csv"), kThreeEpochs);
}

TEST(CSVLogger, IsWrittenByThePrimaryRankAlone) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  training.context.rank_number = 1;
  CSVLogger logger({.path = folder / "log.csv"});

  training.begin(logger);
  training.end_step(logger);
  training.end_epoch(logger, {{"loss", 1}});
  training.end(logger);

  EXPECT_TRUE(folder.names().empty());
}

// A process that is primary again after another rank was finds what that rank wrote meanwhile.
TEST(CSVLogger, ReadsTheFileAgainWhenItsRankIsPrimaryAgain) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "log.csv"});
  for (const Logs& logs : kThreePlayedEpochs) training.end_epoch(logger, logs);
  training.context.rank_number = 1;
  training.end_step(logger);
  write_text(posix_file_system(), folder / "log.csv", "epoch,loss,val_loss\n0,1,2\n");
  training.context.rank_number = 0;

  training.end_step(logger);

  EXPECT_EQ(read_file(folder / "log.csv"), kThreeEpochs);
}

// A kill can leave any part of a line, and a power cut can change its bytes.
TEST(CSVLogger, RepairsAFileThatIsCutOffAnywhere) {
  MemoryFileSystem files;
  PlayedEpochs training;
  training.context.files = &files;
  training.go_back_to(kThreePlayedEpochs);
  for (std::size_t length = 0; length <= kThreeEpochs.size(); ++length) {
    for (const std::string& rest : {std::string(), std::string("\0\0", 2), std::string("7,7")}) {
      write_text(files, "/log.csv", kThreeEpochs.substr(0, length) + rest);
      CSVLogger logger({.path = "/log.csv"});

      training.end_step(logger);

      ASSERT_EQ(read_text_file(files, "/log.csv"), kThreeEpochs) << "cut off at " << length;
    }
  }
}

// The process is killed at each operation on the file in turn; the next start repairs what is left.
TEST(CSVLogger, KeepsWholeLinesWhateverFails) {
  for (int survived = 0;; ++survived) {
    MemoryFileSystem memory;
    write_text(memory, "/log.csv", "epoch,loss,val_loss\n0,1,2\n1,0.5,1.5\n");
    int left = survived;
    bool failed = false;
    const auto files = watched_file_system(memory, [&](const FileOperation& operation) {
      if (left-- > 0) return;
      failed = true;
      throw Error(ErrorCode::disk_full, "no space for " + operation.name);
    });
    PlayedEpochs training;
    training.context.files = files.get();
    training.go_back_to({kThreePlayedEpochs[0], kThreePlayedEpochs[1]});
    CSVLogger logger({.path = "/log.csv"});

    training.end_epoch(logger, kThreePlayedEpochs[2]);

    EXPECT_TRUE(read_text_file(memory, "/log.csv").starts_with("epoch,loss,val_loss\n0,1,2\n1,0.5,1.5\n"));
    training.context.files = &memory;
    training.end(logger);
    EXPECT_EQ(read_text_file(memory, "/log.csv"), kThreeEpochs);
    if (!failed) break;
  }
}

TEST(CSVLogger, EndsAFitWhoseFileCannotBeWritten) {
  const TemporaryFolder folder;
  write_text(posix_file_system(), folder / "file", "");
  PlayedEpochs training;
  CSVLogger logger({.path = folder / "file/log.csv"});

  EXPECT_THROW(training.begin(logger), Error);
}

}  // namespace holdfast
