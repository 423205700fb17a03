#pragma once

// What SavepointCompression::automatic means in each folder: measured before the first savepoint there, recorded in
// "compression.json" beside the savepoints, and taken from there by every later start, so that one run makes one kind
// of file.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "holdfast/base/file_system.h"
#include "train/state/snapshot.h"

namespace holdfast {

// Not for several threads at once.
class CompressionChoices {
 public:
  struct Choice {
    SavepointCompression compression = SavepointCompression::fast;
    std::string why;  // a sentence
  };
  using Measure =
      std::function<CompressionFigures(FileSystem&, const std::string& folder, const Snapshot&, int threads)>;

  // `files` must outlive it.
  explicit CompressionChoices(FileSystem& files, Measure measure = measure_compression);

  // The first call for a folder reads the record or measures, and tells `when_made` of the outcome. States of less than
  // kSmallestMeasured bytes take `fast` without, and so does a storage that cannot be measured: never throws for what
  // the disk does.
  SavepointCompression choose(const std::string& folder, const Snapshot& snapshot, int threads,
                              const std::function<void(const std::string& record, const Choice& choice)>& when_made);

  static constexpr std::uint64_t kSmallestMeasured = std::uint64_t{8} << 20;

 private:
  Choice make(const std::string& folder, const Snapshot& snapshot, int threads);
  Choice measure(const std::string& folder, const Snapshot& snapshot, int threads);

  FileSystem& files_;
  const Measure measure_;
  std::map<std::string, Choice> choices_;  // by folder
};

}  // namespace holdfast
