#pragma once

// What SavepointCompression::automatic means in each folder. It is measured before the first savepoint there, and
// recorded in "compression.json" next to the savepoints. Later starts read the record, so that one run makes one kind
// of file. docs/decisions/compression.md

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "holdfast/base/file_system.h"
#include "train/state/snapshot.h"

namespace holdfast {

// One thread at a time may use it.
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

  // The first call for a folder reads the record, or else measures and writes it; then it calls `when_made`. States of
  // less than kSmallestMeasured bytes are not measured and get `fast`. So does a storage that cannot be measured:
  // errors of the disk and a lack of memory for it are never thrown. The choice holds while the process lives, even if
  // memory was short for a moment alone. Nothing is recorded then, so a later start measures.
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
