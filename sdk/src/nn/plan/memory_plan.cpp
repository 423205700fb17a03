// Arrays are placed by decreasing size, each at the lowest offset where it overlaps no array that lives at the same
// time. This is the usual heuristic for the assignment of offsets. It stays within a few percent of the largest sum of
// sizes that live at once. Sizes of models are known before they run, so nothing is allocated during a pass.
// docs/decisions/plans.md

#include "nn/plan/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "holdfast/base/error.h"

namespace holdfast {

namespace {

// 64 bytes are a cache line, and the widest vector of x86. So no two arrays share a cache line.
constexpr std::size_t kAlignmentBytes = 64;

// Memory of the arena that one array has, or several one after another: views, and outputs that overwrite inputs.
struct Block {
  std::size_t bytes = 0;
  std::size_t first = 0;  // the operation that makes it
  std::size_t last = 0;   // the last one that needs it
  std::size_t offset = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, const MemoryOptions& options, const SampleTiles& tiles)
      : graph_(graph), options_(options), tiles_(tiles) {}
  MemoryPlan plan();

 private:
  static constexpr std::size_t kNoBlock = std::numeric_limits<std::size_t>::max();

  std::size_t bytes(ArrayId array) const;
  void place_callers_arrays();
  void place_results();
  void find_last_uses();
  void make_blocks();
  std::size_t block_for(std::size_t operation, std::size_t output);
  bool is_local(ArrayId array) const { return !tiles_.is_local.empty() && tiles_.is_local[array]; }
  std::int64_t samples_of(ArrayId array) const;
  void place_blocks();

  const Graph& graph_;
  const MemoryOptions& options_;
  const SampleTiles& tiles_;
  std::vector<ArrayId> root_;          // the array whose memory a view is
  std::vector<std::size_t> last_use_;  // by root
  std::vector<bool> is_fixed_;         // by root: lies in memory of the caller
  std::vector<std::size_t> block_of_;  // by root
  std::vector<Block> blocks_;
  MemoryPlan result_;
};

std::int64_t Planner::samples_of(ArrayId array) const {
  if (!graph_.spec(array).has_samples) return 1;
  return is_local(array) ? tiles_.groups[tiles_.group_of[graph_.arrays[graph_.memory_of(array)].index]].tile
                         : options_.samples;
}

std::size_t Planner::bytes(ArrayId array) const {
  const ValueSpec& spec = graph_.spec(array);
  const std::int64_t elements = samples_of(array) * spec.shape.element_count();
  // Each size is rounded up, so that arrays which follow one another stay aligned.
  const std::size_t bytes = static_cast<std::size_t>(elements) * size_bytes(spec.dtype);
  return (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

void Planner::place_callers_arrays() {
  root_.resize(graph_.arrays.size());
  for (ArrayId array = 0; array < root_.size(); ++array) root_[array] = graph_.memory_of(array);
  is_fixed_.assign(graph_.arrays.size(), false);
  result_.places.resize(graph_.arrays.size());
  // ModelProgram::bases() lists the addresses in this order: the inputs of the model first, then the gradients of its
  // outputs.
  const auto at = [](Base base, std::size_t index, std::size_t floats) {
    return ArrayPlace{static_cast<std::size_t>(base) + index, floats * sizeof(float)};
  };
  for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
    const GraphArray& one = graph_.arrays[array];
    is_fixed_[array] = one.source != GraphArray::Source::operation;
    switch (one.source) {
      case GraphArray::Source::input:
        result_.places[array] = at(Base::first_external, one.index, 0);
        break;
      case GraphArray::Source::output_gradient:
        result_.places[array] = at(Base::first_external, options_.inputs + one.index, 0);
        break;
      case GraphArray::Source::parameter:
        result_.places[array] = at(Base::parameters, 0, options_.parameters.entries()[one.index].offset);
        break;
      case GraphArray::Source::buffer:
        result_.places[array] = at(Base::buffers, 0, options_.buffers.entries()[one.index].offset);
        break;
      // make_blocks() finds a place for these arrays.
      case GraphArray::Source::operation:
        break;
    }
  }
}

// The gradients of parameters and the statistics of the batch are written to the caller's arrays at once.
void Planner::place_results() {
  const auto place = [&](ArrayId array, Base base, std::size_t floats) {
    const ArrayId root = root_[array];
    // differentiate() copies a gradient that shares its memory with another one, so that each result has memory of its
    // own.
    HOLDFAST_ASSERT(!is_fixed_[root]);
    is_fixed_[root] = true;
    result_.places[root] = {static_cast<std::size_t>(base), floats * sizeof(float)};
  };
  for (std::size_t entry = 0; entry < graph_.parameter_gradients.size(); ++entry) {
    const ArrayId gradient = graph_.parameter_gradients[entry];
    if (gradient != kNoArray) place(gradient, Base::gradients, options_.parameters.entries()[entry].offset);
  }
  for (const BufferUpdate& update : graph_.updates) place(update.sums, Base::contributions, update.offset);
}

void Planner::find_last_uses() {
  last_use_.assign(graph_.arrays.size(), 0);
  for (std::size_t operation = 0; operation < graph_.operations.size(); ++operation) {
    for (const ArrayId input : graph_.operations[operation].inputs) {
      // Operations come in order, so the last assignment is the last use. A use of a view is a use of its root.
      if (input != kNoArray) last_use_[root_[input]] = operation;
    }
    for (const ArrayId output : graph_.operations[operation].outputs) {
      // An output that nothing reads still needs memory while its operation writes it.
      last_use_[root_[output]] = std::max(last_use_[root_[output]], operation);
    }
  }
  // The caller reads the outputs of the model until the next forward pass.
  for (const ArrayId output : graph_.outputs) last_use_[root_[output]] = graph_.operations.size();
}

std::size_t Planner::block_for(std::size_t index, std::size_t output) {
  const GraphOperation& operation = graph_.operations[index];
  const ArrayId array = operation.outputs[output];
  const std::optional<std::size_t> input = operation.operation->overwritable_input();
  // The output takes over the block of an input that nothing else needs. Kernels allow it where element i of the input
  // is read for element i of the output alone.
  if (options_.shares_memory && output == 0 && input && operation.inputs[*input] != kNoArray) {
    const ArrayId overwritten = root_[operation.inputs[*input]];
    const std::size_t block = block_of_[overwritten];
    // Sizes are rounded up, so they do not tell an input that is repeated along an axis from one that is not.
    const bool has_each_element = graph_.spec(operation.inputs[*input]) == graph_.spec(array) &&
                                  // A tile of one array would lie over other samples of the other.
                                  is_local(overwritten) == is_local(array);
    if (block != kNoBlock && has_each_element && last_use_[overwritten] == index &&
        bytes(overwritten) == bytes(array)) {
      blocks_[block].last = std::max(blocks_[block].last, tiles_.last_of(last_use_[array]));
      return block;
    }
  }
  // Where memory is not shared, each block lives from the first operation to the last, so that no two overlap.
  const std::size_t last = options_.shares_memory ? tiles_.last_of(last_use_[array]) : graph_.operations.size();
  blocks_.push_back(
      {.bytes = bytes(array), .first = options_.shares_memory ? tiles_.first_of(index) : 0, .last = last});
  return blocks_.size() - 1;
}

void Planner::make_blocks() {
  block_of_.assign(graph_.arrays.size(), kNoBlock);
  for (std::size_t operation = 0; operation < graph_.operations.size(); ++operation) {
    // A view lies in the block of its root.
    if (graph_.operations[operation].operation->is_view()) continue;
    for (std::size_t output = 0; output < graph_.operations[operation].outputs.size(); ++output) {
      const ArrayId array = graph_.operations[operation].outputs[output];
      if (!is_fixed_[array]) block_of_[array] = block_for(operation, output);
    }
  }
}

void Planner::place_blocks() {
  // Equal sizes stay in the order of operations. So places are the same with each standard library, whose sorts differ.
  std::vector<std::size_t> by_size(blocks_.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](std::size_t a, std::size_t b) { return blocks_[a].bytes > blocks_[b].bytes; });
  std::vector<const Block*> placed;  // by offset
  for (const std::size_t index : by_size) {
    Block& block = blocks_[index];
    for (const Block* const other : placed) {
      // An operation reads its inputs while it writes its outputs, so the first and the last operation both count.
      const bool live_together = other->first <= block.last && block.first <= other->last;
      if (!live_together) continue;
      // Blocks are sorted by offset, so the first gap that is wide enough is the lowest one.
      if (block.offset + block.bytes <= other->offset) break;
      block.offset = std::max(block.offset, other->offset + other->bytes);
    }
    const auto place = std::upper_bound(placed.begin(), placed.end(), block.offset,
                                        [](std::size_t offset, const Block* other) { return offset < other->offset; });
    // The list of blocks is complete, so the pointers into it stay valid.
    placed.insert(place, &block);
    result_.arena_bytes = std::max(result_.arena_bytes, block.offset + block.bytes);
  }
}

MemoryPlan Planner::plan() {
  place_callers_arrays();
  place_results();
  find_last_uses();
  make_blocks();
  place_blocks();
  for (ArrayId array = 0; array < graph_.arrays.size(); ++array) {
    const ArrayId root = root_[array];
    if (block_of_[root] != kNoBlock) result_.places[root] = {0, blocks_[block_of_[root]].offset};
    result_.places[array] = result_.places[root];
  }
  return std::move(result_);
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const MemoryOptions& options, const SampleTiles& tiles) {
  return Planner(graph, options, tiles).plan();
}

}  // namespace holdfast
