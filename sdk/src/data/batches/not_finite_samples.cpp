// A batch is a list of rows of words. Only words of f32 and bf16 are looked at, since the bits of an integer may be
// those of a NaN.

#include "data/batches/not_finite_samples.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "data/stages/stage.h"
#include "holdfast/core/row_layout.h"

namespace holdfast {
namespace {

// What a sample has in place of a finite number.
struct Found {
  std::int64_t sample = 0;  // of the slice
  std::size_t array = 0;    // of the layout
  float value = 0;
};

std::optional<float> first_not_finite(std::span<const std::byte> elements, DType dtype) {
  if (dtype != DType::f32 && dtype != DType::bf16) return std::nullopt;
  for (std::size_t i = 0; i < elements.size(); i += size_bytes(dtype)) {
    // A bf16 is the upper half of an f32.
    std::uint32_t bits = 0;
    std::memcpy(&bits, elements.data() + i, size_bytes(dtype));
    const auto value = std::bit_cast<float>(dtype == DType::bf16 ? bits << 16U : bits);
    if (!std::isfinite(value)) return value;
  }
  return std::nullopt;
}

std::optional<Found> find(std::span<const float> rows, std::int64_t samples, const RowLayout& layout) {
  // Rows of another size do not have this layout, so nothing can be said about them.
  if (samples == 0 || rows.size() != static_cast<std::size_t>(samples) * layout.words()) return std::nullopt;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const auto row = rows.subspan(static_cast<std::size_t>(sample) * layout.words(), layout.words());
    for (std::size_t array = 0; array < layout.arrays().size(); ++array) {
      const ArraySpec& spec = layout.arrays()[array];
      const auto bytes = std::as_bytes(row.subspan(layout.first_word(array))).first(spec.bytes());
      if (const auto value = first_not_finite(bytes, spec.dtype)) return Found{sample, array, *value};
    }
  }
  return std::nullopt;
}

// "its input", "its input \"x\"", "its input 1 (from 0)"; the array of a data set without names has none.
std::string name_of(const RowLayout& layout, std::size_t array, const char* what) {
  const std::string& name = layout.arrays()[array].name;
  if (!name.empty()) return fmt::format("its {} \"{}\"", what, name);
  return layout.arrays().size() == 1 ? fmt::format("its {}", what) : fmt::format("its {} {} (from 0)", what, array);
}

}  // namespace

std::string sample_not_finite(const Batch& batch, const Dataset& data, std::uint64_t seed, MemorySpace& memory) {
  std::vector<float> copy;
  const auto on_host = [&](std::span<const float> rows) -> std::span<const float> {
    if (!batch.is_on_device) return rows;
    copy.resize(rows.size());
    memory.copy_to_host(rows, copy);
    return copy;
  };
  const SampleLayouts& layouts = data.last_stage()->layouts();
  for (const ShardSlice& slice : batch.shards) {
    const RowLayout* layout = &layouts.inputs;
    const char* what = "input";
    std::optional<Found> found = find(on_host(slice.features), slice.samples, *layout);
    if (!found) {
      layout = &layouts.targets;
      what = "target";
      found = find(on_host(slice.targets), slice.samples, *layout);
    }
    if (!found) continue;
    // Positions count the samples of all replicas, and a slice begins within a batch of them.
    const std::int64_t position = batch.index * data.batch_size() + slice.first_sample + found->sample;
    // The sign of a NaN is chance.
    return fmt::format(
        "{} of the data set has {} in {}", name_of_sample(*data.last_stage(), seed, batch.epoch, position),
        std::isnan(found->value) ? "nan" : fmt::format("{}", found->value), name_of(*layout, found->array, what));
  }
  return "";
}

}  // namespace holdfast
