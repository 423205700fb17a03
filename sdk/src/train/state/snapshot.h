#pragma once

// The whole training state in host memory, and its way into and out of a savepoint file. A Snapshot is a base model
// with its training state; nothing in it knows of replicas.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/train/savepoint.h"
#include "holdfast/train/trainable.h"
#include "train/state/train_state.h"

namespace holdfast {

struct SnapshotArray {
  std::string name;
  Shape shape;
  std::span<const float> values;
};

struct Snapshot {
  TrainState state;
  std::vector<SnapshotArray> arrays;
  // What the arrays view, where it is not somebody else's. Goes with the snapshot when that is moved.
  std::vector<std::unique_ptr<float[]>> memory{};
  // Where they are still on their way from a device: blocks until they are there, within that device's time limit. To
  // be called once, on any thread, before the arrays are read.
  std::function<void()> arrive{};

  // Another array, in memory of the snapshot, which nobody has written yet.
  std::span<float> add(std::string name, const Shape& shape);
};

// A copy.
Snapshot take_snapshot(const TrainState& state, Trainable& trainable);
// The same of a state on a device, still on its way: arrive() throws Error{diverged} where another one came than was
// held.
Snapshot send_snapshot(const TrainState& state, Trainable& trainable, const std::shared_ptr<HeldArrays>& held);
// Throws Error{diverged} unless what was copied to the host is what the device held.
void require_arrived(std::int64_t step, const Digest& held, const Digest& arrived);
// No copy where the state lies in the host's memory: valid while the Trainable's state does not change.
Snapshot view_of(const TrainState& state, Trainable& trainable);
// Copies the arrays into the Trainable. Throws Error{incompatible} naming the first array that is missing, unknown or
// of another shape; nothing has changed then. `origin` names the snapshot in the sentence.
void restore_arrays(const Snapshot& snapshot, Trainable& trainable, const std::string& origin);

// The state as it lies in memory outside the process: a header, which says what the arrays are, and their bytes. Valid
// while the Trainable's state does not change.
struct StateImage {
  std::string header;
  std::vector<std::span<const float>> arrays;
  MemorySpace& memory;  // where these lie

  std::size_t size_bytes() const;
  // Bytes [begin, begin + piece.size()) of it; all but the header in whole floats.
  void copy(std::size_t begin, std::span<std::byte> piece) const;
};
StateImage image_of(const TrainState& state, Trainable& trainable);
// Valid while the image, which is aligned to floats, is. Throws Error{invalid_file} for bytes that are no image.
Snapshot view_of_image(std::span<const std::byte> image);

// Of all arrays, in memory.
std::uint64_t size_bytes(const Snapshot& snapshot);

struct SavepointStorage {
  SavepointCompression compression = SavepointCompression::fast;  // any but automatic
  int zstd_level = 1;
  int threads = 0;  // 0: as many as the process has cores
  // Told, one call at a time, how many of the state's bytes are written, its JSON's too; from any thread.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

// Whole or not at all, durable on return. Returns the file's digest.
Digest write_savepoint(FileSystem& files, const std::string& path, const Snapshot& snapshot,
                       const SavepointStorage& storage = {});
// Throws Error{invalid_file} for anything but a whole savepoint.
Snapshot read_savepoint(FileSystem& files, const std::string& path);
// The same into the Trainable, piece by piece as they are checked, while the rest is being read and decompressed.
// Throws what read_savepoint() throws, Error{incompatible} as restore_arrays() does, and what `accepts` throws, which
// is given the state before anything is changed. Damage and failures that are met later leave some of the arrays
// changed.
TrainState load_savepoint(FileSystem& files, const std::string& path, Trainable& trainable,
                          const std::function<void(const TrainState&)>& accepts);

// What saving a sample of this state in `folder` takes with SavepointCompression::fast and with none.
struct CompressionFigures {
  SavepointCompression quicker = SavepointCompression::fast;
  std::uint64_t sample_bytes = 0;
  double fast_seconds = 0;
  double none_seconds = 0;
  std::uint64_t fast_file_bytes = 0;
  std::uint64_t none_file_bytes = 0;
};
// Writes four files there and removes them. Throws what write_savepoint() throws.
CompressionFigures measure_compression(FileSystem& files, const std::string& folder, const Snapshot& snapshot,
                                       int threads);

}  // namespace holdfast
