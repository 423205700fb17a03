#pragma once

// Copies the rows of samples that lie in memory to a batch.

#include <cstdint>
#include <span>

#include "data/stages/stage.h"

namespace holdfast {

// Rows in memory from which a batch is gathered.
class GatheredRows {
 public:
  // `last` must outlive it.
  explicit GatheredRows(const Stage& last);

  // Whether all samples lie in memory as they come out of load(), so that gather() may be called.
  bool are_there() const { return arrays_.features.data() != nullptr; }
  // Writes what load() writes for the positions from `first` on, as many as there is room for: rows of feature_words()
  // and target_words(). Any thread.
  void gather(std::uint64_t seed, std::int64_t epoch, std::int64_t first, std::span<float> features,
              std::span<float> targets) const;

 private:
  const Stage& last_;
  SourceArrays arrays_;
};

}  // namespace holdfast
