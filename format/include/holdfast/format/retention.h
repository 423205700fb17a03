#pragma once

// Which savepoints of a folder may go: a decision without files, so that its promises can be tested for any folder.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/best.h"

namespace holdfast::format {

struct SavepointEntry {
  std::string name;  // of the file, without its folder
  std::int64_t step = 0;
  std::uint64_t file_bytes = 0;
  std::optional<double> metric{};  // the value that "best" means; none in a savepoint that has no such value
  bool is_whole = false;           // known to be, because it was read and checked
};

using BestValue = Best;

// A savepoint stays when any of the first three asks for it.
struct RetentionPolicy {
  std::int64_t keep_last = 0;          // the newest so many; 0 keeps all
  std::int64_t keep_best = 0;          // so many with the best metric, of equal ones the older
  std::int64_t keep_every_steps = 0;   // for ever: all whose step is a multiple; 0: none
  BestValue best = BestValue::lowest;  //
  std::uint64_t max_bytes = 0;         // of all that stay: the oldest go first; 0: no limit
};

// Names of those of `entries` that `policy` gives up, oldest first. Never among them:
//   the newest that is known to be whole, and everything newer; nothing goes as long as none is known to be whole;
//   the best, of which no later, worse one takes the place;
//   those kept for ever.
// A budget that is too small for these is exceeded. Asked again about what is left, it gives up nothing more. The order
// of `entries` does not matter. NaN is no metric.
std::vector<std::string> savepoints_to_delete(std::span<const SavepointEntry> entries, const RetentionPolicy& policy);

// Throws Error{invalid_argument} for negative numbers.
void check(const RetentionPolicy& policy);

}  // namespace holdfast::format
