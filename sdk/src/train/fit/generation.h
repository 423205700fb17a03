#pragma once

// The way into a generation. It connects with the other ranks, and gives all of them the newest state that any of them
// has. If no rank has one, rank 0 looks for it in memory and among the savepoints. docs/decisions/recovery.md

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/data/dataset.h"
#include "train/agreement/agreement.h"
#include "train/fit/sample_supply.h"
#include "train/saving/memory_saver.h"
#include "train/saving/saver.h"
#include "train/step/training.h"
#include "train/step/warm_up.h"

namespace holdfast {

// Only the training thread uses it.
class Generation {
 public:
  Generation(Training& training, Agreement& agreement, Saver& saver, MemorySaver& memory_saver, SampleSupply& samples);

  // Becomes part of the first generation, once. A spare waits here. A Trainer that the run has left for the next one
  // (has_ended()) joins nobody: it takes the state that it ended with. With data, the model first computes a trial with
  // it, in as many shards of a step as `shards_together` says (StepRunner::TrainOptions).
  void join();
  void join(const Dataset& data, WarmUp what, int shards_together = 1);
  // Blocks until this process is part of a new generation whose ranks all hold the same state, however many generations
  // end meanwhile.
  void enter();

  // Whether the run has gone on to the next Trainer. Then the calls of this one are passed without the other ranks.
  bool has_ended() const { return has_ended_; }
  // How many calls the arrays of that Trainer are the result of. Later ones that changed weights are to be repeated.
  std::size_t calls_of_arrays() const { return calls_of_arrays_; }
  bool has_joined() const { return has_joined_; }
  // Whether this process has become part of a generation in this Trainer.
  bool has_entered() const { return has_entered_; }

  // The next generation gets its state from elsewhere.
  void give_up_state() { has_state_ = false; }
  // Whether the state has come from elsewhere since the last call of this, so that callbacks are to be restored.
  bool take_news_of_state() { return std::exchange(has_new_state_, false); }
  // All ranks go back to the newest savepoint in which no fit() after `call` has begun.
  void go_back_before_later_fit(std::size_t call);

  // Prepares the Trainable for as many workers as the next generation needs; before any other function.
  void prepare_workers();

 private:
  // How far a rank has come, compared in the order of the fields; all zero without a state.
  struct Progress {
    std::int64_t has_state = 0;
    std::int64_t calls = 0;
    std::int64_t finished_calls = 0;
    std::int64_t epoch = 0;
    std::int64_t batch = 0;
    std::int64_t step = 0;
    std::int64_t stage = 0;

    auto operator<=>(const Progress&) const = default;
  };
  // What the ranks tell each other first.
  struct Introduction {
    Progress progress{};
    std::int64_t is_doubtful = 0;       // see Agreement
    std::int64_t rolled_back_step = 0;  // likewise
    std::int64_t keeps_savepoints = 0;  // in a folder of its host
  };

  Progress progress() const;
  static Progress progress_of(const TrainState& state);
  std::vector<Introduction> introduce(const Progress& progress);
  // What the first ranks of all hosts have found in their folders.
  struct Search {
    int newest = 0;               // the rank with the newest state
    bool is_without = false;      // this rank keeps savepoints, and has found none as new
    bool is_any_without = false;  // some rank is
  };
  // `found` is the state that this rank has found, as JSON.
  Search compare_found(const std::string& found);
  void settle_state();
  void drop_rolled_back_state(std::vector<Introduction>& ranks);
  void share_newest_state(const std::vector<Introduction>& ranks);
  void load_state();
  void begin_anew();
  void share_state(int root, bool takes);
  void share_arrays(int root, bool takes);
  void take_state(TrainState state);
  void warn_of_other_order();
  // Whether there was a state to take.
  bool take_ended_state();
  std::size_t calls_of_own_arrays(const TrainState& ended) const;

  Training& training_;
  Agreement& agreement_;
  Saver& saver_;
  MemorySaver& memory_saver_;
  SampleSupply& samples_;

  std::string program_;  // the model and its training as JSON, which all ranks must have alike
  bool has_joined_ = false;
  bool has_entered_ = false;
  bool has_ended_ = false;
  std::size_t calls_of_arrays_ = 0;
  bool has_state_ = false;  // also false while another rank's is being taken
  bool has_new_state_ = false;
  std::optional<std::size_t> wanted_end_;  // the state to find is of this fit(), and of no later one
  int prepared_workers_ = 0;
};

}  // namespace holdfast
