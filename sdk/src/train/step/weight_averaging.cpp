#include "train/step/weight_averaging.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "holdfast/optim/described_optimizer.h"

namespace holdfast {
namespace {

// An average is updated like a parameter, with the weights in the place of the gradient. So devices need no code of its
// own.
class WeightAveraging final : public DescribedOptimizer {
 public:
  explicit WeightAveraging(float momentum) : momentum_(momentum) {}

  std::string name() const override { return "moving_average"; }
  // The optimizer whose parameters are averaged has the option in its own configuration.
  std::string configuration() const override { return "{}"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<WeightAveraging>(*this); }
  std::vector<std::string> slot_names() const override { return {}; }

 protected:
  // The first update forgets the initial weights, as in Keras.
  std::vector<double> numbers(std::int64_t step) const override {
    const double kept = step == 1 ? 0 : momentum_;
    return {kept, 1 - kept};
  }
  Updated describe(const Elements& of) const override {
    return {.parameter = of.parameter * of.numbers[0] + of.gradient * of.numbers[1], .slots = {}};
  }

 private:
  float momentum_;
};

}  // namespace

std::vector<std::string> slots_of(const Optimizer& optimizer) {
  std::vector<std::string> slots = optimizer.slot_names();
  if (std::ranges::find(slots, kAverageSlot) != slots.end()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("optimizer {} has a slot called \"{}\", which is the name of averages that weight_average() "
                    "asks for; give it another name",
                    optimizer.name(), kAverageSlot));
  }
  if (optimizer.weight_average().is_kept) slots.emplace_back(kAverageSlot);
  return slots;
}

std::unique_ptr<Optimizer> averaging_of(const WeightAverage& average) {
  if (!average.is_kept) return nullptr;
  return std::make_unique<WeightAveraging>(average.momentum);
}

}  // namespace holdfast
