// Scale, masks and softmax are one operation: causality needs no array then, and keys that it leaves out cost nothing.
// The gradient follows from the shares alone, so that the scores are free after the forward pass.
// docs/decisions/layers.md

#include "nn/operations/products/attention_shares.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "nn/graph/operation.h"

namespace holdfast {

namespace {

compute::AttentionScores scores_in(const ValueSpec& scores, const ValueSpec* mask, std::int64_t samples,
                                   const AttentionSharesOptions& options) {
  compute::AttentionScores result = {.samples = scores.has_samples ? samples : 1,
                                     .heads = scores.shape[0],
                                     .queries = scores.shape[1],
                                     .keys = scores.shape[2],
                                     .scale = options.scale,
                                     .is_causal = options.is_causal,
                                     .window = options.window};
  if (mask == nullptr) return result;
  if (mask->has_samples) result.mask_of_sample = mask->shape.element_count();
  // A mask [1, keys] is the same for all queries, as one of [keys].
  if (mask->shape.rank() == 2 && mask->shape[0] > 1) result.mask_of_query = result.keys;
  return result;
}

// Inputs: shares, their gradient.
class SharesBackward final : public Operation {
 public:
  explicit SharesBackward(const AttentionSharesOptions& options) : options_(options) {}

  std::string name() const override { return "gradient of attention shares"; }
  bool is_sample_wise() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::optional<std::size_t> overwritable_input() const override { return 1; }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    // Without the mask: a masked key has the share 0, and so the gradient 0 by the formula.
    const compute::AttentionScores scores = scores_in(*maker.inputs[0], nullptr, maker.samples, options_);
    return make_function_kernel([&kernels = maker.backend.array_kernels(), scores](const KernelArrays& arrays) {
      kernels.attention_shares_backward(scores, arrays.input(0), arrays.input(1), arrays.output(0));
    });
  }

 private:
  const AttentionSharesOptions options_;
};

// Inputs: scores, and perhaps a mask.
class SharesForward final : public Operation {
 public:
  explicit SharesForward(const AttentionSharesOptions& options) : options_(options) {}

  std::string name() const override { return "attention shares"; }
  bool is_sample_wise() const override { return true; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override {
    // A mask is 0 or not, and has no gradient.
    return {
        apply_one(std::make_shared<const SharesBackward>(options_), {request.outputs[0], request.output_gradients[0]}),
        std::nullopt};
  }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    const bool has_mask = maker.inputs[1].has_value();
    const compute::AttentionScores scores =
        scores_in(*maker.inputs[0], has_mask ? &*maker.inputs[1] : nullptr, maker.samples, options_);
    return make_function_kernel([&kernels = maker.backend.array_kernels(), scores](const KernelArrays& arrays) {
      kernels.attention_shares(scores, arrays.input(0), arrays.input(1), arrays.output(0));
    });
  }

 private:
  const AttentionSharesOptions options_;
};

}  // namespace

Value attention_shares(const Value& scores, const MaybeValue& mask, const AttentionSharesOptions& options) {
  // Layers make the scores. A mask comes from the user, so it is refused with a sentence.
  HOLDFAST_ASSERT(scores.shape().rank() == 3);
  const std::int64_t queries = scores.shape()[1];
  const std::int64_t keys = scores.shape()[2];
  if (mask) {
    const Shape& shape = mask->shape();
    const bool is_of_keys = shape.rank() == 1 && shape[0] == keys;
    const bool is_of_both = shape.rank() == 2 && (shape[0] == queries || shape[0] == 1) && shape[1] == keys;
    if (!is_of_keys && !is_of_both) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("its mask has the shape {}; {} queries and {} keys need [{}] or [{}, {}]",
                              shape.to_string(), queries, keys, keys, queries, keys));
    }
  }
  return apply_one(std::make_shared<const SharesForward>(options), {scores, mask});
}

}  // namespace holdfast
