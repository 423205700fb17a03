// Losses that are functions of values, by themselves.

#include "holdfast/nn/value_loss.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "holdfast/nn/dense.h"
#include "holdfast/nn/mean_squared_error.h"
#include "support/thrown.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// -(1 - q)^gamma log q, where q is the probability of the right class (Lin et al., 2017).
class Focal final : public ValueLoss {
 public:
  explicit Focal(float gamma) : ValueLoss("focal", {{"gamma", gamma}}), gamma_(gamma) {}
  Value losses(const Value& p, const Value& t) const override {
    const Value right = t * p + (1.0F - t) * (1.0F - p);
    return -power(1.0F - right, gamma_) * logarithm(right);
  }
  std::unique_ptr<Loss> clone() const override { return std::make_unique<Focal>(*this); }

 private:
  float gamma_;
};

double focal(double p, double t, double gamma) {
  const double right = t * p + (1 - t) * (1 - p);
  return -std::pow(1 - right, gamma) * std::log(right);
}

double huber(double o, double t) {
  const double d = std::abs(o - t);
  return d < 1 ? 0.5 * d * d : d - 0.5;
}

LossFunction huber_function() {
  return {"huber", [](const Value& outputs, const Value& targets) {
            const Value distance = absolute(outputs - targets);
            return where(less(distance, 1.0F), 0.5F * square(distance), distance - 0.5F);
          }};
}

struct Case {
  std::vector<float> outputs;
  std::vector<float> targets;
  std::int64_t samples;
};

// The mean over the elements of a sample, summed over the samples, in double.
template <class Element>
double expected_sum(const Case& batch, std::vector<float> outputs, const Element& element) {
  double sum = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) sum += element(outputs[i], batch.targets[i]);
  return sum * static_cast<double>(batch.samples) / static_cast<double>(outputs.size());
}

template <class Element>
void expect_loss_and_gradient(const Loss& loss, const Case& batch, const Element& element) {
  constexpr float kScale = 0.5F;
  std::vector<float> gradient(batch.outputs.size(), 99);

  const float sum = loss.evaluate(batch.outputs, batch.targets, batch.samples, kScale, gradient);

  EXPECT_NEAR(sum, expected_sum(batch, batch.outputs, element), 1e-5);
  EXPECT_EQ(loss.evaluate(batch.outputs, batch.targets, batch.samples, kScale, {}), sum) << "without a gradient";
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    std::vector<float> higher = batch.outputs, lower = batch.outputs;
    higher[i] += 1e-3F;
    lower[i] -= 1e-3F;
    const double slope = (expected_sum(batch, higher, element) - expected_sum(batch, lower, element)) /
                         (static_cast<double>(higher[i]) - static_cast<double>(lower[i]));
    EXPECT_NEAR(gradient[i], kScale * slope, 1e-4) << "element " << i;
  }
}

TEST(ValueLoss, HasTheValueAndGradientOfAFocalLoss) {
  expect_loss_and_gradient(Focal(2), {{0.3F, 0.8F, 0.6F, 0.1F, 0.5F, 0.9F}, {0, 1, 1, 0, 1, 0}, 3},
                           [](double p, double t) { return focal(p, t, 2); });
}

TEST(ValueLoss, HasTheValueAndGradientOfAHuberLoss) {
  expect_loss_and_gradient(huber_function(), {{0.3F, 4, -2, 0.1F}, {0, 1, 1, 0.5F}, 2}, huber);
}

TEST(ValueLoss, HasTheNumbersOfABuiltInLoss) {
  const LossFunction mse("mse", [](const Value& o, const Value& t) { return square(o - t); });
  const std::vector<float> outputs = {0.5F, 1, -2, 3.25F, 0, 7}, targets = {1, 1, 0, 3, -1, 7.5F};
  std::vector<float> gradient(6), expected_gradient(6);

  const float sum = mse.evaluate(outputs, targets, 2, 0.25F, gradient);

  EXPECT_FLOAT_EQ(sum, MeanSquaredError{}.evaluate(outputs, targets, 2, 0.25F, expected_gradient));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(gradient[i], expected_gradient[i]) << i;
}

TEST(ValueLoss, TakesNoSamples) {
  EXPECT_EQ(Focal(2).evaluate({}, {}, 0, 1, {}), 0.0F);
}

TEST(ValueLoss, DescribesItsOptionsAsJson) {
  EXPECT_EQ(Focal(2).configuration(), R"({"kind":"value_loss","name":"focal","options":{"gamma":2.0}})");
  EXPECT_EQ(Focal(2).clone()->configuration(), Focal(2).configuration());
  EXPECT_NE(Focal(2).configuration(), Focal(3).configuration());
}

// The sentence for a loss of this function.
std::string refusal_of(const LossFunction::Function& function) {
  const LossFunction loss("mine", function);
  return sentence_thrown_by([&] { loss.evaluate(std::vector<float>(6), std::vector<float>(6), 2, 1, {}); });
}

TEST(ValueLoss, RefusesWhatDescribesNoLoss) {
  using V = const Value&;
  EXPECT_THAT(refusal_of([](V, V targets) { return square(targets); }),
              HasSubstr("loss \"mine\" has no gradient for the outputs"));
  EXPECT_THAT(refusal_of([](V outputs, V targets) { return less(outputs, targets); }), HasSubstr("has no gradient"));
  EXPECT_THAT(refusal_of([](V outputs, V targets) { return Dense{3}(outputs)-targets; }),
              HasSubstr("uses a layer (Dense); it may use functions of values alone"));
  EXPECT_THAT(refusal_of([](V outputs, V) { return outputs - input({3}); }),
              HasSubstr("a value that is neither its outputs nor its targets"));
  EXPECT_THAT(refusal_of([](V outputs, V targets) { return outputs - slice(targets, 0, 0, 2); }),
              testing::AllOf(HasSubstr("[3]"), HasSubstr("[2]")));
}

TEST(ValueLoss, RefusesRowsThatDoNotFit) {
  const std::vector<float> six(6), five(5);
  std::vector<float> short_gradient(3);

  EXPECT_THAT(sentence_thrown_by([&] { huber_function().evaluate(five, six, 2, 1, {}); }),
              HasSubstr("huber was given 5 outputs and 6 targets for 2 samples"));
  EXPECT_THAT(sentence_thrown_by([&] { huber_function().evaluate(six, six, 2, 1, short_gradient); }),
              HasSubstr("its gradient has room for 3"));
}

TEST(ValueLoss, NeedsANameFiniteOptionsAndAFunction) {
  const auto function = [](const Value& o, const Value& t) { return o - t; };

  EXPECT_THAT(sentence_thrown_by([&] { LossFunction("", function); }), HasSubstr("needs a name"));
  EXPECT_THAT(sentence_thrown_by([&] { LossFunction("mine", nullptr); }), HasSubstr("has no function"));
  EXPECT_THAT(sentence_thrown_by([&] { Focal(std::nanf("")); }),
              HasSubstr("option \"gamma\" of loss \"focal\" is nan"));
}

}  // namespace
}  // namespace holdfast
