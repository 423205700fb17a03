#pragma once

// What a program chose to leave out of its data, for logs and reports: samples that cannot be loaded
// (Dataset::skip_bad()), and lines of a table (CsvOptions::skip_ragged). A run records it with the results of each call
// (run_results.h), and `holdfast report` has a sentence about it:
//
//   const SkippedSamples skipped = data.skipped_samples();
//   if (skipped.count > 0) std::printf("%s\n", skipped.first.front().c_str());

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast {

// How many were left out, and the reasons of some.
struct SkippedSamples {
  std::int64_t count = 0;          // of an epoch
  std::vector<std::string> first;  // what is wrong with the first ones, at most kMostNamed for each stage or table

  static constexpr std::size_t kMostNamed = 5;  // that are named
};

}  // namespace holdfast
