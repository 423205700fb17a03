// A savepoint goes into the model piece by piece, since reading all of it before copying it would take the time of
// both. Choices, names and shapes are compared before anything changes, and no tensor ever holds bytes that were not
// checked. An image comes from the memory of a process that may have died, so no size in it is trusted.
// docs/decisions/savepoints.md

#include "train/state/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "core/json_text.h"
#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"
#include "holdfast/format/compression_choice.h"
#include "holdfast/optim/weight_average.h"

namespace holdfast {
namespace {

// Files count without signs, tensors with them.
std::vector<std::uint64_t> unsigned_extents(const Shape& shape) {
  return {shape.extents().begin(), shape.extents().end()};
}

Shape shape_of(const format::ArrayInfo& info) {
  std::vector<std::int64_t> extents;
  for (const std::uint64_t extent : info.shape) {
    // A crafted file must not become a negative extent.
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      throw Error(ErrorCode::invalid_file,
                  fmt::format("array {} has an extent of {}, which no tensor can have", info.name, extent));
    }
    extents.push_back(static_cast<std::int64_t>(extent));
  }
  return Shape(std::move(extents));
}

// A linear search: models have hundreds of arrays, and this runs once a start.
const SnapshotArray* find(const Snapshot& snapshot, const std::string& name) {
  const auto found =
      std::find_if(snapshot.arrays.begin(), snapshot.arrays.end(), [&](const auto& a) { return a.name == name; });
  return found == snapshot.arrays.end() ? nullptr : &*found;
}

// `origin` has `count` arrays; `shape_in` returns the shape of the one with that name, or nothing.
void require_same_arrays(const std::vector<StateSpan>& spans, const std::string& origin, std::size_t count,
                         const std::function<std::optional<Shape>(const std::string&)>& shape_in) {
  const auto refuse = [&](const std::string& why) {
    return Error(ErrorCode::incompatible,
                 fmt::format("{} belongs to another model: {}; use the model that it was made with", origin, why));
  };
  for (const StateSpan& span : spans) {
    const std::optional<Shape> shape = shape_in(span.name);
    if (!shape) throw refuse(fmt::format("it has no array {}", span.name));
    if (*shape == span.shape) continue;
    throw refuse(
        fmt::format("its array {} has shape {} instead of {}", span.name, shape->to_string(), span.shape.to_string()));
  }
  if (count != spans.size()) throw refuse(fmt::format("it has {} arrays instead of {}", count, spans.size()));
}

void require_f32(const format::ArrayInfo& info, const std::string& path) {
  if (info.dtype == DType::f32) return;
  throw Error(ErrorCode::invalid_file,
              fmt::format("{} does not hold a training state: its array {} is of type {} instead of f32", path,
                          info.name, name(info.dtype)));
}

// A savepoint is whole or damaged: HDF5's own structures are checked, too, although nothing here reads them.
format::ArrayFile open_savepoint(FileSystem& files, const std::string& path) {
  format::ArrayFile file = format::ArrayFile::open(files, path);
  file.verify_structure();
  for (const format::ArrayInfo& info : file.arrays()) require_f32(info, path);
  return file;
}

// Valid while the snapshot is.
std::vector<format::ArrayView> views_of(const Snapshot& snapshot) {
  std::vector<format::ArrayView> views;
  for (const SnapshotArray& array : snapshot.arrays) {
    views.push_back({array.name, DType::f32, unsigned_extents(array.shape), std::as_bytes(array.values)});
  }
  return views;
}

format::Compression to_format(SavepointCompression compression) {
  HOLDFAST_ASSERT(compression != SavepointCompression::automatic);
  if (compression == SavepointCompression::fast) return format::Compression::fast;
  return compression == SavepointCompression::none ? format::Compression::none : format::Compression::zstd;
}

}  // namespace

// Not initialized: zeros would be written over at once, and cost the time of a copy.
std::span<float> Snapshot::add(std::string name, const Shape& shape) {
  const auto count = static_cast<std::size_t>(shape.element_count());
  memory.push_back(std::make_unique_for_overwrite<float[]>(count));
  const std::span<float> values(memory.back().get(), count);
  arrays.push_back({std::move(name), shape, values});
  return values;
}

// In the order of the Trainable, which is also that of digests.
Snapshot take_snapshot(const TrainState& state, StateArrays arrays) {
  Snapshot snapshot{.state = state, .arrays = {}};
  for (const StateSpan& span : arrays.spans()) {
    arrays.memory().copy_to_host(span.values, snapshot.add(span.name, span.shape));
  }
  return snapshot;
}

Snapshot send_snapshot(const TrainState& state, StateArrays arrays, const std::shared_ptr<HeldArrays>& held) {
  Snapshot snapshot{.state = state, .arrays = {}};
  std::vector<std::span<float>> copies;
  for (const StateSpan& span : arrays.spans()) copies.push_back(snapshot.add(span.name, span.shape));
  held->begin_copy(copies);
  // The lambda keeps the held copy until it has arrived, and the arrays move with the snapshot.
  snapshot.arrive = [held, copies, step = state.step] {
    held->finish_copy();
    DigestBuilder arrived;
    for (const std::span<float> array : copies) arrived.update(std::as_bytes(array));
    require_arrived(step, held->digest(), arrived.finish());
  };
  return snapshot;
}

void require_arrived(std::int64_t step, const Digest& held, const Digest& arrived) {
  if (arrived == held) return;
  throw Error(ErrorCode::diverged,
              fmt::format("the state of step {} had the digest {} on the device, and {} after it was copied to the "
                          "host; the device, the host's memory or the link between them is defective",
                          step, held.hex(), arrived.hex()));
}

Snapshot view_of(const TrainState& state, StateArrays arrays) {
  // The host can view only its own memory.
  if (!arrays.memory().is_host()) return take_snapshot(state, arrays);
  Snapshot snapshot{.state = state, .arrays = {}};
  for (const StateSpan& span : arrays.spans()) snapshot.arrays.push_back({span.name, span.shape, span.values});
  return snapshot;
}

// The arrays follow the header without gaps.
std::size_t StateImage::size_bytes() const {
  std::size_t bytes = header.size();
  for (const std::span<const float> array : arrays) bytes += array.size_bytes();
  return bytes;
}

// The image is never in one piece: it goes into shared memory in pieces, and a device's arrays would need another copy.
void StateImage::copy(std::size_t begin, std::span<std::byte> piece) const {
  if (begin < header.size()) {
    const std::size_t bytes = std::min(piece.size(), header.size() - begin);
    std::memcpy(piece.data(), header.data() + begin, bytes);
    piece = piece.subspan(bytes);
    begin += bytes;
  }
  begin -= header.size();
  for (const std::span<const float> array : arrays) {
    if (piece.empty()) return;
    if (begin >= array.size_bytes()) {
      begin -= array.size_bytes();
      continue;
    }
    const std::size_t bytes = std::min(piece.size(), array.size_bytes() - begin);
    // Callers copy in whole floats, since a device copies nothing smaller.
    HOLDFAST_ASSERT(begin % sizeof(float) == 0 && bytes % sizeof(float) == 0);
    memory.copy_to_host(array.subspan(begin / sizeof(float), bytes / sizeof(float)),
                        {reinterpret_cast<float*>(piece.data()), bytes / sizeof(float)});
    piece = piece.subspan(bytes);
    begin = 0;
  }
}

// The header: the length of the JSON in eight bytes, the JSON, and blanks up to a multiple of eight.
StateImage image_of(const TrainState& state, StateArrays arrays) {
  StateImage image{.header = {}, .arrays = {}, .memory = arrays.memory()};
  nlohmann::json list = nlohmann::json::array();
  for (const StateSpan& span : arrays.spans()) {
    list.push_back({{"name", span.name}, {"shape", span.shape.extents()}});
    image.arrays.push_back(span.values);
  }
  // Blanks align the first array to eight bytes; JSON ignores them.
  const std::string text = nlohmann::json{{"state", to_json(state)}, {"arrays", list}}.dump();
  const std::uint64_t bytes = text.size();
  image.header.assign(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  image.header += text + std::string((8 - text.size() % 8) % 8, ' ');
  return image;
}

// No tensor has negative extents, or more elements than 63 bits can count.
static bool are_extents(std::span<const std::int64_t> extents) {
  std::int64_t count = 1;
  return std::ranges::all_of(
      extents, [&](std::int64_t extent) { return extent >= 0 && !__builtin_mul_overflow(count, extent, &count); });
}

Snapshot view_of_image(std::span<const std::byte> image) {
  // The arrays are viewed as floats where they lie.
  HOLDFAST_ASSERT(reinterpret_cast<std::uintptr_t>(image.data()) % alignof(float) == 0);
  const auto refuse = [](const std::string& why) {
    return Error(ErrorCode::invalid_file, fmt::format("a snapshot in memory cannot be read: {}", why));
  };
  std::uint64_t bytes = 0;
  if (image.size() < sizeof bytes) throw refuse("it is too short");
  std::memcpy(&bytes, image.data(), sizeof bytes);
  std::span<const std::byte> rest = image.subspan(sizeof bytes);
  // Two comparisons: rounding up a hostile length could overflow.
  if (bytes > rest.size() || (bytes + 7) / 8 * 8 > rest.size()) throw refuse("its header is cut off");
  Snapshot snapshot;
  try {
    const std::string_view text(reinterpret_cast<const char*>(rest.data()), bytes);
    const nlohmann::json header = nlohmann::json::parse(text);
    snapshot.state = train_state_from_json(header.at("state").get<std::string>(), "a snapshot in memory");
    rest = rest.subspan((bytes + 7) / 8 * 8);
    for (const nlohmann::json& entry : header.at("arrays")) {
      const auto extents = entry.at("shape").get<std::vector<std::int64_t>>();
      if (!are_extents(extents)) throw refuse("no array has such a shape as one of its own");
      const Shape shape(extents);
      const auto count = static_cast<std::size_t>(shape.element_count());
      if (count > rest.size() / sizeof(float)) throw refuse("its arrays are cut off");
      const std::span<const float> values(reinterpret_cast<const float*>(rest.data()), count);
      snapshot.arrays.push_back({entry.at("name").get<std::string>(), shape, values});
      rest = rest.subspan(values.size_bytes());
    }
  } catch (const nlohmann::json::exception&) {
    throw refuse("its header is not the JSON of a snapshot");
  }
  return snapshot;
}

void restore_arrays(const Snapshot& snapshot, StateArrays arrays, const std::string& origin) {
  const std::vector<StateSpan> spans = arrays.spans();
  // All is compared before the first array changes.
  require_same_arrays(spans, origin, snapshot.arrays.size(), [&](const std::string& name) {
    const SnapshotArray* const array = find(snapshot, name);
    return array == nullptr ? std::nullopt : std::make_optional(array->shape);
  });
  for (const StateSpan& span : spans) {
    const SnapshotArray* array = find(snapshot, span.name);
    arrays.memory().copy_from_host(array->values, span.values);
  }
}

// The arrays of the snapshot that belong to the spans of parameters and buffers, in their order.
static std::vector<std::span<const float>> weights_in(const Snapshot& snapshot, std::span<const StateSpan> weights,
                                                      const std::string& origin) {
  std::vector<std::span<const float>> found;
  for (const StateSpan& span : weights) {
    const SnapshotArray* const array = find(snapshot, span.name);
    if (array != nullptr && array->shape == span.shape) {
      found.push_back(array->values);
      continue;
    }
    const std::string has = array == nullptr ? "has no such array" : fmt::format("has {}", array->shape.to_string());
    throw Error(ErrorCode::incompatible,
                fmt::format("the weights in {0} do not fit: the model has {1} of shape {2}, and {0} {3}; load the "
                            "weights of a model with the same layers",
                            origin, span.name, span.shape.to_string(), has));
  }
  return found;
}

// The memory stays until the snapshot goes: a device may still copy to it.
Snapshot weights_alone(Snapshot snapshot, Trainable& trainable) {
  const std::vector<StateSpan> weights = weights_of(trainable);
  std::erase_if(snapshot.arrays, [&](const SnapshotArray& array) {
    return std::none_of(weights.begin(), weights.end(),
                        [&](const StateSpan& weight) { return weight.name == array.name; });
  });
  snapshot.is_of_weights_alone = true;
  return snapshot;
}

void restore_weights(const Snapshot& snapshot, Trainable& trainable, const std::string& origin) {
  const std::vector<StateSpan> weights = weights_of(trainable);
  // All is compared before the first array changes.
  const std::vector<std::span<const float>> found = weights_in(snapshot, weights, origin);
  for (std::size_t i = 0; i < weights.size(); ++i) trainable.memory().copy_from_host(found[i], weights[i].values);
}

void use_averages(Snapshot& snapshot, const std::string& origin) {
  const std::string prefix = fmt::format("optimizer/{}/", kAverageSlot);
  bool has_averages = false;
  for (SnapshotArray& array : snapshot.arrays) {
    if (!array.name.starts_with("model/")) continue;
    const std::string wanted = prefix + array.name.substr(std::string_view("model/").size());
    const auto average = std::ranges::find(snapshot.arrays, wanted, &SnapshotArray::name);
    if (average == snapshot.arrays.end()) continue;
    array.values = average->values;
    has_averages = true;
  }
  if (has_averages) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} has no moving averages of its weights: it is of a training without .use_ema = true, or "
                          "it holds one set of weights alone; read that with Weights::trained",
                          origin));
}

// The digest is that of the file's numbers in the order of the model, so the ranks can compare what they have read
// before they take it.
Digest digest_of_weights(const Snapshot& snapshot, Trainable& trainable, const std::string& origin) {
  return host_memory().digest_of(weights_in(snapshot, weights_of(trainable), origin));
}

std::uint64_t size_bytes(const Snapshot& snapshot) {
  std::uint64_t bytes = 0;
  for (const SnapshotArray& array : snapshot.arrays) bytes += array.values.size_bytes();
  return bytes;
}

Digest write_savepoint(FileSystem& files, const std::string& path, const Snapshot& snapshot,
                       const SavepointStorage& storage) {
  const std::string metadata = snapshot.is_of_weights_alone ? to_weights_json(snapshot.state) : to_json(snapshot.state);
  return format::write_array_file(files, path, metadata, views_of(snapshot),
                                  {.compression = to_format(storage.compression),
                                   .zstd_level = storage.zstd_level,
                                   .threads = storage.threads,
                                   .progress = storage.progress});
}

// Only this file knows the types of `format`, so figures are copied here.
CompressionFigures measure_compression(FileSystem& files, const std::string& folder, const Snapshot& snapshot,
                                       int threads) {
  const format::CompressionTrial trial =
      format::measure_compression(files, folder, views_of(snapshot), {.threads = threads});
  const bool is_plain_quicker = format::choose(trial) == format::Compression::none;
  return {.quicker = is_plain_quicker ? SavepointCompression::none : SavepointCompression::fast,
          .sample_bytes = trial.sample_bytes,
          .fast_seconds = trial.fast_seconds,
          .none_seconds = trial.none_seconds,
          .fast_file_bytes = trial.fast_file_bytes,
          .none_file_bytes = trial.none_file_bytes};
}

Snapshot read_savepoint(FileSystem& files, const std::string& path) {
  const format::ArrayFile file = open_savepoint(files, path);
  Snapshot snapshot{.state = train_state_from_json(file.metadata(), path), .arrays = {}};
  std::vector<format::ArrayFile::Target> targets;
  for (const format::ArrayInfo& info : file.arrays()) {
    targets.push_back({info.name, std::as_writable_bytes(snapshot.add(info.name, shape_of(info)))});
  }
  file.read_into(targets);
  return snapshot;
}

// What a file of weights says of them, or one that was converted from a Keras model; nothing for any other file.
struct WeightsMetadata {
  std::string graph;
  bool is_of_keras = false;
  bool has_model() const { return graph != "null"; }
};
static std::optional<WeightsMetadata> metadata_of_weights(const std::string& metadata) {
  // train_state_from_json() refuses such a text with a sentence.
  if (is_deep_json(metadata)) return std::nullopt;
  const nlohmann::json object = nlohmann::json::parse(metadata, nullptr, false);
  const nlohmann::json kind = object.is_object() ? object.value("kind", nlohmann::json()) : nlohmann::json();
  if (kind != "keras" && kind != "weights") return std::nullopt;
  const nlohmann::json graph = object.value("graph", nlohmann::json());
  return WeightsMetadata{.graph = graph.is_object() ? graph.dump() : "null", .is_of_keras = kind == "keras"};
}

static Error without_model(const std::string& path) {
  return {
      ErrorCode::invalid_file,
      fmt::format("{} holds the arrays of a Keras model, but no model of Holdfast: it has a layer or an option that "
                  "Holdfast lacks, or its file had weights alone. `holdfast convert` says which; change that in "
                  "Keras, and convert the .keras file again",
                  path)};
}

std::string read_metadata(FileSystem& files, const std::string& path) {
  return std::string(format::ArrayFile::open(files, path).metadata());
}

Snapshot read_model(FileSystem& files, const std::string& path) {
  const format::ArrayFile file = format::ArrayFile::open(files, path);
  Snapshot snapshot{.state = {}, .arrays = {}};
  const std::optional<WeightsMetadata> of_weights = metadata_of_weights(std::string(file.metadata()));
  if (!of_weights) return read_savepoint(files, path);
  if (of_weights->is_of_keras && !of_weights->has_model()) throw without_model(path);
  snapshot.state.graph = of_weights->graph;
  file.verify_structure();
  std::vector<format::ArrayFile::Target> targets;
  for (const format::ArrayInfo& info : file.arrays()) {
    // Keras's optimizers count in integers, and nothing here needs them.
    if (of_weights->is_of_keras && !info.name.starts_with("model/")) continue;
    // Its layers count and keep the states of generators in integers, which no layer here has.
    const bool is_of_floats =
        info.dtype == DType::f64 || info.dtype == DType::f32 || info.dtype == DType::f16 || info.dtype == DType::bf16;
    if (!is_of_floats) continue;
    require_f32(info, path);
    targets.push_back({info.name, std::as_writable_bytes(snapshot.add(info.name, shape_of(info)))});
  }
  file.read_into(targets);
  return snapshot;
}

TrainState load_savepoint(FileSystem& files, const std::string& path, StateArrays arrays,
                          const std::function<void(const TrainState&)>& accepts) {
  const format::ArrayFile file = open_savepoint(files, path);
  TrainState state = train_state_from_json(file.metadata(), path);
  // Choices come first: other options explain other arrays, and give the better sentence. The arrays may be laid out
  // for this state there.
  accepts(state);
  const std::vector<StateSpan> spans = arrays.spans();
  require_same_arrays(spans, path, file.arrays().size(), [&](const std::string& name) {
    const format::ArrayInfo* const info = file.find(name);
    return info == nullptr ? std::nullopt : std::make_optional(shape_of(*info));
  });
  MemorySpace& memory = arrays.memory();
  std::vector<format::ArrayFile::Target> targets;
  // A piece is checked after it was read, so it is not read into the model itself.
  Snapshot on_host;
  for (const StateSpan& span : spans) {
    targets.push_back({span.name, std::as_writable_bytes(on_host.add(span.name, span.shape))});
  }
  std::mutex turn;  // a device's memory space is for one thread at a time
  file.read_into(targets, [&](const format::ArrayFile::Arrival& arrival) {
    const std::size_t begin = arrival.begin / sizeof(float);
    const std::size_t floats = arrival.bytes / sizeof(float);
    // The host copies on all threads at once; only a device needs turns.
    std::unique_lock lock(turn, std::defer_lock);
    if (!memory.is_host()) lock.lock();
    memory.copy_from_host(on_host.arrays[arrival.target].values.subspan(begin, floats),
                          spans[arrival.target].values.subspan(begin, floats));
  });
  return state;
}

}  // namespace holdfast
