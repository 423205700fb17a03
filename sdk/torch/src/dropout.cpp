#include "holdfast/torch/dropout.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <ostream>

#include "holdfast/base/error.h"
#include "holdfast/core/random.h"
#include "shard_position.h"

namespace holdfast::torch {

// forward() of a module has no argument for the position. Each worker computes on a thread of its own, so the thread
// knows it.
static thread_local ShardPosition* position_of_thread = nullptr;

ShardPosition* shard_position() {
  return position_of_thread;
}

// A scope covers one computation of a shard: a repetition counts its masks from 0 again, and draws the same ones.
ShardScope::ShardScope(const ShardPosition& position) : position_(position) {
  position_of_thread = &position_;
}

// Scopes are not nested, so there is no outer one to go back to.
ShardScope::~ShardScope() {
  position_of_thread = nullptr;
}

DropoutImpl::DropoutImpl(double rate) : rate_(rate) {
  if (rate >= 0 && rate < 1) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a dropout has the rate {}; give a number from 0 to less than 1", rate));
}

at::Tensor DropoutImpl::forward(const at::Tensor& input) {
  // Counts no mask: the masks of later parts have other numbers than with a rate above 0.
  if (!is_training() || rate_ == 0) return input;
  ShardPosition* const shard = shard_position();
  if (shard == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "holdfast::torch::Dropout draws by seed, step and sample, which only a step of a Trainer has; call "
                "eval() on the module, or use torch::nn::Dropout outside of a Trainer");
  }
  if (input.dim() < 1 || input.size(0) != shard->samples) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the first axis of a holdfast::torch::Dropout's input has {} elements, and there are {} "
                            "samples; call it where the first axis counts the samples, as before a transpose()",
                            input.dim() < 1 ? 0 : input.size(0), shard->samples));
  }
  at::Tensor mask = at::empty(input.sizes(), at::TensorOptions().dtype(at::kFloat));
  const std::int64_t samples = input.size(0);
  const std::int64_t elements = samples == 0 ? 0 : input.numel() / samples;
  // In integers, so that each machine drops the same elements.
  const auto dropped = static_cast<std::uint32_t>(rate_ * 16777216.0);  // of 2^24 equal draws
  const auto scale = static_cast<float>(1.0 / (1.0 - rate_));
  const std::uint64_t mask_number = shard->masks++;
  float* values = mask.data_ptr<float>();
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    // The number of the mask and the position of the sample make one counter: 2^40 samples of a batch are enough.
    const auto position = static_cast<std::uint64_t>(shard->first_sample + sample);
    Random random(shard->seed, Purpose::dropout, static_cast<std::uint64_t>(shard->step),
                  (mask_number << 40) | position);
    for (std::int64_t i = 0; i < elements; ++i) *values++ = (random.next_u32() >> 8) < dropped ? 0.0F : scale;
  }
  // On a device the mask is drawn here, too, and sent there.
  return input * mask.to(input.device(), input.scalar_type());
}

// LibTorch prints a module with its parts, and its own dropout shows the rate too.
void DropoutImpl::pretty_print(std::ostream& stream) const {
  stream << "holdfast::torch::Dropout(rate=" << rate_ << ")";
}

}  // namespace holdfast::torch
