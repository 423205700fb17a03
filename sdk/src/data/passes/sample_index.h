#pragma once

// A whole number for each sample of a stage, found by a function of the user in one pass over all samples: whether
// filter() keeps it, how long bucketed() finds it. A file may keep the numbers, so that one process of a host makes the
// pass, once, and all others and all later starts read what it found.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/stages/stage.h"

namespace holdfast {

struct SampleScan {
  const char* stage = "";  // "filter()", for messages
  std::string name = {};   // that the user gave the function
  std::string index = {};  // path of the file; empty: none
};

// Calls the function once for each sample of epoch 0 with seed 0, in their order and on this thread, unless the file is
// there. Throws what the function throws, as a FailedFunction; for the file, what CacheFile throws.
std::vector<std::int64_t> numbers_of_samples(const Stage& before, const SampleScan& scan,
                                             const std::function<std::int64_t(const SampleArrays&)>& number_of);

}  // namespace holdfast
