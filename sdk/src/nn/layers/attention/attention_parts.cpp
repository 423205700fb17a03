#include "nn/layers/attention/attention_parts.h"

#include <fmt/format.h>

#include "holdfast/base/error.h"
#include "holdfast/nn/functions.h"
#include "nn/layers/noise/noise.h"
#include "nn/operations/operations.h"

namespace holdfast {

AttentionInputs attention_inputs(std::span<const Value> inputs, const AttentionMasks& masks) {
  const std::size_t mask_count = (masks.has_attention_mask ? 1U : 0U) + (masks.has_padding_mask ? 1U : 0U);
  if (inputs.size() <= mask_count || inputs.size() > mask_count + 3) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("it takes a query, perhaps a value and a key, and then {} as its options say, not {} inputs",
                    mask_count == 0   ? "no mask"
                    : mask_count == 2 ? "an attention mask and a padding mask"
                                      : "one mask",
                    inputs.size()));
  }
  const std::size_t values = inputs.size() - mask_count;
  AttentionInputs result = {.query = inputs[0],
                            .value = inputs[values > 1 ? 1 : 0],
                            .key = inputs[values > 2   ? 2
                                          : values > 1 ? 1
                                                       : 0],
                            .mask = std::nullopt};
  for (const Value* const value : {&result.query, &result.value, &result.key}) {
    if (value->shape().rank() == 2) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("it takes values [steps, width], not {}; reshape() them", value->shape().to_string()));
  }
  if (result.value.shape()[0] != result.key.shape()[0]) {
    throw Error(ErrorCode::invalid_argument, fmt::format("it needs as many values as keys, not {} and {}",
                                                         result.value.shape()[0], result.key.shape()[0]));
  }
  for (std::size_t place = values; place < inputs.size(); ++place) {
    const Value mask = cast(inputs[place], DType::f32);
    // Zero where either of two masks is.
    result.mask = result.mask ? *result.mask * mask : mask;
  }
  return result;
}

Value dropped_shares(LayerBuilder& builder, const Value& shares, float rate) {
  if (!builder.is_training() || rate == 0) return shares;
  // A draw for each head, query and key of a sample: the mask is the same on any cut of a batch.
  return dropout(shares, rate,
                 {.sequences_per_step = builder.draw_sequences_per_step(), .sequence = builder.draw_sequence()});
}

void check_attention(std::string_view kind, float dropout, std::int64_t window) {
  check_rate(kind, dropout);
  if (window >= 0 && window <= Layer::kMaximumExtent) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} needs a sliding window from 1, or 0 for none, not {}", kind, window));
}

}  // namespace holdfast
