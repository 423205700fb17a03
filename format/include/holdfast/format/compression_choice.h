#pragma once

// Whether a storage takes compressed or plain files faster: that depends on the disk, the cores and the data, so it is
// measured, once, with a sample of what will be written. The decision is a function of the figures, so that both can be
// recorded.

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// The figures of a measurement. Seconds are the sum of both turns, from the first byte to the last fsync.
struct CompressionTrial {
  std::uint64_t sample_bytes = 0;
  double fast_seconds = 0;
  double none_seconds = 0;
  std::uint64_t fast_file_bytes = 0;
  std::uint64_t none_file_bytes = 0;
};

struct TrialOptions {
  std::uint64_t sample_bytes = std::uint64_t{64} << 20;  // at most; each array gives its share of it
  int threads = 0;                                       // as WriteOptions::threads
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
};

// Writes the sample into `folder` as write_array_file() would, with Compression::fast, none, none and fast again, so
// that what drifts meanwhile hits both alike, and removes each file at once. Blocks for four such saves.
//
// Throws what write_array_file() throws. No file is left then either, if it can be removed; what cannot has a name that
// remove_temporary_files() knows.
CompressionTrial measure_compression(FileSystem& files, const std::string& folder, std::span<const ArrayView> arrays,
                                     const TrialOptions& options = {});

// The quicker of the two, and of equally quick ones `fast`, whose files are smaller.
Compression choose(const CompressionTrial& trial);

}  // namespace holdfast::format
