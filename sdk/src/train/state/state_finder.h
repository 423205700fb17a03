#pragma once

// Where a run takes its state from when no replica has one: the watchdog's memory, or the newest whole savepoint of the
// run directory and the folders of copies. For rank 0 alone, before it shares what it found.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/train/trainable.h"
#include "train/context/place.h"
#include "train/state/snapshot.h"
#include "train/state/train_state.h"

namespace holdfast {

class StateFinder {
 public:
  // All outlive this. A state that was made with other choices than those of `choices` is refused.
  StateFinder(Replica::Place& place, Trainable& trainable, const TrainState& choices);

  // Throws Error{incompatible} where the run was begun with an arithmetic that gives other bits, unless the place
  // accepts it; records that of this machine otherwise.
  void check_arithmetic();

  // Returns the state's JSON, its arrays being in the Trainable; nothing when the run begins at step 0.
  std::string find();
  // The same of the newest savepoint in which no fit() after that call has begun. Later savepoints belong to training
  // that is done anew, and get the ending ".replaced". Throws OtherChoices where no such savepoint is left.
  std::string find_before_later_fit(std::size_t call);

 private:
  // Restores it, and returns its state's JSON.
  std::optional<std::string> find_in_memory();
  std::optional<std::int64_t> newest_savepoint_step() const;
  std::vector<std::string> savepoint_folders() const;
  // The states of savepoints, read without their arrays, newest first; unreadable ones are left out.
  std::vector<std::pair<std::string, TrainState>> list_states() const;
  void begin_to_restore(const TrainState& state, const std::string& origin);
  void tell_of(const TrainState& state, const std::string& origin);

  Replica::Place& place_;
  Trainable& trainable_;
  Supervision& supervision_;
  const TrainState& choices_;
};

}  // namespace holdfast
