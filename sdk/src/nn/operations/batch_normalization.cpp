// The forward pass of training computes statistics of its shard. The object of the back end keeps them for two later
// operations: the contribution to the moving averages, and the backward pass. So all three share one object, which
// KernelMaker::share() hands on. docs/decisions/models.md
//
// Back ends know one kind of batch normalization, with gamma and beta. A layer without one of them gives an array of
// ones or zeros instead. So its bits are those of a layer whose gamma is 1 and whose beta is 0.

#include <algorithm>
#include <memory>
#include <vector>

#include "holdfast/base/error.h"
#include "nn/graph/operation.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

// What the passes of one layer share.
struct SharedNormalization {
  std::unique_ptr<compute::BatchNormalizationOperation> operation;
  // [channels], in the memory of the back end, in place of a parameter that the layer does not have; else null.
  std::shared_ptr<float[]> ones;   // gamma
  std::shared_ptr<float[]> zeros;  // beta
  std::size_t own_bytes = 0;       // of both, in the host's memory

  const float* gamma(const KernelArrays& arrays) const { return ones ? ones.get() : arrays.input(1); }
  const float* beta(const KernelArrays& arrays) const { return zeros ? zeros.get() : arrays.input(2); }
};

std::unique_ptr<SharedNormalization> make_shared_normalization(const KernelMaker& maker, float epsilon) {
  auto shared = std::make_unique<SharedNormalization>();
  shared->operation = maker.backend.batch_normalization(
      {.rows = maker.rows(0), .channels = maker.channels(0), .epsilon = epsilon}, maker.use);
  MemorySpace& memory = maker.backend.memory();
  const std::vector<float> ones(static_cast<std::size_t>(maker.channels(0)), 1.0F);
  const auto allocate = [&] {
    if (memory.is_host()) shared->own_bytes += ones.size() * sizeof(float);
    return memory.allocate(ones.size());
  };
  if (!maker.inputs[1]) {
    shared->ones = allocate();
    memory.copy_from_host(ones, {shared->ones.get(), ones.size()});
  }
  if (!maker.inputs[2]) shared->zeros = allocate();
  return shared;
}

// Inputs: input, gamma, beta; for inference also mean and variance. Gamma and beta may be missing.
class NormalizationForward final : public Operation, public std::enable_shared_from_this<NormalizationForward> {
 public:
  explicit NormalizationForward(float epsilon) : epsilon_(epsilon) {}

  std::string name() const override { return "batch normalization"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;
  std::vector<MaybeValue> gradient_with_given_statistics(const GradientRequest& request) const;

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const auto shared = maker.share(*this, make_shared_normalization(maker, epsilon_));
    const auto for_training = [shared](const KernelArrays& arrays) {
      shared->operation->forward_training(arrays.input(0), shared->gamma(arrays), shared->beta(arrays),
                                          arrays.output(0));
    };
    const auto for_inference = [shared](const KernelArrays& arrays) {
      shared->operation->forward_inference(arrays.input(0), shared->gamma(arrays), shared->beta(arrays),
                                           arrays.input(3), arrays.input(4), arrays.output(0));
    };
    // With given statistics the operation is that of inference, and nothing is kept.
    if (maker.inputs.size() == 5) return make_function_kernel(for_inference, shared->own_bytes);
    return make_function_kernel(for_training, shared->own_bytes);
  }

 private:
  const float epsilon_;
};

// What the statistics of the last forward pass add to those of the batch. It takes no arrays: the object of the forward
// pass keeps them.
class NormalizationContribution final : public Operation {
 public:
  NormalizationContribution(std::shared_ptr<const Operation> forward, std::int64_t channels)
      : forward_(std::move(forward)), channels_(channels) {}

  std::string name() const override { return "statistics of batch normalization"; }
  // The layout is that of NormalizedBatch::contributions. Only sums over rows can be added over shards, and so these
  // are sums and a count.
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>>) const override {
    return {{.shape = {2 * channels_ + 1}, .has_samples = false}};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { return {}; }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    // The operation takes no array that would order it. It belongs to the backward pass, so the forward pass has run.
    return make_function_kernel([shared = maker.made_by<SharedNormalization>(*forward_)](const KernelArrays& arrays) {
      shared->operation->contribute(arrays.output(0));
    });
  }

 private:
  const std::shared_ptr<const Operation> forward_;
  const std::int64_t channels_;
};

// Inputs: input, gamma (which may be missing), output gradient. Outputs: the gradients of input, gamma and beta.
class NormalizationBackward final : public Operation {
 public:
  NormalizationBackward(std::shared_ptr<const Operation> forward, bool has_input_gradient)
      : forward_(std::move(forward)), has_input_gradient_(has_input_gradient) {}

  std::string name() const override { return "gradients of batch normalization"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    // The gradients of gamma and beta are sums that the input's gradient needs too, so they are always computed. Those
    // of a missing parameter have their place in the arena, and nothing reads them.
    const ValueSpec sums = {.shape = {last_extent(inputs[0]->shape)}, .has_samples = false};
    return {has_input_gradient_ ? *inputs[0] : kNotComputed, sums, sums};
  }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel([shared = maker.made_by<SharedNormalization>(*forward_)](const KernelArrays& arrays) {
      shared->operation->backward(arrays.input(0), shared->gamma(arrays), arrays.input(2), arrays.output(0),
                                  arrays.output(1), arrays.output(2));
    });
  }

 private:
  const std::shared_ptr<const Operation> forward_;
  const bool has_input_gradient_;
};

// Statistics are given in inference, where nothing is differentiated, and to a frozen layer, whose weights stand still:
// d output / d input = gamma / sqrt(variance + epsilon).
std::vector<MaybeValue> NormalizationForward::gradient_with_given_statistics(const GradientRequest& request) const {
  HOLDFAST_ASSERT(std::none_of(request.needed.begin() + 1, request.needed.end(), [](bool needed) { return needed; }));
  std::vector<MaybeValue> by_input(request.inputs.size());
  if (!request.needed[0]) return by_input;
  const Value scale = reciprocal_root(*request.inputs[4] + epsilon_);
  by_input[0] = *request.output_gradients[0] * (request.inputs[1] ? scale * *request.inputs[1] : scale);
  return by_input;
}

std::vector<MaybeValue> NormalizationForward::gradient(const GradientRequest& request) const {
  if (request.inputs.size() == 5) return gradient_with_given_statistics(request);
  const auto backward = std::make_shared<const NormalizationBackward>(shared_from_this(), request.needed[0]);
  const std::vector<Value> gradients =
      apply(backward, {request.inputs[0], request.inputs[1], request.output_gradients[0]});
  std::vector<MaybeValue> by_input(request.inputs.size());
  for (std::size_t input = 0; input < 3; ++input) {
    if (request.needed[input]) by_input[input] = gradients[input];
  }
  return by_input;
}

}  // namespace

NormalizedBatch batch_normalization(const Value& input, const MaybeValue& gamma, const MaybeValue& beta,
                                    float epsilon) {
  const auto forward = std::make_shared<const NormalizationForward>(epsilon);
  const Value output = apply_one(forward, {input, gamma, beta});
  // The contribution is an operation of its own. So it runs once in a step, also where the forward pass is recomputed.
  const std::int64_t channels = last_extent(input.shape());
  return {output, apply_one(std::make_shared<const NormalizationContribution>(forward, channels), {})};
}

Value batch_normalization(const Value& input, const MaybeValue& gamma, const MaybeValue& beta, float epsilon,
                          const Value& mean, const Value& variance) {
  return apply_one(std::make_shared<const NormalizationForward>(epsilon), {input, gamma, beta, mean, variance});
}

}  // namespace holdfast
