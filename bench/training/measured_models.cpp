// Models are those of the peers (bench/training/train_peer.cpp, bench/gpu/peer.py), option by option: another width or
// activation would be measured as a difference of the libraries. Samples are made before training begins, so that no
// step waits for them.

#include "measured_models.h"

#include <cmath>

using namespace holdfast;

namespace {

// As many as train_peer.cpp has.
constexpr std::int64_t kBatches = 8;
constexpr std::int64_t kWords = 512;
constexpr std::int64_t kWidth = 256;

// Numbers in [0, 1) that cost almost nothing, since 131 million of them are needed.
class Noise {
 public:
  float next() {
    // The upper 24 bits, since the lower ones of such a generator repeat soon. A float holds them all, so the result is
    // never rounded up to 1.
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<float>(state_ >> 40U) * 0x1p-24F;
  }

 private:
  std::uint64_t state_ = 1;
};

Value block(const Value& x) {
  constexpr std::int64_t kHeads = 4;
  // The epsilon of LibTorch's and PyTorch's LayerNorm.
  const LayerNormalizationOptions norm = {.epsilon = 1e-5F};
  const Value seen =
      MultiHeadAttention{kHeads, kWidth / kHeads, {.use_causal_mask = true}}(LayerNormalization{norm}(x));
  const Value middle = x + seen;
  const Value wide =
      Dense{4 * kWidth, {.activation = ActivationFunction::gelu_tanh()}}(LayerNormalization{norm}(middle));
  return middle + Dense{kWidth}(wide);
}

}  // namespace

Model measured_gpt(std::int64_t vocabulary) {
  constexpr std::int64_t kLength = 128;
  const Value ids = input({kLength}, {.dtype = DType::i32});
  const ReversibleEmbedding words{vocabulary, kWidth, {.initializer = Initializer::random_normal(0, 0.02F)}};
  const Value vectors = words(ids);
  Value x = vectors + PositionEmbedding{kLength, {.initializer = Initializer::random_normal(0, 0.02F)}}(vectors);
  for (int i = 0; i < 4; ++i) x = block(x);
  return Model(ids, words.reverse(LayerNormalization{{.epsilon = 1e-5F}}(x)));
}

Model measured_lstm() {
  const Value ids = input({64}, {.dtype = DType::i32});
  Value x = Embedding{kWords, kWidth}(ids);
  for (int i = 0; i < 2; ++i) x = LSTM{kWidth, {.return_sequences = true}}(x);
  return Model(ids, Dense{kWords}(x));
}

Dataset measured_words(std::int64_t length, std::int64_t batch, std::int64_t vocabulary) {
  Tensor words(Shape{kBatches * batch, length}, DType::i32);
  Tensor next(Shape{kBatches * batch, length}, DType::i32);
  Noise random;
  for (std::int32_t& id : words.elements<std::int32_t>()) {
    id = static_cast<std::int32_t>(random.next() * static_cast<float>(vocabulary));
  }
  for (std::int64_t i = 0; i < kBatches * batch; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      // The last of them has the first one after it.
      const auto at = static_cast<std::size_t>(i * length + j);
      const auto after = static_cast<std::size_t>(i * length + (j + 1) % length);
      next.elements<std::int32_t>()[at] = words.elements<std::int32_t>()[after];
    }
  }
  return from_tensors(std::move(words), std::move(next));
}

Sequential measured_mlp(std::int64_t divisor) {
  return Sequential{Input{8000 / divisor},
                    Dense{4000 / divisor, {.activation = Activation::tanh}},
                    Dense{2000 / divisor, {.activation = Activation::relu}},
                    Dense{500 / divisor, {.activation = Activation::relu}},
                    Dense{300 / divisor, {.activation = Activation::relu}},
                    Dense{1}};
}

Sequential measured_lenet5() {
  return Sequential{Input{28, 28, 1},
                    Conv2D{6, 5, {.padding = Padding::same, .activation = Activation::tanh}},
                    AveragePooling2D{2},
                    Conv2D{16, 5, {.activation = Activation::tanh}},
                    AveragePooling2D{2},
                    Flatten{},
                    Dense{120, {.activation = Activation::tanh}},
                    Dense{84, {.activation = Activation::tanh}},
                    Dense{10}};
}

Dataset measured_noise(const Shape& features, std::int64_t classes, std::int64_t batch) {
  const std::int64_t samples = kBatches * batch;
  Tensor values(features.with_batch(samples));
  Noise random;
  for (float& value : values.values()) value = random.next();
  // The loss of two classes compares targets with the output of the model, [1]. That of several takes their number.
  const Shape target = classes == 2 ? Shape{samples, 1} : Shape{samples};
  Tensor targets(target);
  for (std::int64_t i = 0; i < samples; ++i) {
    targets.values()[static_cast<std::size_t>(i)] = std::floor(values.sample(i).front() * static_cast<float>(classes));
  }
  return from_tensors(std::move(values), std::move(targets));
}
