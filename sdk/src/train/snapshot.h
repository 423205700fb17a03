#pragma once

// A copy of the whole training state in host memory, and its way into and out of a savepoint file. A Snapshot is a base
// model with its training state; nothing in it knows of replicas.

#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/train/trainable.h"
#include "train/train_state.h"

namespace holdfast {

struct SnapshotArray {
  std::string name;
  Shape shape;
  std::vector<float> values;
};

struct Snapshot {
  TrainState state;
  std::vector<SnapshotArray> arrays;
};

Snapshot take_snapshot(const TrainState& state, Trainable& trainable);
// Copies the arrays into the Trainable. Throws Error{incompatible} naming the first array that is missing, unknown or
// of another shape; nothing has changed then. `origin` names the snapshot in the sentence.
void restore_arrays(const Snapshot& snapshot, Trainable& trainable, const std::string& origin);

// Whole or not at all, durable on return. Returns the file's digest.
Digest write_savepoint(FileSystem& files, const std::string& path, const Snapshot& snapshot);
// Throws Error{invalid_file} for anything but a whole savepoint.
Snapshot read_savepoint(FileSystem& files, const std::string& path);

}  // namespace holdfast
