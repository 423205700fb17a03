#pragma once

// A model as a list of operations on numbered arrays: what layers were lowered to, and for training the backward pass
// after the forward pass. It is made once for a model and is the same for any number of samples.

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "nn/graph/operation.h"

namespace holdfast {

// Beyond it no memory would hold an array, and sums of sizes would overflow.
inline constexpr std::int64_t kMaximumElements = std::int64_t{1} << 40;

inline constexpr ArrayId kNoArray = std::numeric_limits<ArrayId>::max();

struct GraphArray {
  // What gives an array its numbers. All but operations are arrays of the caller.
  enum class Source { input, parameter, buffer, output_gradient, operation };

  ValueSpec spec;
  Source source = Source::operation;
  std::size_t index = 0;  // of the input, entry, output or operation
};

inline constexpr std::size_t kNoOperation = std::numeric_limits<std::size_t>::max();

// An operation reads arrays of the caller and of operations before it alone.
struct GraphOperation {
  std::shared_ptr<const Operation> operation;
  std::vector<ArrayId> inputs;  // kNoArray: missing
  std::vector<ArrayId> outputs;
  bool is_trained = false;          // depends on a parameter
  bool has_input_gradient = false;  // the gradient of its first input is computed
  // The recomputed segment that it belongs to, or whose backward pass it belongs to; 0: none.
  std::size_t segment = 0;
  // In a backward pass: the operation of the forward pass that this one computes again, with the same kernel.
  std::size_t repeats = kNoOperation;
};

// Moving averages that follow the statistics of a batch. The array has one sum for each element of the buffers, in
// their order, and then the number of rows that were added up.
struct BufferUpdate {
  ArrayId sums = kNoArray;
  std::size_t offset = 0;            // among the contributions of a shard, in floats
  std::vector<std::size_t> buffers;  // entries
  float momentum = 0;
};

// Arrays and operations refer to each other by their places in these lists.
struct Graph {
  std::vector<GraphArray> arrays;
  std::vector<GraphOperation> operations;
  std::vector<ArrayId> outputs;  // of the model
  std::vector<BufferUpdate> updates;
  // The operations from here on belong to the backward pass.
  std::size_t first_backward = 0;
  // For each parameter; kNoArray: no output depends on it.
  std::vector<ArrayId> parameter_gradients;

  const ValueSpec& spec(ArrayId array) const { return arrays[array].spec; }
  // The array whose memory `array` is; itself unless it is a view.
  ArrayId memory_of(ArrayId array) const {
    while (arrays[array].source == GraphArray::Source::operation) {
      const GraphOperation& maker = operations[arrays[array].index];
      if (!maker.operation->is_view()) break;
      array = maker.inputs[0];
    }
    return array;
  }
};

}  // namespace holdfast
