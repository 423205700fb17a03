#pragma once

// An optimizer that describes its update once, as a function of one element. CPUs and devices compute it in one pass
// over parameters, gradients and slots, with the same bits. To write your own:
//
//   class SignDescent final : public DescribedOptimizer {
//    public:
//     std::string name() const override { return "sign_descent"; }
//     std::string configuration() const override { return R"({"kind":"sign_descent"})"; }
//     std::unique_ptr<Optimizer> clone() const override { return std::make_unique<SignDescent>(*this); }
//     std::vector<std::string> slot_names() const override { return {"mean"}; }
//
//    protected:
//     // The learning rate falls with the number of the step.
//     std::vector<double> numbers(std::int64_t step) const override { return {0.01 / std::sqrt(step)}; }
//     Updated describe(const Elements& of) const override {
//       const Value mean = of.slots[0] * 0.9F + of.gradient * 0.1F;
//       return {.parameter = of.parameter - sign(mean) * of.numbers[0], .slots = {mean}};
//     }
//   };
//
// These functions of holdfast/nn/functions.h may be used: operators, absolute(), sign(), square(), square_root(),
// reciprocal_root(), exponential(), logarithm(), power(), minimum(), maximum(), less(), less_equal(), equal(), where(),
// gelu_tanh(), silu() and softplus(). A description that uses another one, or more than one pass takes, is refused when
// a Trainer is made. So is one whose results for zeros are not zeros, since the padding of arenas must stay zero.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "holdfast/nn/functions.h"
#include "holdfast/optim/optimizer.h"

namespace holdfast {

class DescribedOptimizer : public Optimizer {
 public:
  // Both run what describe() says. They throw Error{invalid_argument} for a description that cannot be computed.
  void update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const final;
  std::shared_ptr<const UpdatePass> pass(std::int64_t step) const final;

 protected:
  // What an update begins with: one element of each array, and the numbers of the step.
  struct Elements {
    Value parameter;             // before the update
    Value gradient;              // after clipping()
    std::vector<Value> slots;    // in the order of slot_names()
    std::vector<Value> numbers;  // in the order of numbers()
  };
  // What becomes of them.
  struct Updated {
    Value parameter;           // after the update
    std::vector<Value> slots;  // after the update, in the order of slot_names()
  };

  DescribedOptimizer();
  ~DescribedOptimizer() override;
  // A copy compiles its description anew.
  DescribedOptimizer(const DescribedOptimizer& other);
  DescribedOptimizer& operator=(const DescribedOptimizer& other);  // likewise

  // Numbers that depend on the step, from 1, such as a learning rate or a bias correction. They are rounded to float
  // once. Their count must be the same in each step, and there may be 8 together with the constants of the
  // description.
  virtual std::vector<double> numbers(std::int64_t step) const = 0;
  // Called once. It must not look at anything that changes afterwards. There may be 3 slots and 24 operations.
  virtual Updated describe(const Elements& of) const = 0;

 private:
  struct Compiled;
  const Compiled& compiled() const;

  std::unique_ptr<Compiled> compiled_;
};

}  // namespace holdfast
