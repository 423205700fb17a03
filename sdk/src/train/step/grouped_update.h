#pragma once

// An optimizer with rules for single arrays (parameter_rules.h), or one that needs whole arrays, as optimizers for
// ranges of the arenas.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/core/arena.h"
#include "optim/update_pass.h"

namespace holdfast {

class GroupedUpdate {
 public:
  // `names` are those of all arrays of the model, also of frozen ones, which a pattern may match. Throws
  // Error{not_found} for a pattern that matches none, and Error{unsupported} if the optimizer has rules that it cannot
  // follow.
  GroupedUpdate(const Optimizer& optimizer, const ArenaLayout& layout, const std::vector<std::string>& names);

  // As update_arrays(), with the optimizer of the constructor, or the same one with the learning rate `rate` if there
  // is one. Optimizers of the ranges are made when the rate changes.
  void update(compute::Backend& backend, const Optimizer& optimizer, std::optional<float> rate, std::int64_t step,
              const UpdateArrays& arrays, const ArrayPasses& passes);

 private:
  struct Rule {
    float learning_rate = 1;  // factors
    float weight_decay = 1;

    friend bool operator==(const Rule&, const Rule&) = default;
  };
  // Floats [begin, end) of the arenas.
  struct Group {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t rule = 0;
    std::size_t entry = 0;  // of the layout: its first array
  };

  void update_group(compute::Backend& backend, const Group& group, const Optimizer& optimizer, std::int64_t step,
                    const UpdateArrays& arrays, const ArrayPasses& passes, std::span<std::span<float>> slots) const;
  static Rule rule_of(const ParameterRules& rules, const std::string& name);
  void make_optimizers(const Optimizer& optimizer);

  std::vector<ArenaEntry> entries_;  // of the layout
  const bool has_whole_arrays_;      // each group is one array, and no thread gets a part of it
  std::vector<Rule> rules_;          // that differ
  std::vector<Group> groups_;
  std::optional<float> made_for_;                       // the rate
  std::vector<std::unique_ptr<Optimizer>> optimizers_;  // one for each rule; null: the optimizer itself
  std::vector<std::span<float>> slots_;                 // of a range; kept, since a step allocates nothing
};

}  // namespace holdfast
