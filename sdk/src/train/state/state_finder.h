#pragma once

// Where a run takes its state from when no replica has one: a snapshot in the watchdog's memory, or the newest whole
// savepoint of the run directory and the folders of copies. Only rank 0 looks, and shares what it finds; where each
// host has a run directory of its own, the first rank of each host looks there.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/train/trainable.h"
#include "train/context/replica_context.h"
#include "train/state/snapshot.h"
#include "train/state/train_state.h"

namespace holdfast {

class StateFinder {
 public:
  // All arguments outlive this. A state that was made with other choices than those in `choices` is refused.
  StateFinder(Replica::Context& context, Trainable& trainable, const TrainState& choices)
      : StateFinder(context, trainable, trainable, choices) {}
  // The same for a state that may have kept weights.
  StateFinder(Replica::Context& context, Trainable& trainable, StateArrays arrays, const TrainState& choices);

  // Compares this machine's arithmetic with the recorded one. Throws Error{incompatible} if it gives other bits, unless
  // the context accepts that. Records this machine's arithmetic at the first start, and when it is accepted.
  void check_arithmetic();

  // Reads the newest state into the arrays, and returns its JSON; empty when the run begins at step 0.
  std::string find();
  // Like find(), for the newest savepoint in which no fit() after call number `call` (from 0) has begun. Later
  // savepoints belong to training that will be repeated, and get the ending ".replaced". Throws OtherChoices if no such
  // savepoint is left.
  std::string find_before_later_fit(std::size_t call);
  // Tells the journal and the log of the state that was found, once it is known that training goes on from it.
  void tell_of_found() const;

 private:
  // Restores the snapshot in memory, and returns its state's JSON; empty if no snapshot was kept, or a savepoint is
  // newer.
  std::optional<std::string> find_in_memory();
  std::optional<std::int64_t> newest_savepoint_step() const;
  std::vector<std::string> savepoint_folders() const;
  // The states of savepoints, newest first, read without their arrays. Unreadable savepoints are left out.
  std::vector<std::pair<std::string, TrainState>> list_states() const;
  void begin_to_restore(const TrainState& state, const std::string& origin);
  std::string found(const TrainState& state, const std::string& origin);

  Replica::Context& context_;
  Trainable& trainable_;
  StateArrays arrays_;  // those of the Trainable, and the kept weights
  Supervision& supervision_;
  const TrainState& choices_;
  struct Found {
    std::string origin{};
    std::int64_t step = 0;
  };
  std::optional<Found> found_{};
};

}  // namespace holdfast
