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
#include "train/state/kept_weights.h"
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
  // The memory that the arrays view, if the snapshot owns it. It moves with the snapshot.
  std::vector<std::unique_ptr<float[]>> memory{};
  // Set if the arrays are still on their way from a device: blocks until they have arrived, within that device's time
  // limit. To be called once, on any thread, before the arrays are read.
  std::function<void()> arrive{};
  // Written as a file of weights, from which no run goes on.
  bool is_of_weights_alone = false;

  // Adds an array in memory of the snapshot, and returns its values, which are not initialized.
  std::span<float> add(std::string name, const Shape& shape);
};

// Copies the state.
Snapshot take_snapshot(const TrainState& state, StateArrays arrays);
// Begins to copy a state that a device holds. arrive() waits for the copy, and throws Error{diverged} if other bytes
// arrived than the device held.
Snapshot send_snapshot(const TrainState& state, StateArrays arrays, const std::shared_ptr<HeldArrays>& held);
// Throws Error{diverged} unless the copy on the host has the digest of the state that the device held.
void require_arrived(std::int64_t step, const Digest& held, const Digest& arrived);
// A view of a state in the host's memory, valid until the state changes. A state on a device is copied.
Snapshot view_of(const TrainState& state, StateArrays arrays);
// Copies the arrays into the state. Throws Error{incompatible} if names or shapes of the arrays differ; then
// nothing has changed. `origin` names the snapshot in the sentence.
void restore_arrays(const Snapshot& snapshot, StateArrays arrays, const std::string& origin);
// The snapshot without arrays that are neither parameters nor buffers of the Trainable.
Snapshot weights_alone(Snapshot snapshot, Trainable& trainable);
// As restore_arrays(), for parameters and buffers alone, which a snapshot of a model has too. Other arrays stay as they
// are.
void restore_weights(const Snapshot& snapshot, Trainable& trainable, const std::string& origin);
// Makes the moving averages of the optimizer the parameters of the snapshot. Frozen parameters have none and stay.
// Throws Error{invalid_argument} if there are no averages.
void use_averages(Snapshot& snapshot, const std::string& origin);
// The digest of what restore_weights() would copy, on every machine the same. Throws what that throws.
Digest digest_of_weights(const Snapshot& snapshot, Trainable& trainable, const std::string& origin);

// The layout of a state in memory outside the process: a header, which says what the arrays are, and then their bytes.
// Valid until the state changes.
struct StateImage {
  std::string header;
  std::vector<std::span<const float>> arrays;
  MemorySpace& memory;  // that the arrays are in

  std::size_t size_bytes() const;
  // Copies bytes [begin, begin + piece.size()) of the image. After the header, pieces begin and end at whole floats.
  void copy(std::size_t begin, std::span<std::byte> piece) const;
};
StateImage image_of(const TrainState& state, StateArrays arrays);
// A view of an image, which is aligned to floats and outlives the view. Throws Error{invalid_file} for bytes that are
// not an image.
Snapshot view_of_image(std::span<const std::byte> image);

// The size of all arrays in memory.
std::uint64_t size_bytes(const Snapshot& snapshot);

struct SavepointStorage {
  SavepointCompression compression = SavepointCompression::fast;  // any but automatic
  int zstd_level = 1;
  int threads = 0;  // 0: as many as the process has cores
  // Called with the number of the state's bytes, JSON included, that are written. One call at a time, from any thread.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
};

// An atomic write, durable on return. Returns the file's digest.
Digest write_savepoint(FileSystem& files, const std::string& path, const Snapshot& snapshot,
                       const SavepointStorage& storage = {});
// Reads all of a savepoint. Throws Error{invalid_file} for anything but a whole one.
Snapshot read_savepoint(FileSystem& files, const std::string& path);
// The metadata of any file of arrays, whose digest is checked. Throws Error{invalid_file} for a damaged file.
std::string read_metadata(FileSystem& files, const std::string& path);
// Reads a savepoint, a file of weights, or the file that `holdfast convert` made of a Keras model: the state of the
// last two has a graph and nothing else, its arrays are the model's. Throws what read_savepoint() throws.
Snapshot read_model(FileSystem& files, const std::string& path);
// Reads a savepoint into the arrays, piece by piece as each is checked, while others are being read and
// decompressed. `accepts` gets the state before anything is changed, and throws to refuse it. Also throws what
// read_savepoint() throws, and Error{incompatible} as restore_arrays() does. A failure while pieces are read leaves
// some arrays changed.
TrainState load_savepoint(FileSystem& files, const std::string& path, StateArrays arrays,
                          const std::function<void(const TrainState&)>& accepts);

// How long saving a sample of this state takes with SavepointCompression::fast and with none, each saved twice.
struct CompressionFigures {
  SavepointCompression quicker = SavepointCompression::fast;
  std::uint64_t sample_bytes = 0;
  double fast_seconds = 0;
  double none_seconds = 0;
  std::uint64_t fast_file_bytes = 0;
  std::uint64_t none_file_bytes = 0;
};
// Writes four files in `folder`, and removes them. Throws what write_savepoint() throws.
CompressionFigures measure_compression(FileSystem& files, const std::string& folder, const Snapshot& snapshot,
                                       int threads);

}  // namespace holdfast
