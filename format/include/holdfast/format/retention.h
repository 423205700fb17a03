#pragma once

// Which savepoints of a folder to delete: a decision without files, so its promises can be tested for
// any folder. savepoint_keeper.h carries it out.
//
//   // The newest three, the one with the best validation loss, and every 1000th step:
//   const RetentionPolicy policy{.keep_last = 3, .keep_best = 1, .keep_every_steps = 1000};
//   const std::vector<std::string> names = savepoints_to_delete(entries, policy);

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/best.h"

namespace holdfast::format {

// A savepoint, as far as the decision needs to know it.
struct SavepointEntry {
  std::string name;                // of the file, without its folder
  std::int64_t step = 0;           // of the state in it
  std::uint64_t file_bytes = 0;    // on disk
  std::optional<double> metric{};  // the value that "best" compares; none when the savepoint has no such value
  bool is_whole = false;           // true when it was read and every digest was right
};

// Which metric is the best: the lowest for a loss, the highest for an accuracy.
using BestValue = Best;

// A savepoint is kept when any of the first three asks for it.
struct RetentionPolicy {
  // How many of the newest to keep; 0 keeps all. One that was not read yet counts. A caller leaves out those that it
  // knows to be damaged, as SavepointKeeper does.
  std::int64_t keep_last = 0;
  std::int64_t keep_best = 0;          // how many with the best metric to keep; among equal ones the older
  std::int64_t keep_every_steps = 0;   // never delete a step that is a multiple of it; 0: no such step
  BestValue best = BestValue::lowest;  // of the metric that keep_best compares
  std::uint64_t max_bytes = 0;         // of all that are kept: the oldest are deleted first; 0: no limit
};

// The names of the `entries` that `policy` does not keep, oldest first. Never among them are:
//   the newest that is known to be whole, and everything newer;
//   the best, with keep_best of at least 1: a later, worse one does not replace it;
//   the multiples of keep_every_steps.
// Nothing is deleted as long as no entry is known to be whole. A max_bytes that is too small for these
// is exceeded. Called again with what is left, it returns nothing. The order of `entries` does not
// matter. A metric of NaN counts as none.
std::vector<std::string> savepoints_to_delete(std::span<const SavepointEntry> entries, const RetentionPolicy& policy);

// Throws Error{invalid_argument} for a policy with negative numbers.
void check(const RetentionPolicy& policy);

}  // namespace holdfast::format
