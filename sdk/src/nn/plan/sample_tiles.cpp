// A layer normalization is six operations. One after the other over the whole shard, they read and write memory ten
// times; sample by sample, four times. Only operations whose bits depend on the sample alone may be grouped: those of
// oneDNN choose their kernels by the number of samples. docs/decisions/plans.md

#include "nn/plan/sample_tiles.h"

#include <algorithm>
#include <set>

namespace holdfast {
namespace {

// Smaller groups lie in the caches anyway.
constexpr std::size_t kLeastCaches = 4;

// Weights and other arrays without samples do not count: no tile makes them smaller.
std::size_t bytes_of_sample(const ValueSpec& spec) {
  return spec.has_samples ? static_cast<std::size_t>(spec.shape.element_count()) * size_bytes(spec.dtype) : 0;
}

class TileFinder {
 public:
  TileFinder(const Graph& graph, std::int64_t samples, std::size_t cache_bytes)
      : graph_(graph), samples_(samples), cache_bytes_(cache_bytes) {}

  SampleTiles find() {
    result_.group_of.assign(graph_.operations.size(), kNoGroup);
    result_.is_local.assign(graph_.arrays.size(), false);
    if (cache_bytes_ == 0) return std::move(result_);
    for (std::size_t first = 0; first < graph_.operations.size();) {
      const std::size_t end = end_of_run(first);
      add_group(first, end);
      first = std::max(end, first + 1);
    }
    find_local_arrays();
    return std::move(result_);
  }

 private:
  bool may_join(std::size_t index) const {
    const GraphOperation& operation = graph_.operations[index];
    const auto has_samples = [&](ArrayId array) { return array == kNoArray || graph_.spec(array).has_samples; };
    return (operation.operation->is_view() || operation.operation->is_sample_wise()) &&
           std::all_of(operation.outputs.begin(), operation.outputs.end(), has_samples);
  }

  // After the last operation that can run with `first`. The passes run apart, so no group is in both.
  std::size_t end_of_run(std::size_t first) const {
    const std::size_t limit = first < graph_.first_backward ? graph_.first_backward : graph_.operations.size();
    std::size_t end = first;
    while (end < limit && may_join(end)) ++end;
    return end;
  }

  void add_group(std::size_t first, std::size_t end) {
    std::size_t kernels = 0;
    // Views share the memory of their input, so memories are counted and not arrays.
    std::set<ArrayId> memories;
    for (std::size_t index = first; index < end; ++index) {
      const GraphOperation& operation = graph_.operations[index];
      if (!operation.operation->is_view()) ++kernels;
      for (const std::vector<ArrayId>* const arrays : {&operation.inputs, &operation.outputs}) {
        for (const ArrayId array : *arrays) {
          if (array != kNoArray) memories.insert(graph_.memory_of(array));
        }
      }
    }
    std::size_t bytes = 0;
    for (const ArrayId memory : memories) bytes += bytes_of_sample(graph_.spec(memory));
    // One operation alone would only run in more pieces.
    if (kernels < 2 || bytes == 0 || bytes * static_cast<std::size_t>(samples_) < kLeastCaches * cache_bytes_) return;
    const auto tile = static_cast<std::int64_t>(std::max<std::size_t>(cache_bytes_ / bytes, 1));
    if (tile >= samples_) return;
    std::fill(result_.group_of.begin() + static_cast<std::ptrdiff_t>(first),
              result_.group_of.begin() + static_cast<std::ptrdiff_t>(end), result_.groups.size());
    result_.groups.push_back({.first = first, .end = end, .tile = tile});
  }

  void find_local_arrays() {
    // The group that all uses of a memory are in, as far as they are known.
    std::vector<std::size_t> group(graph_.arrays.size(), kNoGroup);
    std::vector<bool> is_local(graph_.arrays.size(), false);
    const auto use = [&](ArrayId array, std::size_t user) {
      if (array == kNoArray) return;
      const ArrayId memory = graph_.memory_of(array);
      if (user != group[memory]) is_local[memory] = false;
    };
    for (std::size_t index = 0; index < graph_.operations.size(); ++index) {
      const GraphOperation& operation = graph_.operations[index];
      const std::size_t own = result_.group_of[index];
      for (const ArrayId input : operation.inputs) use(input, own);
      if (operation.operation->is_view() || own == kNoGroup) continue;
      for (const ArrayId output : operation.outputs) {
        if (output == kNoArray) continue;
        group[output] = own;
        is_local[output] = true;
      }
    }
    // Results are read by the caller.
    for (const ArrayId output : graph_.outputs) use(output, kNoGroup);
    for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
      result_.is_local[array] = is_local[graph_.memory_of(array)];
    }
  }

  const Graph& graph_;
  const std::int64_t samples_;
  const std::size_t cache_bytes_;
  SampleTiles result_;
};

}  // namespace

std::size_t SampleTiles::first_of(std::size_t operation) const {
  return operation < group_of.size() && group_of[operation] != kNoGroup ? groups[group_of[operation]].first : operation;
}

std::size_t SampleTiles::last_of(std::size_t operation) const {
  return operation < group_of.size() && group_of[operation] != kNoGroup ? groups[group_of[operation]].end - 1
                                                                        : operation;
}

SampleTiles find_sample_tiles(const Graph& graph, std::int64_t samples, std::size_t cache_bytes) {
  return TileFinder(graph, samples, cache_bytes).find();
}

}  // namespace holdfast
