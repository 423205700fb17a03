#include "nn/losses/smoothed_crossentropies.h"

#include "nn/losses/loss_values.h"

namespace holdfast {
namespace {

// Null without smoothing: the callers then keep their own loops, and devices their kernels.
std::shared_ptr<const ValueLoss> with_smoothing(const char* name, const CrossentropyOptions& options,
                                                const LossFunction::Function& function) {
  check_range(name, "label_smoothing", options.label_smoothing, 0, 1);
  return options.label_smoothing == 0 ? nullptr : std::make_shared<LossFunction>(name, function);
}

}  // namespace

std::shared_ptr<const ValueLoss> smoothed_binary_crossentropy(const CrossentropyOptions& options) {
  return with_smoothing("binary_crossentropy", options, [options](const Value& outputs, const Value& targets) {
    return binary_crossentropy(outputs, smoothed(targets, options.label_smoothing, 2), options.from_logits);
  });
}

std::shared_ptr<const ValueLoss> smoothed_categorical_crossentropy(const CrossentropyOptions& options) {
  return with_smoothing("categorical_crossentropy", options, [options](const Value& outputs, const Value& targets) {
    return categorical_crossentropy(outputs, targets, options.from_logits, options.label_smoothing);
  });
}

}  // namespace holdfast
