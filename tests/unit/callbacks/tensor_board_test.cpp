// TensorBoard shows each epoch of the state once, whatever process wrote before and wherever it was
// killed.

#include "holdfast/observe/tensor_board.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "callbacks/event_file.h"
#include "callbacks/profile_file.h"
#include "holdfast/base/error.h"
#include "holdfast/base/log.h"
#include "holdfast/base/whole_file.h"
#include "support/disks/memory_file_system.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/callbacks/support/played_epochs.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::Not;

// The points of the three played epochs, in "train" or "validation".
EventPoints points_of_three(const std::string& log) {
  EventPoints points;
  for (std::size_t epoch = 0; epoch < kThreePlayedEpochs.size(); ++epoch) {
    points[static_cast<std::int64_t>(epoch)] =
        scalar_summary({{"epoch_loss", static_cast<float>(kThreePlayedEpochs[epoch].at(log))}});
  }
  return points;
}

class Board {
 public:
  Board() { training.context.files = &files; }

  void expect_three() {
    EXPECT_EQ(shown_points(files, "/logs/train"), points_of_three("loss"));
    EXPECT_EQ(shown_points(files, "/logs/validation"), points_of_three("val_loss"));
  }
  std::size_t files_of(const std::string& part) { return files.list("/logs/" + part).size(); }

  MemoryFileSystem files;
  PlayedEpochs training;
};

}  // namespace

TEST(TensorBoard, WritesAPointForEachEpochWithTheNamesOfKeras) {
  Board board;
  TensorBoard callback({.directory = "/logs"});

  board.training.begin(callback);
  for (const Logs& logs : kThreePlayedEpochs) board.training.end_epoch(callback, logs);
  board.training.end(callback);

  board.expect_three();
  EXPECT_EQ(board.files_of("train"), 1U);
  EXPECT_EQ(board.files_of("validation"), 1U);
}

TEST(TensorBoard, LiesInTheRunDirectoryByDefault) {
  const TemporaryFolder folder;
  PlayedEpochs training;
  training.context.directory = folder.path();
  TensorBoard callback;

  training.end_epoch(callback, {{"loss", 1}});

  EXPECT_EQ(shown_points(posix_file_system(), folder / "tensorboard/train").size(), 1U);
  EXPECT_FALSE(posix_file_system().exists(folder / "tensorboard/validation"));
  PlayedEpochs alone;
  TensorBoard placeless;
  EXPECT_EQ(code_thrown_by([&] { alone.begin(placeless); }), ErrorCode::invalid_argument);
}

TEST(TensorBoard, TakesBackThePointsOfAnotherTraining) {
  Board board;
  TensorBoard before({.directory = "/logs"});
  for (const Logs& logs : kThreePlayedEpochs) board.training.end_epoch(before, logs);
  board.training.go_back_to({});
  TensorBoard after({.directory = "/logs"});

  board.training.begin(after);

  EXPECT_EQ(shown_points(board.files, "/logs/train"), EventPoints{});
  EXPECT_EQ(shown_points(board.files, "/logs/validation"), EventPoints{});
}

TEST(TensorBoard, TakesBackPointsThatTheStateDoesNotHaveAtTheFirstStepAfterARestart) {
  Board board;
  TensorBoard dead({.directory = "/logs"});
  for (const Logs& logs : kThreePlayedEpochs) board.training.end_epoch(dead, logs);
  board.training.end_epoch(dead, {{"loss", 9}, {"val_loss", 9}});
  board.training.go_back_to(kThreePlayedEpochs);
  TensorBoard newcomer({.directory = "/logs"});

  board.training.end_step(newcomer);

  board.expect_three();
}

TEST(TensorBoard, TakesBackPointsThatTheStateOfASurvivorHasLost) {
  Board board;
  TensorBoard callback({.directory = "/logs"});
  board.training.end_epoch(callback, kThreePlayedEpochs[0]);
  board.training.end_epoch(callback, {{"loss", 9}, {"val_loss", 9}});
  board.training.go_back_to({kThreePlayedEpochs[0]});

  board.training.end_step(callback);
  EXPECT_EQ(shown_points(board.files, "/logs/train").size(), 1U);
  board.training.end_epoch(callback, kThreePlayedEpochs[1]);
  board.training.end_epoch(callback, kThreePlayedEpochs[2]);

  board.expect_three();
}

TEST(TensorBoard, WritesThePointThatADeadPrimaryRankDidNotWrite) {
  Board board;
  TensorBoard dead({.directory = "/logs"});
  board.training.end_epoch(dead, kThreePlayedEpochs[0]);
  board.training.go_back_to({kThreePlayedEpochs[0], kThreePlayedEpochs[1]});
  TensorBoard survivor({.directory = "/logs"});

  board.training.end_epoch(survivor, kThreePlayedEpochs[2]);

  board.expect_three();
}

TEST(TensorBoard, WritesNothingIfAllPointsExist) {
  Board board;
  TensorBoard dead({.directory = "/logs"});
  for (const Logs& logs : kThreePlayedEpochs) board.training.end_epoch(dead, logs);
  const FileContents before = board.files.contents();
  TensorBoard newcomer({.directory = "/logs"});

  board.training.end_step(newcomer);

  EXPECT_EQ(board.files.contents(), before);
}

TEST(TensorBoard, IsWrittenByThePrimaryRankAlone) {
  Board board;
  board.training.context.rank_number = 1;
  TensorBoard callback({.directory = "/logs"});

  board.training.begin(callback);
  board.training.end_step(callback);
  board.training.end_epoch(callback, {{"loss", 1}});
  board.training.end(callback);

  EXPECT_EQ(board.files.contents(), FileContents{});
}

// TensorBoard stops reading a file once a later one exists.
TEST(TensorBoard, BeginsAnotherFileAfterAnotherRankHasBegunOne) {
  Board board;
  TensorBoard first({.directory = "/logs"});
  board.training.end_epoch(first, kThreePlayedEpochs[0]);
  TensorBoard second({.directory = "/logs"});
  board.training.end_epoch(second, kThreePlayedEpochs[1]);

  board.training.end_epoch(first, kThreePlayedEpochs[2]);

  board.expect_three();
  EXPECT_EQ(board.files_of("train"), 3U);
}

// The process ends at each operation in turn; the next start repairs what is left.
TEST(TensorBoard, IsRepairedByTheNextStartWhateverFails) {
  for (int survived = 0;; ++survived) {
    Board board;
    TensorBoard whole({.directory = "/logs"});
    board.training.end_epoch(whole, kThreePlayedEpochs[0]);
    int left = survived;
    bool failed = false;
    const auto failing = watched_file_system(board.files, [&](const FileOperation& operation) {
      if (left-- > 0) return;
      failed = true;
      throw Error(ErrorCode::disk_full, "no space for " + operation.name);
    });
    board.training.context.files = failing.get();
    TensorBoard killed({.directory = "/logs"});
    board.training.end_epoch(killed, kThreePlayedEpochs[1]);
    board.training.context.files = &board.files;
    TensorBoard next({.directory = "/logs"});

    board.training.end_epoch(next, kThreePlayedEpochs[2]);

    board.expect_three();
    if (!failed) break;
  }
}

TEST(TensorBoard, MakesUpForAFailureAtTheEndOfTheNextEpoch) {
  Board board;
  bool fails = false;
  const auto failing = watched_file_system(board.files, [&](const FileOperation& operation) {
    if (fails && operation.name == "sync") throw Error(ErrorCode::input_output, "the disk is gone");
  });
  board.training.context.files = failing.get();
  TensorBoard callback({.directory = "/logs"});
  board.training.begin(callback);
  board.training.end_epoch(callback, kThreePlayedEpochs[0]);

  fails = true;
  EXPECT_NO_THROW(board.training.end_epoch(callback, kThreePlayedEpochs[1]));
  fails = false;
  board.training.end_epoch(callback, kThreePlayedEpochs[2]);

  board.expect_three();
}

// A replica that takes over knows the last points of steps, weights and what the program adds from the state.
TEST(TensorBoard, WritesWhatADeadPrimaryRankDidNotWriteOfStepsAndWeights) {
  const auto options = [] {
    return TensorBoardOptions{.directory = "/logs",
                              .scalars_every_steps = 1,
                              .histograms_every_epochs = 1,
                              .add = [](TrainingContext& context, TensorBoardPoints& points) {
                                points.scalar("epoch", static_cast<double>(context.epoch()));
                              }};
  };
  const auto train = [](Board& board, TensorBoard& callback, std::int64_t epoch) {
    PlayedContext& context = board.training.context;
    context.arrays = {{.name = "model/dense/kernel", .shape = Shape{2}, .values = {0, static_cast<float>(epoch)}}};
    context.epoch_number = epoch;
    for (int step = 0; step < 3; ++step) {
      ++context.step_number;
      board.training.end_step(callback);
    }
    board.training.end_epoch(callback, kThreePlayedEpochs[static_cast<std::size_t>(epoch)]);
  };
  Board undisturbed;
  TensorBoard whole(options());
  undisturbed.training.begin(whole);
  for (const std::int64_t epoch : {0, 1, 2}) train(undisturbed, whole, epoch);
  Board board;
  TensorBoard dead(options());
  board.training.begin(dead);
  train(board, dead, 0);
  // The second epoch as a rank saw it that does not write.
  TensorBoard survivor(options());
  survivor.restore(dead.state());
  board.training.context.rank_number = 1;
  train(board, survivor, 1);
  board.training.context.rank_number = 0;
  TensorBoard newcomer(options());
  newcomer.restore(survivor.state());

  train(board, newcomer, 2);

  for (const char* part : {"train", "steps", "weights", "added"}) {
    SCOPED_TRACE(part);
    const std::string folder = std::string("/logs/") + part;
    EXPECT_EQ(shown_points(board.files, folder), shown_points(undisturbed.files, folder));
  }
  EXPECT_EQ(shown_points(board.files, "/logs/steps").size(), 9U);
  EXPECT_EQ(shown_points(board.files, "/logs/weights").size(), 3U);
}

TEST(TensorBoard, TakesBackStepsAfterTheStateThatTheRunGoesBackTo) {
  Board board;
  const auto make = [] { return TensorBoard({.directory = "/logs", .scalars_every_steps = 2}); };
  TensorBoard dead = make();
  const auto steps_to = [&](TensorBoard& callback, std::int64_t last) {
    while (board.training.context.step_number < last) {
      ++board.training.context.step_number;
      board.training.end_step(callback);
    }
  };
  steps_to(dead, 5);
  const CallbackState state = dead.state();
  steps_to(dead, 9);
  board.training.context.step_number = 5;
  TensorBoard next = make();
  next.restore(state);

  steps_to(next, 6);

  std::vector<std::int64_t> steps;
  for (const auto& [step, summary] : shown_points(board.files, "/logs/steps")) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{2, 4, 6}));
}

namespace {

// A board whose clock the test sets.
struct TimedBoard : Board {
  TensorBoard timed(std::int64_t scalars_every_steps = 0) {
    return TensorBoard(
        {.directory = "/logs", .scalars_every_steps = scalars_every_steps, .steps_per_second = true, .now = [this] {
           return std::chrono::steady_clock::time_point(time);
         }});
  }
  void make_steps(TensorBoard& callback, int steps, std::chrono::milliseconds each) {
    for (int step = 0; step < steps; ++step) {
      time += each;
      ++training.context.step_number;
      training.end_step(callback);
    }
  }
  EventPoints speeds() { return shown_points(files, "/logs/speed"); }

  std::chrono::milliseconds time{1000};
};

std::string speed_of_epoch(float rate) {
  return scalar_summary({{"epoch_steps_per_second", rate}});
}

}  // namespace

TEST(TensorBoard, ShowsTheStepsASecondOfEachEpoch) {
  TimedBoard board;
  TensorBoard callback = board.timed(2);
  board.training.begin(callback);
  for (const auto each : {std::chrono::milliseconds(100), std::chrono::milliseconds(250)}) {
    callback.on_epoch_begin(board.training.context);
    board.make_steps(callback, 4, each);
    board.training.end_epoch(callback, {{"loss", 1}});
    ++board.training.context.epoch_number;
  }

  EXPECT_EQ(board.speeds(), (EventPoints{{0, speed_of_epoch(10)}, {1, speed_of_epoch(4)}}));
  const EventPoints steps = shown_points(board.files, "/logs/steps");
  EXPECT_EQ(steps.at(4), scalar_summary({{"batch_loss", 7}, {"batch_steps_per_second", 10}}));
  EXPECT_EQ(steps.at(6), scalar_summary({{"batch_loss", 7}, {"batch_steps_per_second", 4}}));
}

// It does not know when the epoch began, nor when its own first step did.
TEST(TensorBoard, CountsFromTheFirstStepOfAProcessThatCameIntoAnEpoch) {
  TimedBoard board;
  TensorBoard dead = board.timed();
  board.training.begin(dead);
  dead.on_epoch_begin(board.training.context);
  board.make_steps(dead, 3, std::chrono::milliseconds(100));
  TensorBoard newcomer = board.timed();
  newcomer.restore(dead.state());
  board.time += std::chrono::hours(1);

  board.make_steps(newcomer, 3, std::chrono::milliseconds(500));
  board.training.end_epoch(newcomer, {{"loss", 1}});

  EXPECT_EQ(board.speeds(), (EventPoints{{0, speed_of_epoch(2)}}));
}

TEST(TensorBoard, WritesTheSpeedThatADeadPrimaryRankDidNotWrite) {
  TimedBoard board;
  TensorBoard survivor = board.timed();
  board.training.begin(survivor);
  board.training.context.rank_number = 1;
  survivor.on_epoch_begin(board.training.context);
  board.make_steps(survivor, 2, std::chrono::milliseconds(500));
  board.training.end_epoch(survivor, {{"loss", 1}});
  board.training.context.rank_number = 0;
  TensorBoard newcomer = board.timed();
  newcomer.restore(survivor.state());

  board.training.end_step(newcomer);

  EXPECT_EQ(board.speeds(), (EventPoints{{0, speed_of_epoch(2)}}));
}

// A table of very many rows and two columns has few pixels, and PNG has no such picture. It ended fit().
TEST(TensorBoard, LeavesOutPicturesThatAreTooLargeAndNamesThemOnce) {
  Board board;
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, std::string_view line) { said.emplace_back(line); });
  const auto array = [](const std::string& name, const Shape& shape) {
    return WeightArray{.name = name,
                       .shape = shape,
                       .values = std::vector<float>(static_cast<std::size_t>(shape.element_count()), 1.0F)};
  };
  board.training.context.arrays = {array("model/embedding/embeddings", {100'000, 2}),
                                   array("model/wide/kernel", {2, 100'000}), array("model/large/kernel", {513, 512}),
                                   array("model/long/kernel", {1 << 16, 4}), array("model/dense/bias", {100'000})};
  TensorBoard callback({.directory = "/logs", .images_every_epochs = 1});

  board.training.begin(callback);
  for (const Logs& logs : {kThreePlayedEpochs[0], kThreePlayedEpochs[1]}) {
    EXPECT_NO_THROW(board.training.end_epoch(callback, logs));
    ++board.training.context.epoch_number;
  }
  set_log_sink({});

  const EventPoints shown = shown_points(board.files, "/logs/weights");
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_THAT(shown.at(1), HasSubstr("long/kernel/image"));
  for (const char* const name : {"embedding", "wide", "large", "bias"}) {
    EXPECT_THAT(shown.at(1), Not(HasSubstr(name)));
  }
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("model/embedding/embeddings of [100000, 2], model/wide/kernel of [2, 100000], "
                                 "model/large/kernel of [513, 512]; "));
}

TEST(TensorBoard, HasNoStateWithoutSuchPoints) {
  TensorBoard callback({.directory = "/logs", .write_graph = true});

  EXPECT_TRUE(callback.state().empty());
}

TEST(TensorBoard, WritesTheGraphOnce) {
  Board board;
  board.training.context.graph_text = R"({"format":"holdfast.sequential","layers":[{"name":"dense","kind":"Dense"}]})";
  for (int start = 0; start < 2; ++start) {
    TensorBoard callback({.directory = "/logs", .write_graph = true});
    board.training.begin(callback);
    board.training.end_epoch(callback, kThreePlayedEpochs[0]);
  }

  EXPECT_EQ(board.files_of("graph"), 1U);
}

TEST(TensorBoard, WritesTheTablesOfEpochsThatAreDueAndTheLastOnes) {
  Board board;
  PlayedContext& context = board.training.context;
  const auto train = [&](TensorBoard& callback, std::int64_t epoch) {
    context.epoch_number = epoch;
    context.arrays = {
        {.name = "model/words/embeddings", .shape = Shape{2, 1}, .values = {0, static_cast<float>(epoch)}}};
    board.training.end_epoch(callback, kThreePlayedEpochs[static_cast<std::size_t>(epoch)]);
  };
  const auto table = [&] { return read_text_file(board.files, "/logs/train/embeddings_0.tsv"); };
  TensorBoard callback(
      {.directory = "/logs", .embeddings_every_epochs = 2, .embedding_labels = {{"words", {"a", "b"}}}});
  context.arrays = {{.name = "model/words/embeddings", .shape = Shape{2, 1}, .values = {0, 0}}};

  board.training.begin(callback);
  train(callback, 0);
  EXPECT_FALSE(board.files.exists("/logs/train/embeddings_0.tsv"));
  train(callback, 1);
  EXPECT_EQ(table(), "0\n1\n");
  train(callback, 2);
  EXPECT_EQ(table(), "0\n1\n");
  board.training.end(callback);

  EXPECT_EQ(table(), "0\n2\n");
  // Files of others in the folder of points do no harm.
  board.expect_three();
}

TEST(TensorBoard, RefusesLabelsOfNoTableWhenFitBegins) {
  Board board;
  TensorBoard callback({.directory = "/logs", .embeddings_every_epochs = 1, .embedding_labels = {{"words", {"a"}}}});

  EXPECT_EQ(code_thrown_by([&] { board.training.begin(callback); }), ErrorCode::invalid_argument);
}

TEST(TensorBoard, WritesTheProfileOfItsSteps) {
  Board board;
  PlayedContext& context = board.training.context;
  context.spans = {{.what = "update"}};
  const std::string file = "/logs/train/plugins/profile/steps_3_to_4/holdfast.xplane.pb";
  const auto play_steps = [&](TensorBoard& callback, std::int64_t last) {
    while (context.step_number < last) {
      callback.on_step_begin(context);
      ++context.step_number;
      board.training.end_step(callback);
    }
  };
  TensorBoard callback({.directory = "/logs", .profile_steps = {3, 4}});

  play_steps(callback, 3);
  EXPECT_EQ(context.profiled_from, 2);
  EXPECT_FALSE(board.files.exists(file));
  play_steps(callback, 4);
  EXPECT_EQ(read_text_file(board.files, file), profile_space(context.spans));

  // Another rank writes nothing, and a process that came between the two steps has recorded nothing.
  board.files.remove(file);
  for (const int rank : {1, 0}) {
    context.step_number = 0;
    context.rank_number = rank;
    if (rank == 0) context.spans.clear();
    TensorBoard other({.directory = "/logs", .profile_steps = {3, 4}});
    play_steps(other, 4);
    EXPECT_FALSE(board.files.exists(file)) << rank;
  }
}

TEST(TensorBoard, RefusesOptionsThatContradictEachOther) {
  const auto refused = [](const TensorBoardOptions& options) {
    return code_thrown_by([&] { TensorBoard{options}; }) == ErrorCode::invalid_argument;
  };

  EXPECT_TRUE(refused({.embeddings_every_epochs = -1}));
  EXPECT_TRUE(refused({.embedding_labels = {{"words", {"a"}}}}));
  EXPECT_TRUE(refused({.profile_steps = {5, 4}}));
  EXPECT_TRUE(refused({.profile_steps = {0, 4}}));
  EXPECT_TRUE(refused({.profile_steps = {-1}}));
  EXPECT_TRUE(refused({.steps_per_second = true, .now = {}}));
  EXPECT_NO_THROW(TensorBoard({.profile_steps = {5}}));
}

// What people look at must not end a training.
TEST(TensorBoard, LogsTablesThatCannotBeWritten) {
  Board board;
  std::vector<std::string> said;
  set_log_sink([&](LogLevel, std::string_view line) { said.emplace_back(line); });
  const auto failing = watched_file_system(board.files, [&](const FileOperation& operation) {
    if (operation.path.find("embeddings_0") != std::string::npos) throw Error(ErrorCode::disk_full, "no space");
  });
  board.training.context.files = failing.get();
  board.training.context.arrays = {{.name = "model/words/embeddings", .shape = Shape{1, 1}, .values = {0}}};
  TensorBoard callback({.directory = "/logs", .embeddings_every_epochs = 1});

  EXPECT_NO_THROW(board.training.end_epoch(callback, kThreePlayedEpochs[0]));
  set_log_sink({});

  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(said[0], HasSubstr("cannot write the tables of embeddings; training continues: "));
}

TEST(TensorBoardPoints, RefusePicturesThatPngDoesNotHave) {
  TensorBoardPoints points;
  for (const Tensor& tensor :
       {Tensor(Shape{4, 4}), Tensor(Shape{4, 4, 2}), Tensor(Shape{0, 4, 1}), Tensor(Shape{4, 4, 3}, DType::i32)}) {
    EXPECT_EQ(code_thrown_by([&] { points.image("picture", tensor); }), ErrorCode::invalid_argument)
        << tensor.shape().to_string();
  }
  EXPECT_EQ(points.summary(), "");
}

}  // namespace holdfast
