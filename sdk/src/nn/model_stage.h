#pragma once

// One operation of a model, made for one number of samples: what a layer becomes when it is to run. A layer may be
// several stages (its arithmetic, then its activation) or none.

#include <cstddef>
#include <cstdint>
#include <functional>

namespace holdfast {

// What a pass calls before each layer; an exception of it ends the pass.
using BeforeLayer = std::function<void()>;

struct ForwardPass {
  const float* parameters = nullptr;
  const float* buffers = nullptr;  // null in training
  const BeforeLayer& before_layer;
};

struct BackwardPass {
  const float* parameters = nullptr;
  float* gradients = nullptr;
  const BeforeLayer& before_layer;
};

// Stages [first_stage, end_stage) of a backward pass, which runs from the last one to the first. After
// it, the gradients of all parameters from gradients_begin on are complete.
struct BackwardPart {
  std::size_t first_stage = 0;
  std::size_t end_stage = 0;
  std::size_t gradients_begin = 0;
};

// A stage's own arrays in the backward pass.
struct ModelStageGradient {
  const float* input = nullptr;
  const float* output = nullptr;
  const float* output_gradient = nullptr;
  float* input_gradient = nullptr;  // null where nobody asked for it
};

class ModelStage {
 public:
  virtual ~ModelStage() = default;

  virtual void forward(const ForwardPass& pass, const float* input, float* output) = 0;
  // What the samples of the last forward() add to the sums from which the model's buffers are updated; written to the
  // stage's own place. Most add nothing.
  virtual void contribute(float* contributions) { static_cast<void>(contributions); }
  // After forward(): overwrites the gradients of the parameters of this stage.
  virtual void backward(const BackwardPass& pass, const ModelStageGradient& arrays) = 0;
};

// What the planning of memory must know.
struct ModelStageTraits {
  bool has_parameters = false;
  bool may_overwrite_input = false;  // forward() may write over its input, which backward() does not look at
  bool needs_output = false;         // backward() looks at the output, which so must not be overwritten
};

}  // namespace holdfast
