// A description is compiled when it is first needed, because a constructor cannot call describe() of the class that is
// being made. Only the numbers of a step are filled in afterwards. docs/decisions/optimizers.md

#include "holdfast/optim/described_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>

#include "holdfast/base/error.h"
#include "optim/rules/rule_loop.h"
#include "optim/update_description.h"
#include "optim/update_pass.h"

namespace holdfast {

// Several threads may need the program at once, and one of them makes it. If it throws, the next caller tries again and
// gets the same error.
struct DescribedOptimizer::Compiled {
  std::once_flag once;
  compute::ElementProgram program;
  std::size_t numbers = 0;
  std::optional<RuleLoop> loop{};  // on the host, in place of the program
};

DescribedOptimizer::DescribedOptimizer() : compiled_(std::make_unique<Compiled>()) {}
DescribedOptimizer::~DescribedOptimizer() = default;
// The copy may get other options before it is used.
DescribedOptimizer::DescribedOptimizer(const DescribedOptimizer& other)
    : Optimizer(other), compiled_(std::make_unique<Compiled>()) {}

DescribedOptimizer& DescribedOptimizer::operator=(const DescribedOptimizer& other) {
  if (this != &other) compiled_ = std::make_unique<Compiled>();
  return *this;
}

namespace {

void fill_in(const std::vector<double>& numbers, compute::ElementProgram& program) {
  std::transform(numbers.begin(), numbers.end(), program.constants,
                 [](double number) { return static_cast<float>(number); });
}

// Padding is zero in all arrays, and must stay so. The program is tried on one element.
void require_zeros_of_zeros(const std::string& optimizer, const compute::ElementProgram& program,
                            const std::vector<std::string>& slots) {
  float parameter = 0;
  const float gradient = 0;
  std::vector<float> values(slots.size());
  std::vector<std::span<float>> spans;
  for (float& value : values) spans.emplace_back(&value, 1);
  run_pass({program}, {{&parameter, 1}, {&gradient, 1}, spans});
  const auto require_zero = [&](const std::string& array, float value) {
    if (value == 0) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("optimizer {}: where parameter, gradient and slots are 0, its update makes the {} {}; it "
                            "must stay 0, because such elements are padding",
                            optimizer, array, value));
  };
  require_zero("parameter", parameter);
  for (std::size_t slot = 0; slot < slots.size(); ++slot)
    require_zero(fmt::format("slot {}", slots[slot]), values[slot]);
}

}  // namespace

const DescribedOptimizer::Compiled& DescribedOptimizer::compiled() const {
  std::call_once(compiled_->once, [this] {
    const std::vector<std::string> slots = slot_names();
    // A description does not depend on the values of its numbers. Those of step 1 say how many there are, and serve the
    // check of zeros below.
    const std::vector<double> first = numbers(1);
    Elements of{
        .parameter = update_argument("parameter"), .gradient = update_argument("gradient"), .slots = {}, .numbers = {}};
    for (const std::string& slot : slots) of.slots.push_back(update_argument(slot));
    for (std::size_t number = 0; number < first.size(); ++number) {
      of.numbers.push_back(update_argument(fmt::format("number_{}", number)));
    }
    const Updated updated = describe(of);
    if (updated.slots.size() != slots.size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("optimizer {}: describe() gives {} slots, and slot_names() {}", name(),
                              updated.slots.size(), slots.size()));
    }
    UpdateDescription description{.optimizer = name(),
                                  .arguments = {of.parameter, of.gradient},
                                  .numbers = of.numbers,
                                  .results = {updated.parameter}};
    description.arguments.insert(description.arguments.end(), of.slots.begin(), of.slots.end());
    description.results.insert(description.results.end(), updated.slots.begin(), updated.slots.end());
    compute::ElementProgram program = compile_update(description);
    fill_in(first, program);
    require_zeros_of_zeros(name(), program, slots);
    compiled_->program = program;
    compiled_->loop = find_rule_loop(program);
    compiled_->numbers = first.size();
  });
  return *compiled_;
}

std::shared_ptr<const UpdatePass> DescribedOptimizer::pass(std::int64_t step) const {
  HOLDFAST_ASSERT(step >= 1);
  const Compiled& known = compiled();
  const std::vector<double> now = numbers(step);
  if (now.size() != known.numbers) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("optimizer {}: numbers() gives {} numbers for step {}, and {} for step 1", name(),
                            now.size(), step, known.numbers));
  }
  for (std::size_t i = 0; i < now.size(); ++i) {
    // A larger one has no float.
    if (std::abs(now[i]) <= std::numeric_limits<float>::max()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("optimizer {}: number {} of numbers() is {} for step {}; it must be a finite float", name(),
                            i, now[i], step));
  }
  compute::ElementProgram program = known.program;
  fill_in(now, program);
  // The numbers of a later step could move what is zero.
  require_zeros_of_zeros(name(), program, slot_names());
  return std::make_shared<UpdatePass>(UpdatePass{program});
}

void DescribedOptimizer::update(std::int64_t step, std::span<float> parameters, std::span<const float> gradients,
                                std::span<const std::span<float>> slots) const {
  const std::shared_ptr<const UpdatePass> own = pass(step);
  const UpdateArrays arrays = {parameters, gradients, slots};
  // The loop has the bits of the program (rule_loop.h), and needs one pass over memory.
  if (!compiled_->loop) return run_pass(*own, arrays);
  run_rule_loop(*compiled_->loop, std::get<compute::ElementProgram>(own->step), arrays);
}

}  // namespace holdfast
