// A window is computed from the samples that it begins with and ends with whenever it is loaded. Overlapping windows
// thus load a sample several times, and nothing is kept between loads that a savepoint would have to hold.
// See docs/decisions/stages.md.

#include "data/stages/window_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

std::int64_t number_of_windows(std::int64_t samples, std::int64_t count, const WindowOptions& options) {
  if (count < 1 || options.stride < 1 || options.shift < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("window() needs a count, stride and shift of at least 1, not {}, {} and {}", count,
                            options.stride, options.shift));
  }
  // The distance from the first sample of a window to the last one.
  std::int64_t reach = 0;
  // Written with the distance and not with the length, which could overflow by one more.
  if (__builtin_mul_overflow(count - 1, options.stride, &reach) || reach >= samples) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("window() of {} samples at a stride of {} does not fit into {} samples", count,
                            options.stride, samples));
  }
  return (samples - 1 - reach) / options.shift + 1;
}

RowLayout with_leading_axis(const RowLayout& layout, std::int64_t count) {
  std::vector<ArraySpec> arrays(layout.arrays().begin(), layout.arrays().end());
  for (ArraySpec& array : arrays) array.shape = array.shape.with_batch(count);
  return RowLayout(std::move(arrays));
}

SampleLayouts layouts_of_windows(const SampleLayouts& before, std::int64_t count, WindowTargets targets) {
  return {.inputs = with_leading_axis(before.inputs, count),
          .targets = targets == WindowTargets::all ? with_leading_axis(before.targets, count) : before.targets,
          .has_weights = before.has_weights,
          .has_weights_of_targets = before.has_weights_of_targets};
}

// Writes the arrays of one sample to their place `index` in those of a window.
void write_to_window(const RowLayout& from_layout, std::span<float> from, const RowLayout& to_layout,
                     std::span<float> to, std::int64_t index) {
  for (std::size_t array = 0; array < from_layout.arrays().size(); ++array) {
    const std::span<std::byte> bytes = ArrayRow(from_layout, from).bytes(array);
    std::ranges::copy(bytes,
                      ArrayRow(to_layout, to).bytes(array).begin() + index * static_cast<std::ptrdiff_t>(bytes.size()));
  }
}

}  // namespace

WindowStage::WindowStage(std::shared_ptr<const Stage> before, std::int64_t count, const WindowOptions& options)
    // A wrong count must not make a shape before number_of_windows() refuses it: arguments are computed in any order.
    : ChainedStage(before, layouts_of_windows(before->layouts(), std::max<std::int64_t>(1, count), options.targets),
                   number_of_windows(before->size(), count, options)),
      count_(count),
      options_(options) {}

void WindowStage::load(std::uint64_t seed, std::int64_t epoch, std::int64_t position, Sample destination) const {
  const SampleLayouts& single = before().layouts();
  std::vector<float> inputs(single.inputs.words());
  std::vector<float> targets(single.targets.words());
  // Words that belong to no element must not hold what another sample left there: samples are compared by digest.
  std::ranges::fill(destination.features, 0.0F);
  std::ranges::fill(destination.targets, 0.0F);
  for (std::int64_t index = 0; index < count_; ++index) {
    before().load(seed, epoch, position * options_.shift + index * options_.stride,
                  {.features = inputs, .targets = targets});
    write_to_window(single.inputs, inputs, layouts().inputs, destination.features, index);
    if (options_.targets == WindowTargets::all) {
      write_to_window(single.targets, targets, layouts().targets, destination.targets, index);
    }
  }
  // The loop ends with the last sample of the window, so `targets` holds its row.
  if (options_.targets == WindowTargets::last) std::ranges::copy(targets, destination.targets.begin());
}

void WindowStage::expect(std::uint64_t seed, std::int64_t epoch, std::int64_t position) const {
  for (std::int64_t index = 0; index < count_; ++index) {
    before().expect(seed, epoch, position * options_.shift + index * options_.stride);
  }
}

PositionSet WindowStage::reach(const PositionSet& positions, std::size_t) const {
  std::vector<PositionSet::Range> reached;
  const std::int64_t length = (count_ - 1) * options_.stride + 1;
  for (const PositionSet::Range& range : positions.ranges()) {
    if (options_.shift == 1) {
      for (std::int64_t index = 0; index < count_; ++index) {
        reached.push_back({range.begin + index * options_.stride, range.end + index * options_.stride});
      }
    } else if (options_.shift <= length) {
      // Windows overlap. With a stride, some samples between those of a window may be counted that none of them has.
      reached.push_back({range.begin * options_.shift, (range.end - 1) * options_.shift + length});
    } else {
      for (std::int64_t window = range.begin; window < range.end; ++window) {
        reached.push_back({window * options_.shift, window * options_.shift + length});
      }
    }
  }
  return PositionSet(std::move(reached));
}

void WindowStage::describe(nlohmann::ordered_json& stages) const {
  before().describe(stages);
  stages.push_back({{"kind", "window"},
                    {"count", count_},
                    {"stride", options_.stride},
                    {"shift", options_.shift},
                    {"targets", options_.targets == WindowTargets::all ? "all" : "last"}});
}

}  // namespace holdfast
