// Measures with the writer itself rather than with a model of disk and cores: what counts is the time of
// a whole save, fsync included. Why `fast` is the default nevertheless: docs/decisions/compression.md.

#include "holdfast/format/compression_choice.h"

#include <algorithm>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/base/temporary_files.h"

namespace holdfast::format {
namespace {

// A file of the trial, which is removed whatever happens.
class TrialFile {
 public:
  TrialFile(FileSystem& files, const std::string& folder)
      : files_(files), path_(temporary_path(folder + "/compression-trial")) {}
  ~TrialFile() {
    try {
      if (files_.exists(path_)) files_.remove(path_);
    } catch (...) {
      // The figures, or the error that led here, say more. remove_temporary_files() finds a file that stays.
    }
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t file_bytes() const { return files_.open_for_reading(path_)->size_bytes(); }

 private:
  FileSystem& files_;
  const std::string path_;
};

std::uint64_t bytes_of(std::span<const ArrayView> arrays) {
  std::uint64_t bytes = 0;
  for (const ArrayView& array : arrays) bytes += array.bytes.size();
  return bytes;
}

// The first part of each array, in proportion, because parameters and an optimizer's slots shrink
// differently.
std::vector<ArrayView> sample_of(std::span<const ArrayView> arrays, std::uint64_t most_bytes) {
  const std::uint64_t total = bytes_of(arrays);
  const double share = total <= most_bytes ? 1.0 : static_cast<double>(most_bytes) / static_cast<double>(total);
  std::vector<ArrayView> sample;
  for (const ArrayView& array : arrays) {
    const std::size_t element = size_bytes(array.dtype);
    const std::size_t all = array.bytes.size() / element;
    const std::size_t count = std::min(all, static_cast<std::size_t>(static_cast<double>(all) * share));
    sample.push_back({array.name, array.dtype, {count}, array.bytes.first(count * element)});
  }
  return sample;
}

}  // namespace

CompressionTrial measure_compression(FileSystem& files, const std::string& folder, std::span<const ArrayView> arrays,
                                     const TrialOptions& options) {
  const std::vector<ArrayView> sample = sample_of(arrays, options.sample_bytes);
  CompressionTrial trial{.sample_bytes = bytes_of(sample)};
  const auto save = [&](Compression compression, double& seconds, std::uint64_t& file_bytes) {
    const TrialFile file(files, folder);
    const auto begin = options.now();
    write_array_file(files, file.path(), "{}", sample, {.compression = compression, .threads = options.threads});
    seconds += std::chrono::duration<double>(options.now() - begin).count();
    file_bytes = file.file_bytes();
  };
  // In this order a load that drifts meanwhile falls on both kinds alike.
  save(Compression::fast, trial.fast_seconds, trial.fast_file_bytes);
  save(Compression::none, trial.none_seconds, trial.none_file_bytes);
  save(Compression::none, trial.none_seconds, trial.none_file_bytes);
  save(Compression::fast, trial.fast_seconds, trial.fast_file_bytes);
  return trial;
}

Compression choose(const CompressionTrial& trial) {
  return trial.none_seconds < trial.fast_seconds ? Compression::none : Compression::fast;
}

}  // namespace holdfast::format
