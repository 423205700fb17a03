// What every optimizer promises.

#include "holdfast/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "holdfast/core/random.h"
#include "holdfast/optim/adadelta.h"
#include "holdfast/optim/adagrad.h"
#include "holdfast/optim/adam.h"
#include "holdfast/optim/adamax.h"
#include "holdfast/optim/adamw.h"
#include "holdfast/optim/exponential_decay.h"
#include "holdfast/optim/lion.h"
#include "holdfast/optim/nadam.h"
#include "holdfast/optim/polynomial_decay.h"
#include "holdfast/optim/rmsprop.h"
#include "holdfast/optim/sgd.h"

namespace holdfast {
namespace {

struct Arenas {
  std::vector<float> parameters;
  std::vector<float> gradients;
  std::vector<std::vector<float>> slots;

  friend bool operator==(const Arenas&, const Arenas&) = default;
};

Arenas random_arenas(const Optimizer& optimizer, std::size_t count) {
  Random random(1, Purpose::user, 0, count);
  Arenas arenas;
  for (std::size_t i = 0; i < count; ++i) arenas.parameters.push_back(random.normal());
  for (std::size_t i = 0; i < count; ++i) arenas.gradients.push_back(0.1F * random.normal());
  arenas.slots.assign(optimizer.slot_names().size(), std::vector<float>(count));
  return arenas;
}

void update_range(const Optimizer& optimizer, std::int64_t step, Arenas& arenas, std::size_t begin, std::size_t end) {
  std::vector<std::span<float>> slots;
  for (std::vector<float>& slot : arenas.slots) slots.push_back(std::span(slot).subspan(begin, end - begin));
  optimizer.update(step, std::span(arenas.parameters).subspan(begin, end - begin),
                   std::span(arenas.gradients).subspan(begin, end - begin), slots);
}

class EveryOptimizer : public testing::TestWithParam<const Optimizer*> {
 protected:
  const Optimizer& optimizer() const { return *GetParam(); }
};

TEST_P(EveryOptimizer, IsTheSameButForTheLearningRateThatItIsGiven) {
  ASSERT_TRUE(optimizer().learning_rate());
  const std::unique_ptr<Optimizer> changed = optimizer().with_learning_rate(0.25F);

  ASSERT_NE(changed, nullptr);
  EXPECT_EQ(changed->learning_rate()->constant(), 0.25F);
  nlohmann::json expected = nlohmann::json::parse(optimizer().configuration());
  expected["learning_rate"] = 0.25;
  EXPECT_EQ(nlohmann::json::parse(changed->configuration()), expected);
}

TEST_P(EveryOptimizer, GivesTheSameBitsHoweverTheArenaIsCut) {
  constexpr std::size_t kCount = 1003;
  Arenas whole = random_arenas(optimizer(), kCount);
  Arenas cut = whole;

  for (std::int64_t step = 1; step <= 3; ++step) {
    update_range(optimizer(), step, whole, 0, kCount);
    // Ranges with and without a remainder, aligned and unaligned, and an empty one.
    const std::vector<std::size_t> cuts = {0, 1, 4, 7, 7, 64, 81, 500, kCount};
    for (std::size_t i = cuts.size() - 1; i > 0; --i) update_range(optimizer(), step, cut, cuts[i - 1], cuts[i]);
  }

  EXPECT_TRUE(whole == cut);
}

TEST_P(EveryOptimizer, KeepsPaddingAtZero) {
  Arenas arenas = random_arenas(optimizer(), 32);
  std::fill(arenas.parameters.begin() + 20, arenas.parameters.end(), 0.0F);
  std::fill(arenas.gradients.begin() + 20, arenas.gradients.end(), 0.0F);

  for (std::int64_t step = 1; step <= 10; ++step) update_range(optimizer(), step, arenas, 0, 32);

  EXPECT_TRUE(
      std::all_of(arenas.parameters.begin() + 20, arenas.parameters.end(), [](float value) { return value == 0; }));
  for (const std::vector<float>& slot : arenas.slots) {
    EXPECT_TRUE(std::all_of(slot.begin() + 20, slot.end(), [](float value) { return value == 0; }));
  }
}

TEST_P(EveryOptimizer, PassesANonFiniteGradientToItsOwnElementOnly) {
  Arenas arenas = random_arenas(optimizer(), 8);
  arenas.gradients[3] = std::numeric_limits<float>::quiet_NaN();

  update_range(optimizer(), 1, arenas, 0, 8);

  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(std::isnan(arenas.parameters[i]), i == 3) << i;
}

TEST_P(EveryOptimizer, TakesAnEmptyRange) {
  Arenas arenas = random_arenas(optimizer(), 0);

  update_range(optimizer(), 1, arenas, 0, 0);

  EXPECT_TRUE(arenas.parameters.empty());
}

TEST_P(EveryOptimizer, IsClonedWithItsOptions) {
  const std::unique_ptr<Optimizer> clone = optimizer().clone();

  EXPECT_EQ(clone->name(), optimizer().name());
  EXPECT_EQ(clone->configuration(), optimizer().configuration());
  EXPECT_EQ(clone->slot_names(), optimizer().slot_names());
}

TEST_P(EveryOptimizer, HasAConfigurationInJsonThatNamesIt) {
  const nlohmann::json configuration = nlohmann::json::parse(optimizer().configuration());

  EXPECT_EQ(configuration.at("kind"), optimizer().name());
}

struct Scheduled {
  std::shared_ptr<const Optimizer> with_schedule;
  std::function<std::shared_ptr<const Optimizer>(float)> with_rate;
};

template <class Kind, class Options>
Scheduled scheduled(Options options, const LearningRateSchedule& schedule) {
  options.learning_rate = schedule;
  return {std::make_shared<Kind>(options), [options](float rate) {
            Options constant = options;
            constant.learning_rate = rate;
            return std::make_shared<Kind>(constant);
          }};
}

// The rate of an update is what the schedule gives for the number of updates before it.
TEST(ScheduledOptimizer, GivesTheBitsOfTheRateOfItsStep) {
  const PolynomialDecay schedule{0.1F, 10, {.end_learning_rate = 0.01F, .power = 2}};
  for (const Scheduled& pair :
       {scheduled<SGD>(SGDOptions{}, schedule), scheduled<SGD>(SGDOptions{.momentum = 0.9F}, schedule),
        scheduled<SGD>(SGDOptions{.momentum = 0.9F, .nesterov = true}, schedule),
        scheduled<Adam>(AdamOptions{}, schedule), scheduled<AdamW>(AdamWOptions{}, schedule),
        scheduled<RMSprop>(RMSpropOptions{.weight_decay = 0.1F}, schedule),
        scheduled<Adagrad>(AdagradOptions{}, schedule), scheduled<Adadelta>(AdadeltaOptions{}, schedule),
        scheduled<Adamax>(AdamaxOptions{}, schedule), scheduled<Nadam>(NadamOptions{}, schedule),
        scheduled<Lion>(LionOptions{.weight_decay = 0.1F}, schedule),
        scheduled<AdamW>(AdamWOptions{.amsgrad = true}, schedule), scheduled<Ftrl>(FtrlOptions{}, schedule),
        scheduled<ScheduleFreeAdamW>(ScheduleFreeAdamWOptions{.weight_decay = 0.1F}, schedule)}) {
    Arenas expected = random_arenas(*pair.with_schedule, 32);
    Arenas found = expected;

    for (std::int64_t step = 1; step <= 12; ++step) {
      update_range(*pair.with_rate(schedule.rate_after(step - 1)), step, expected, 0, 32);
      update_range(*pair.with_schedule, step, found, 0, 32);
    }

    EXPECT_TRUE(found == expected) << pair.with_schedule->configuration();
  }
}

TEST(ScheduledOptimizer, HasTheScheduleInItsConfiguration) {
  const ExponentialDecay schedule{0.5F, 10, 0.25F};
  for (const std::string& configuration :
       {SGD{schedule}.configuration(), Adam{schedule}.configuration(), AdamW{schedule}.configuration()}) {
    EXPECT_EQ(nlohmann::json::parse(configuration).at("learning_rate"),
              nlohmann::json::parse(schedule.configuration()));
  }
}

const SGD kPlain;
const SGD kMomentum{{.momentum = 0.9F}};
const SGD kNesterov{{.momentum = 0.9F, .nesterov = true}};
const Adam kAdam;
const AdamW kAdamW;
const RMSprop kRMSprop;
const RMSprop kCentered{{.momentum = 0.9F, .centered = true, .weight_decay = 0.1F}};
const Adagrad kAdagrad{{.weight_decay = 0.1F}};
const Adadelta kAdadelta{{.weight_decay = 0.1F}};
const Adamax kAdamax{{.weight_decay = 0.1F}};
const Nadam kNadam{{.weight_decay = 0.1F}};
const Lion kLion{{.weight_decay = 0.1F}};
const Adam kAmsgrad{{.amsgrad = true, .weight_decay = 0.1F}};
const Ftrl kFtrl{{.l1_regularization_strength = 0.1F, .weight_decay = 0.1F}};
const ScheduleFreeAdamW kScheduleFree{{.warmup_steps = 3, .weight_decay = 0.1F}};

INSTANTIATE_TEST_SUITE_P(, EveryOptimizer,
                         testing::Values(&kPlain, &kMomentum, &kNesterov, &kAdam, &kAdamW, &kRMSprop, &kCentered,
                                         &kAdagrad, &kAdadelta, &kAdamax, &kNadam, &kLion, &kAmsgrad, &kFtrl,
                                         &kScheduleFree));

}  // namespace
}  // namespace holdfast
