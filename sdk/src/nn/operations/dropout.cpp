#include "nn/graph/operation.h"
#include "nn/operations/operations.h"

namespace holdfast {

namespace {

class DropoutForward final : public Operation, public std::enable_shared_from_this<DropoutForward> {
 public:
  DropoutForward(float rate, const DropoutSequence& sequence) : rate_(rate), sequence_(sequence) {}

  std::string name() const override { return "dropout"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;

  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    // The draws of a sample depend on its number in the global batch, so a batch may be cut into any shards.
    auto object = maker.backend.dropout({.samples = maker.samples,
                                         .elements = maker.input_shape(0).element_count(),
                                         .rate = rate_,
                                         .sequences_per_step = sequence_.sequences_per_step,
                                         .sequence = sequence_.sequence});
    // The backward pass gets the same object. It draws the same numbers again, so a mask is never stored.
    // docs/numerics.md
    return make_function_kernel([object = maker.share(*this, std::move(object))](const KernelArrays& arrays) {
      object->forward(arrays.input(0), arrays.output(0));
    });
  }

 private:
  const float rate_;
  const DropoutSequence sequence_;
};

// Input: output gradient.
class DropoutBackward final : public Operation {
 public:
  explicit DropoutBackward(std::shared_ptr<const DropoutForward> forward) : forward_(std::move(forward)) {}

  std::string name() const override { return "gradient of dropout"; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override {
    return {*inputs[0]};
  }
  std::optional<std::size_t> overwritable_input() const override { return 0; }
  std::vector<MaybeValue> gradient(const GradientRequest&) const override { HOLDFAST_ASSERT(false); }

  // The object of the forward pass keeps which draws that pass had, so both drop the same elements.
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override {
    return make_function_kernel(
        [object = maker.made_by<compute::DropoutOperation>(*forward_)](const KernelArrays& arrays) {
          object->backward(arrays.input(0), arrays.output(0));
        });
  }

 private:
  const std::shared_ptr<const DropoutForward> forward_;
};

std::vector<MaybeValue> DropoutForward::gradient(const GradientRequest& request) const {
  return {apply_one(std::make_shared<const DropoutBackward>(shared_from_this()), {request.output_gradients[0]})};
}

}  // namespace

Value dropout(const Value& input, float rate, const DropoutSequence& sequence) {
  return apply_one(std::make_shared<const DropoutForward>(rate, sequence), {input});
}

}  // namespace holdfast
