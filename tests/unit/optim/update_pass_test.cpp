#include "optim/update_pass.h"

#include <gtest/gtest.h>

#include <cstring>

#include "holdfast/core/random.h"
#include "holdfast/optim/adam.h"
#include "holdfast/optim/rmsprop.h"
#include "holdfast/optim/sgd.h"
#include "support/passes.h"

namespace holdfast {
namespace {

// More slots than a pass is shared with.
class NineSlots final : public Optimizer {
 public:
  std::string name() const override { return "nine_slots"; }
  std::string configuration() const override { return R"({"kind":"nine_slots"})"; }
  std::unique_ptr<Optimizer> clone() const override { return std::make_unique<NineSlots>(); }
  std::vector<std::string> slot_names() const override {
    std::vector<std::string> names;
    for (int slot = 0; slot < 9; ++slot) names.push_back(std::to_string(slot));
    return names;
  }
  void update(std::int64_t, std::span<float> parameters, std::span<const float> gradients,
              std::span<const std::span<float>> slots) const override {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      for (const std::span<float>& slot : slots) slot[i] += gradients[i];
      parameters[i] -= slots[8][i];
    }
  }
};

std::vector<float> updated(const Optimizer& optimizer, const ArrayPasses& passes) {
  constexpr std::size_t kFloats = 1003;
  Random random(3, Purpose::user, 0, 0);
  std::vector<float> parameters(kFloats), gradients(kFloats);
  for (float& value : parameters) value = random.normal();
  for (float& value : gradients) value = random.normal();
  std::vector<std::vector<float>> slots(optimizer.slot_names().size(), std::vector<float>(kFloats));
  const std::vector<std::span<float>> spans(slots.begin(), slots.end());
  const auto backend = compute::make_cpu_backend(1);
  for (std::int64_t step = 1; step <= 3; ++step) {
    update_arrays(*backend, optimizer, step, {parameters, gradients, spans}, passes);
  }
  for (const std::vector<float>& slot : slots) parameters.insert(parameters.end(), slot.begin(), slot.end());
  return parameters;
}

TEST(UpdateArrays, GiveTheSameBitsHoweverThePassIsCut) {
  const Adam adam(0.01F);
  const SGD sgd({.learning_rate = 0.1F, .momentum = 0.9F});
  const RMSprop rmsprop;
  const NineSlots nine_slots;
  for (const Optimizer* const optimizer : std::initializer_list<const Optimizer*>{&adam, &sgd, &rmsprop, &nine_slots}) {
    const std::vector<float> alone = updated(*optimizer, pass_alone);
    const std::vector<float> in_pieces = updated(*optimizer, pass_in_pieces);

    ASSERT_EQ(in_pieces.size(), alone.size());
    EXPECT_EQ(std::memcmp(in_pieces.data(), alone.data(), alone.size() * sizeof(float)), 0) << optimizer->name();
  }
}

}  // namespace
}  // namespace holdfast
