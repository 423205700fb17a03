// Arrays that follow each other and have one rule are one range. Elements do not depend on how arenas are cut, so the
// bits are those of the rule alone. An optimizer that needs whole arrays has a range for each of them.
// docs/decisions/optimizers.md

#include "train/step/grouped_update.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/json_object.h"
#include "core/name_pattern.h"
#include "holdfast/base/error.h"

namespace holdfast {
namespace {

// The rate of another learning rate times a factor. Its configuration is in no savepoint: the factors stand in that of
// the optimizer itself.
class ScaledRate final : public LearningRateSchedule {
 public:
  ScaledRate(LearningRate rate, float factor) : rate_(std::move(rate)), factor_(factor) {}
  std::string configuration() const override {
    return JsonObject("scaled").value("rate", rate_.configuration()).text();
  }
  std::unique_ptr<LearningRateSchedule> clone() const override { return std::make_unique<ScaledRate>(*this); }
  float rate_after(std::int64_t updates) const override { return rate_.of_update(updates + 1) * factor_; }

 private:
  LearningRate rate_;
  float factor_;
};

// A misspelled pattern would otherwise leave all arrays with the common rule, and nothing would show it.
void require_a_match(const Optimizer& optimizer, const std::string& pattern, const std::vector<std::string>& names) {
  if (std::ranges::any_of(names, [&](const std::string& name) { return matches_array(pattern, name); })) return;
  throw Error(
      ErrorCode::not_found,
      fmt::format("optimizer {}: the pattern \"{}\" matches no array of the model; its arrays have names such as "
                  "\"{}\"",
                  optimizer.name(), pattern, names.empty() ? "dense/kernel" : names.front()));
}

[[noreturn]] void refuse_rule(const Optimizer& optimizer, const char* rule, const char* function) {
  throw Error(ErrorCode::unsupported, fmt::format("optimizer {} has {} of single arrays, and its {} gives no optimizer "
                                                  "for them; override it",
                                                  optimizer.name(), rule, function));
}

}  // namespace

GroupedUpdate::Rule GroupedUpdate::rule_of(const ParameterRules& rules, const std::string& name) {
  Rule rule;
  // The last pattern that fits decides, so a general one may come before an exception from it.
  for (const LearningRateFactor& factor : rules.learning_rate_factors) {
    if (matches_array(factor.pattern, name)) rule.learning_rate = factor.factor;
  }
  for (const WeightDecayFactor& factor : rules.weight_decay_factors) {
    if (matches_array(factor.pattern, name)) rule.weight_decay = factor.factor;
  }
  const bool is_excluded = std::ranges::any_of(
      rules.exclude_from_weight_decay, [&](const std::string& pattern) { return matches_array(pattern, name); });
  if (is_excluded) rule.weight_decay = 0;
  return rule;
}

GroupedUpdate::GroupedUpdate(const Optimizer& optimizer, const ArenaLayout& layout,
                             const std::vector<std::string>& names)
    : entries_(layout.entries().begin(), layout.entries().end()), has_whole_arrays_(optimizer.needs_whole_arrays()) {
  const ParameterRules rules = optimizer.parameter_rules();
  for (const std::string& pattern : rules.exclude_from_weight_decay) require_a_match(optimizer, pattern, names);
  for (const LearningRateFactor& factor : rules.learning_rate_factors) {
    require_a_match(optimizer, factor.pattern, names);
  }
  for (const WeightDecayFactor& factor : rules.weight_decay_factors) require_a_match(optimizer, factor.pattern, names);
  for (const std::string& pattern : rules.patterns_of_optimizer) require_a_match(optimizer, pattern, names);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ArenaEntry& entry = entries_[i];
    const Rule rule = rule_of(rules, entry.name);
    const auto place = static_cast<std::size_t>(std::ranges::find(rules_, rule) - rules_.begin());
    if (place == rules_.size()) rules_.push_back(rule);
    // Padding belongs to the array before it.
    if (!groups_.empty()) groups_.back().end = entry.offset;
    if (has_whole_arrays_ || groups_.empty() || groups_.back().rule != place)
      groups_.push_back({.begin = entry.offset, .rule = place, .entry = i});
    groups_.back().end = layout.float_count();
  }
  make_optimizers(optimizer);
}

// Null stands for the optimizer itself, so that arrays without rules follow a rate that a callback sets.
void GroupedUpdate::make_optimizers(const Optimizer& optimizer) {
  optimizers_.clear();
  for (const Rule& rule : rules_) {
    std::unique_ptr<Optimizer> changed;
    if (rule.weight_decay != 1) {
      changed = optimizer.with_weight_decay_times(rule.weight_decay);
      if (changed == nullptr) refuse_rule(optimizer, "rules for weight decay", "with_weight_decay_times()");
    }
    if (rule.learning_rate != 1) {
      const Optimizer& from = changed ? *changed : optimizer;
      const std::optional<LearningRate> rate = from.learning_rate();
      if (rate) changed = from.with_learning_rate(ScaledRate(*rate, rule.learning_rate));
      if (!rate || changed == nullptr) refuse_rule(optimizer, "learning rates", "with_learning_rate()");
    }
    optimizers_.push_back(std::move(changed));
  }
}

void GroupedUpdate::update(compute::Backend& backend, const Optimizer& optimizer, std::optional<float> rate,
                           std::int64_t step, const UpdateArrays& arrays, const ArrayPasses& passes) {
  // A callback has set another rate, from which those with factors follow.
  if (made_for_ != rate) {
    make_optimizers(optimizer);
    made_for_ = rate;
  }
  if (!has_whole_arrays_ || backend.device_kernels() != nullptr) {
    // A member, so that a step with few groups allocates nothing.
    slots_.resize(arrays.slots.size());
    for (const Group& group : groups_) {
      update_group(backend, group, optimizer, step, arrays, has_whole_arrays_ ? ArrayPasses(pass_alone) : passes,
                   slots_);
    }
    return;
  }
  // The mean size of an array, which only says whether the work is worth several threads.
  const std::size_t floats_each = arrays.parameters.size() / std::max<std::size_t>(groups_.size(), 1);
  // An array is read and written, its gradient is read, and each slot is read and written.
  passes(groups_.size(), floats_each * (3 + 2 * arrays.slots.size()), [&](std::size_t begin, std::size_t end) {
    std::vector<std::span<float>> slots(arrays.slots.size());
    for (std::size_t group = begin; group < end; ++group) {
      update_group(backend, groups_[group], optimizer, step, arrays, pass_alone, slots);
    }
  });
}

void GroupedUpdate::update_group(compute::Backend& backend, const Group& group, const Optimizer& optimizer,
                                 std::int64_t step, const UpdateArrays& arrays, const ArrayPasses& passes,
                                 std::span<std::span<float>> slots) const {
  const std::size_t floats = group.end - group.begin;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    slots[slot] = arrays.slots[slot].subspan(group.begin, floats);
  }
  const ArenaEntry& entry = entries_[group.entry];
  const ParameterArray array{.name = entry.name, .shape = &entry.shape};
  update_arrays(backend, optimizers_[group.rule] ? *optimizers_[group.rule] : optimizer, step,
                {arrays.parameters.subspan(group.begin, floats), arrays.gradients.subspan(group.begin, floats), slots,
                 has_whole_arrays_ ? &array : nullptr},
                passes);
}

}  // namespace holdfast
