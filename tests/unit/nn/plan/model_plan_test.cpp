// Plans of random models give the same bits whatever computes them: any number of threads, any instruction set.

#include "nn/plan/model_plan.h"

#include <gtest/gtest.h>

#include "compute/cpu/kernels/vector_kernels.h"
#include "unit/nn/support/random_model.h"

namespace holdfast {
namespace {

using namespace random_models;

class PlansOfOwnLoops : public testing::Test {
 protected:
  ~PlansOfOwnLoops() override { compute::force_instruction_set(std::nullopt); }
};

// Without products of matrices, which are a library's and may differ. Samples are so many that threads share a loop.
TEST_F(PlansOfOwnLoops, GiveTheSameBitsOnAllThreadsAndInstructionSets) {
  constexpr std::int64_t kManySamples = 17001;  // arrays of 102,006 floats, worth three threads (compute/cpu/parts.h)
  const auto sets = compute::supported_instruction_sets();
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Model model = random_model(number, Segments::kept, Products::none);
    const TrainingOptions options = {.tile_bytes = number % 2 == 0 ? 0U : 65536U, .least_row = number % 3 == 0 ? 6 : 0};
    TrainingOptions on_threads = options;
    compute::force_instruction_set(compute::InstructionSet::baseline);
    const Result expected = train(model, kManySamples, options);
    // The next models take the other pairs of a set and a number of threads.
    for (std::uint64_t run = 2 * number; run < 2 * number + 2; ++run) {
      const compute::InstructionSet set = sets[run % sets.size()];
      on_threads.threads = 1 + static_cast<int>(run / sets.size() % 3);
      compute::force_instruction_set(set);
      EXPECT_EQ(train(model, kManySamples, on_threads), expected)
          << "model " << number << " with " << name_of(set) << " and " << on_threads.threads << " threads";
    }
  }
}

}  // namespace
}  // namespace holdfast
