#pragma once

// Names of files from the position of the training and the logs: "{epoch:02d}-{val_loss:.2f}.h5", as ModelCheckpoint
// takes them.

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/train/callback.h"

namespace holdfast {

class FileNamePattern {
 public:
  // Throws Error{invalid_argument} unless numbers can be put into the pattern and the names that come out end in ".h5",
  // stay in their folder and are not those of savepoints.
  explicit FileNamePattern(std::string pattern);

  // The names in it, without "epoch", "batch" and "step".
  const std::vector<std::string>& logged_names() const { return logged_names_; }
  // The name for this moment; epochs and batches are counted from 1, as Keras does. Throws Error{invalid_argument} if
  // the logs lack a name.
  std::string at(const TrainingContext& context, const Logs& logs) const;

 private:
  struct Position {
    std::int64_t epoch = 1;
    std::int64_t batch = 1;
    std::int64_t step = 1;
  };
  std::string filled(const Position& position, const Logs& logs) const;

  std::string pattern_;
  std::vector<std::string> logged_names_;
};

}  // namespace holdfast
