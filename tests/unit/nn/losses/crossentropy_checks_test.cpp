#include "nn/losses/crossentropy_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "holdfast/base/error.h"
#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// What a loss or a metric refuses.
template <class Evaluated>
std::string refusal_of(const Evaluated& loss, std::optional<Activation> last) {
  try {
    loss.check_last_activation(last);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
}

std::optional<Activation> last_activation_of(const Sequential& model) {
  std::optional<Activation> last;
  for (const SequentialLayer& layer : model.layers()) last = layer.layer->output_activation(last);
  return last;
}

TEST(CrossentropyChecks, RefuseLogitsAfterSoftmaxAndSigmoid) {
  for (const Activation last : {Activation::softmax, Activation::sigmoid}) {
    const std::string activation(name(last));
    EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{{.from_logits = true}}, last),
                HasSubstr("applies the softmax itself, but the model's last layer ends with a " + activation));
    EXPECT_THAT(refusal_of(CategoricalCrossentropy{{.from_logits = true}}, last), HasSubstr("leave from_logits out"));
    EXPECT_THAT(refusal_of(BinaryCrossentropy{{.from_logits = true}}, last),
                HasSubstr("binary_crossentropy with from_logits takes scores and applies the sigmoid itself"));
  }
}

TEST(CrossentropyChecks, RefuseProbabilitiesAfterOtherActivations) {
  for (const Activation last : {Activation::linear, Activation::tanh, Activation::gelu, Activation::relu}) {
    EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{}, last), HasSubstr("{.from_logits = true}"));
    EXPECT_THAT(refusal_of(CategoricalCrossentropy{}, last), HasSubstr("or end the model with softmax"));
    EXPECT_THAT(refusal_of(BinaryCrossentropy{}, last), HasSubstr("or end the model with sigmoid"));
  }
}

TEST(CrossentropyChecks, AcceptFittingActivations) {
  for (const Activation last : {Activation::softmax, Activation::sigmoid}) {
    EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{}, last), IsEmpty());
    EXPECT_THAT(refusal_of(BinaryCrossentropy{}, last), IsEmpty());
  }
  EXPECT_THAT(refusal_of(CategoricalCrossentropy{{.from_logits = true}}, Activation::linear), IsEmpty());
  EXPECT_THAT(refusal_of(BinaryCrossentropy{{.from_logits = true}}, Activation::relu), IsEmpty());
  EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{}, std::nullopt), IsEmpty());
  EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{{.from_logits = true}}, std::nullopt), IsEmpty());
  EXPECT_THAT(refusal_of(MeanSquaredError{}, Activation::softmax), IsEmpty());
}

// They reported false numbers: the perplexity of scores was that of other ones.
TEST(CrossentropyChecks, RefuseMetricsThatDoNotFitTheLastActivation) {
  EXPECT_EQ(refusal_of(metrics::Perplexity{}, Activation::linear),
            "metric perplexity without from_logits takes probabilities, but the model's last layer has the activation "
            "linear: set .from_logits = true, end the model with softmax, or set .accept_any_activation = true");
  EXPECT_EQ(refusal_of(metrics::AUC{{.from_logits = true}}, Activation::sigmoid),
            "metric auc with from_logits takes scores, and applies the sigmoid itself, but the model's last layer has "
            "the activation sigmoid: leave .from_logits out, or set .accept_any_activation = true");
  EXPECT_THAT(refusal_of(metrics::AUC{{.accept_any_activation = true}}, Activation::relu), IsEmpty());
  for (const auto& [last, from_logits] : {std::pair(Activation::softmax, true), {Activation::relu, false}}) {
    EXPECT_THAT(refusal_of(metrics::BinaryCrossentropy{{.from_logits = from_logits}}, last), HasSubstr("sigmoid"));
    EXPECT_THAT(refusal_of(metrics::CategoricalCrossentropy{{.from_logits = from_logits}}, last), HasSubstr("softmax"));
    EXPECT_THAT(refusal_of(metrics::SparseCategoricalCrossentropy{{.from_logits = from_logits}}, last),
                HasSubstr("sparse_categorical_crossentropy"));
    for (const std::optional<Activation> fitting :
         {std::optional(from_logits ? Activation::linear : Activation::softmax), std::optional<Activation>()}) {
      EXPECT_THAT(refusal_of(metrics::Perplexity{{.from_logits = from_logits}}, fitting), IsEmpty());
      EXPECT_THAT(refusal_of(metrics::AUC{{.from_logits = from_logits}}, fitting), IsEmpty());
    }
  }
  EXPECT_THAT(refusal_of(SparseCategoricalAccuracy{}, Activation::linear), IsEmpty());
}

TEST(CrossentropyChecks, AcceptEverythingIfTheOptionsSaySo) {
  const CrossentropyOptions logits{.from_logits = true, .accept_any_activation = true};
  const CrossentropyOptions probabilities{.accept_any_activation = true};

  EXPECT_THAT(refusal_of(SparseCategoricalCrossentropy{logits}, Activation::softmax), IsEmpty());
  EXPECT_THAT(refusal_of(BinaryCrossentropy{probabilities}, Activation::linear), IsEmpty());
  EXPECT_EQ(SparseCategoricalCrossentropy{logits}.configuration(),
            SparseCategoricalCrossentropy{{.from_logits = true}}.configuration());
}

TEST(CrossentropyChecks, KnowTheLastActivationOfAModel) {
  const Dense softmax{3, {.activation = Activation::softmax}};

  EXPECT_EQ(last_activation_of(Sequential{Input{4}, softmax}), Activation::softmax);
  EXPECT_EQ(last_activation_of(Sequential{Input{4}, softmax, Dense{3}}), Activation::linear);
  EXPECT_EQ(last_activation_of(Sequential{Input{4}, Dense{3}, ActivationLayer{Activation::softmax}}),
            Activation::softmax);
  EXPECT_EQ(last_activation_of(Sequential{Input{4}, softmax, ActivationLayer{Activation::linear}}),
            Activation::softmax);
  EXPECT_EQ(last_activation_of(Sequential{Input{4}, softmax, Dropout{0.5F}}), Activation::softmax);
  EXPECT_EQ(
      last_activation_of(Sequential{Input{4, 4, 1}, Conv2D{2, 4, {.activation = Activation::sigmoid}}, Flatten{}}),
      Activation::sigmoid);
  EXPECT_EQ(last_activation_of(Sequential{Input{4}, Flatten{}}), std::nullopt);
}

// Once these counted as unknown, and losses silently took scores for probabilities.
TEST(CrossentropyChecks, FollowAnActivationThroughPoolingAndNormalization) {
  const Conv2D linear{2, 1};
  const Conv2D softmax{2, 1, {.activation = Activation::softmax}};
  const Input input{4, 4, 1};

  EXPECT_EQ(last_activation_of(Sequential{input, linear, AveragePooling2D{4}, Flatten{}}), Activation::linear);
  EXPECT_EQ(last_activation_of(Sequential{input, softmax, AveragePooling2D{4}, Flatten{}}), Activation::softmax);
  EXPECT_EQ(last_activation_of(Sequential{input, linear, MaxPooling2D{4}, Flatten{}}), Activation::linear);
  EXPECT_EQ(last_activation_of(Sequential{input, softmax, MaxPooling2D{4}, Flatten{}}), std::nullopt);
  EXPECT_EQ(
      last_activation_of(Sequential{Input{4}, Dense{3, {.activation = Activation::softmax}}, BatchNormalization{}}),
      Activation::linear);
}

}  // namespace
}  // namespace holdfast
