#pragma once

// Whether a folder takes compressed or plain files faster. That depends on the disk, the cores and the
// data, so it is measured once, with a sample of what will be written. The decision is a function of
// the figures, so both can be recorded.
//
//   const CompressionTrial trial = measure_compression(posix_file_system(), "run", arrays);
//   write_array_file(posix_file_system(), path, metadata, arrays, {.compression = choose(trial)});

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format {

// The figures of a measurement. Each kind is saved twice; its seconds are the sum of both saves, from
// the first byte to the last fsync.
struct CompressionTrial {
  std::uint64_t sample_bytes = 0;     // of the arrays that were saved
  double fast_seconds = 0;            // with Compression::fast
  double none_seconds = 0;            // with Compression::none
  std::uint64_t fast_file_bytes = 0;  // with Compression::fast
  std::uint64_t none_file_bytes = 0;  // with Compression::none
};

// How a measurement is made.
struct TrialOptions {
  std::uint64_t sample_bytes = std::uint64_t{64} << 20;  // at most; each array contributes its share
  int threads = 0;                                       // as WriteOptions::threads
  // The clock of the measurement.
  std::function<std::chrono::steady_clock::time_point()> now = [] { return std::chrono::steady_clock::now(); };
};

// Writes the sample into `folder` as write_array_file() would, and removes each file at once. The order is
// fast, none, none, fast, so a load that drifts meanwhile affects both alike. Blocks for four such saves.
//
// Throws what write_array_file() throws. The file is removed then too, if that is possible. A file that
// stays has a name that remove_temporary_files() recognizes.
CompressionTrial measure_compression(FileSystem& files, const std::string& folder, std::span<const ArrayView> arrays,
                                     const TrialOptions& options = {});

// The faster of the two. When both took equally long: `fast`, whose files are smaller.
Compression choose(const CompressionTrial& trial);

}  // namespace holdfast::format
