// Updates that an application describes, and descriptions that are refused.

#include "holdfast/optim/described_optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// An optimizer of a test, made of functions.
class Described final : public DescribedOptimizer {
 public:
  using Rule = std::function<std::vector<Value>(const Value& parameter, const Value& gradient,
                                                const std::vector<Value>& slots, const std::vector<Value>& numbers)>;
  Described(std::size_t slots, std::function<std::vector<double>(std::int64_t)> numbers, Rule rule)
      : slots_(slots), numbers_(std::move(numbers)), rule_(std::move(rule)) {}

  std::string name() const override { return "described"; }
  std::string configuration() const override { return R"({"kind":"described"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<Described>(*this); }
  std::vector<std::string> slot_names() const override {
    std::vector<std::string> names;
    for (std::size_t slot = 0; slot < slots_; ++slot) names.push_back(std::string(1, static_cast<char>('a' + slot)));
    return names;
  }

 protected:
  std::vector<double> numbers(std::int64_t step) const override { return numbers_(step); }
  Updated describe(const Elements& of) const override {
    std::vector<Value> results = rule_(of.parameter, of.gradient, of.slots, of.numbers);
    return {.parameter = results.front(), .slots = {results.begin() + 1, results.end()}};
  }

 private:
  std::size_t slots_;
  std::function<std::vector<double>(std::int64_t)> numbers_;
  Rule rule_;
};

using Values = std::vector<Value>;

std::vector<double> no_numbers(std::int64_t) {
  return {};
}

std::string refusal_of(const Optimizer& optimizer) {
  try {
    optimizer.pass(1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(DescribedOptimizer, ComputesWhatItDescribes) {
  const Described optimizer(
      1, [](std::int64_t step) { return std::vector<double>{0.5 / static_cast<double>(step)}; },
      [](const Value& parameter, const Value& gradient, const Values& slots, const Values& numbers) {
        const Value mean = slots[0] * 0.5F + gradient;
        return Values{parameter - mean * numbers[0], mean};
      });
  std::vector<float> parameters = {1, 2};
  std::vector<float> mean = {0, 4};
  const std::vector<std::span<float>> slots = {mean};

  optimizer.update(1, parameters, std::vector<float>{2, 0}, slots);
  EXPECT_THAT(mean, ElementsAre(2, 2));
  EXPECT_THAT(parameters, ElementsAre(0, 1));
  optimizer.update(2, parameters, std::vector<float>{1, 1}, slots);
  EXPECT_THAT(mean, ElementsAre(2, 2));
  EXPECT_THAT(parameters, ElementsAre(-0.5F, 0.5F));
}

// The new parameter is computed from the old slot after the new slot was.
TEST(DescribedOptimizer, ReadsTheSlotsThatWereThereBeforeTheStep) {
  const Described optimizer(2, no_numbers,
                            [](const Value& parameter, const Value& gradient, const Values& slots, const Values&) {
                              return Values{parameter + slots[0] * slots[1], slots[1] + gradient, slots[0]};
                            });
  std::vector<float> parameters = {1};
  std::vector<float> a = {2};
  std::vector<float> b = {3};
  const std::vector<std::span<float>> slots = {a, b};

  optimizer.update(1, parameters, std::vector<float>{10}, slots);

  EXPECT_EQ(parameters[0], 7);
  EXPECT_EQ(a[0], 13);
  EXPECT_EQ(b[0], 2);
}

TEST(DescribedOptimizer, MayLeaveArraysAsTheyAre) {
  const Described optimizer(1, no_numbers,
                            [](const Value& parameter, const Value&, const Values& slots, const Values&) {
                              return Values{parameter, slots[0]};
                            });
  std::vector<float> parameters = {1};
  std::vector<float> slot = {2};
  const std::vector<std::span<float>> slots = {slot};

  optimizer.update(1, parameters, std::vector<float>{10}, slots);

  EXPECT_EQ(parameters[0], 1);
  EXPECT_EQ(slot[0], 2);
}

TEST(DescribedOptimizer, MayUseFunctionsOfElements) {
  const Described optimizer(
      0, no_numbers, [](const Value& parameter, const Value& gradient, const Values&, const Values&) {
        return Values{parameter - where(less(absolute(gradient), parameter), gradient, sign(gradient) * 0.5F)};
      });
  std::vector<float> parameters = {4, 1};

  optimizer.update(1, parameters, std::vector<float>{2, -3}, {});

  EXPECT_THAT(parameters, ElementsAre(2, 1.5F));
}

TEST(DescribedOptimizer, IsRefusedIfItMovesPadding) {
  const Described parameter(0, no_numbers, [](const Value& w, const Value& gradient, const Values&, const Values&) {
    return Values{w - gradient - 0.25F};
  });
  EXPECT_EQ(refusal_of(parameter),
            "optimizer described: where parameter, gradient and slots are 0, its update makes the parameter -0.25; it "
            "must stay 0, because such elements are padding");
  const Described slot(2, no_numbers, [](const Value& w, const Value& gradient, const Values& s, const Values&) {
    return Values{w - gradient, s[0], gradient / s[1]};
  });
  EXPECT_THAT(refusal_of(slot), HasSubstr("makes the slot b "));
}

TEST(DescribedOptimizer, IsRefusedForWhatIsNotOfElements) {
  const auto refusal = [](const Described::Rule& rule) { return refusal_of(Described(0, no_numbers, rule)); };

  EXPECT_THAT(refusal([](const Value& w, const Value& gradient, const Values&, const Values&) {
                return Values{w - softmax(gradient)};
              }),
              HasSubstr("optimizer described: its update uses "));
  EXPECT_THAT(
      refusal([](const Value& w, const Value&, const Values&, const Values&) { return Values{w - input({1})}; }),
      HasSubstr("its update reads an input() of its own"));
  EXPECT_THAT(refusal([](const Value& w, const Value& gradient, const Values&, const Values&) {
                Value sum = w;
                for (int i = 0; i < 30; ++i) sum = sum * 0.5F + gradient;
                return Values{sum};
              }),
              HasSubstr("its update has 25 operations, and one pass takes 24"));
  EXPECT_THAT(refusal([](const Value& w, const Value& gradient, const Values&, const Values&) {
                return Values{w, gradient};
              }),
              HasSubstr("describe() gives 1 slots, and slot_names() 0"));
}

TEST(DescribedOptimizer, IsRefusedForNumbersThatComeAndGo) {
  const Described optimizer(
      0, [](std::int64_t step) { return std::vector<double>(static_cast<std::size_t>(step), 0.5); },
      [](const Value& w, const Value& gradient, const Values&, const Values& numbers) {
        return Values{w - gradient * numbers[0]};
      });
  optimizer.pass(1);

  EXPECT_THROW(optimizer.pass(2), Error);
}

// A number of the step that happens to equal a constant is another one in the next step.
// What step 1 leaves alone, a later step must leave alone too.
TEST(DescribedOptimizer, IsRefusedAtTheStepWhoseNumbersSpoilIt) {
  const Described infinite(
      0, [](std::int64_t step) { return std::vector<double>{1.0 / static_cast<double>(2 - step)}; },
      [](const Value& p, const Value& g, const Values&, const Values& numbers) { return Values{p - g * numbers[0]}; });
  const Described moving(
      0, [](std::int64_t step) { return std::vector<double>{static_cast<double>(step - 1)}; },
      [](const Value& p, const Value& g, const Values&, const Values& numbers) { return Values{p - g + numbers[0]}; });

  EXPECT_EQ(refusal_of(infinite), "");
  EXPECT_EQ(refusal_of(moving), "");
  EXPECT_THROW(infinite.pass(2), Error);
  EXPECT_THROW(moving.pass(2), Error);
}

TEST(DescribedOptimizer, KeepsNumbersOfAStepApartFromConstants) {
  const Described optimizer(
      0, [](std::int64_t step) { return std::vector<double>{static_cast<double>(step)}; },
      [](const Value& w, const Value& gradient, const Values&, const Values& numbers) {
        return Values{w - gradient * 1.0F + gradient * numbers[0]};
      });
  std::vector<float> parameters = {0};

  optimizer.update(3, parameters, std::vector<float>{1}, {});

  EXPECT_EQ(parameters[0], 2);
}

TEST(DescribedOptimizer, ComputesAfterItWasCopied) {
  const Described optimizer(0, no_numbers, [](const Value& w, const Value& gradient, const Values&, const Values&) {
    return Values{w - gradient};
  });
  optimizer.pass(1);
  Described copy(optimizer);
  copy = optimizer;
  std::vector<float> parameters = {3};

  copy.clone()->update(1, parameters, std::vector<float>{1}, {});

  EXPECT_EQ(parameters[0], 2);
}

}  // namespace
}  // namespace holdfast
