// Keras stores an optimizer's variables as one numbered list. Their meaning follows from the order in which each
// class of optimizer creates its slots (keras_optimizer_table.h). Names are used only if the number and all shapes fit;
// otherwise the numbers stay. docs/decisions/exchange.md

#include "keras_files/keras_optimizer.h"

#include <optional>

#include "keras_files/keras_adafactor.h"
#include "keras_files/keras_muon.h"
#include "keras_files/keras_optimizer_table.h"

namespace holdfast::format {
namespace {

constexpr const char* kIteration = "iteration";
constexpr const char* kLearningRate = "learning_rate";

// The slots that one visit of the trainable variables creates.
struct Slot {
  std::string name;
  bool is_for_adam_alone = false;  // of Muon
  SlotKind kind = SlotKind::whole;
};
using Pass = std::vector<Slot>;

struct Layout {
  std::vector<Pass> passes;
  std::vector<std::string> last;  // scalars after all others
};

bool is_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::u64 || dtype == DType::u32;
}

std::optional<Layout> layout_of_class(const std::string& class_name, const Json& options) {
  const KerasOptimizerKind* kind = keras_optimizer_of_class(class_name);
  if (kind == nullptr) return std::nullopt;
  Layout layout;
  for (const KerasOptimizerPass& slots : keras_optimizer_passes(*kind, options)) {
    Pass& pass = layout.passes.emplace_back();
    for (const KerasOptimizerSlot& slot : slots) {
      pass.push_back({std::string(slot.keras), slot.is_for_adam_alone, slot.kind});
    }
  }
  if (!kind->product.empty()) layout.last.emplace_back(kind->product);
  return layout;
}

// Slots that every optimizer of Keras 3 may have in front of its own.
// In this order, which is that in which Keras's base class creates them.
void add_common_passes(const Json& options, Layout& layout) {
  std::vector<Pass> common;
  if (flag_member(options, "use_ema", false)) common.push_back({{"average"}});
  if (number_member(options, "gradient_accumulation_steps") > 1) common.push_back({{"gradient_accumulator"}});
  layout.passes.insert(layout.passes.begin(), common.begin(), common.end());
}

// Before Keras 3, each slot had a pass of its own.
void split_passes(Layout& layout) {
  std::vector<Pass> split;
  for (const Pass& pass : layout.passes) {
    for (const Slot& slot : pass) split.push_back({slot});
  }
  layout.passes = std::move(split);
}

bool fits(const KerasShape& variable, std::span<const std::uint64_t> shape) {
  return std::equal(variable.shape.begin(), variable.shape.end(), shape.begin(), shape.end());
}

// Returns the names in order; empty if their number or a shape differs.
std::vector<std::string> apply(const Layout& layout, const Json& options, std::size_t first,
                               std::span<const KerasShape> variables, std::span<const KerasShape> trainables) {
  std::vector<std::string> names;
  for (const Pass& pass : layout.passes) {
    for (const KerasShape& trainable : trainables) {
      for (const Slot& slot : pass) {
        if (slot.is_for_adam_alone) {
          const auto is_there = is_for_adam_in_keras(options, trainable.name, trainable.shape);
          // An expression that cannot be judged: then all later positions are
          // uncertain, and numbers are the honest names.
          if (!is_there) return {};
          if (!*is_there) continue;
        }
        const std::size_t index = first + names.size();
        if (index >= variables.size() || !fits(variables[index], keras_slot_shape(slot.kind, trainable.shape))) {
          return {};
        }
        names.push_back(slot.name + "/" + trainable.name);
      }
    }
  }
  names.insert(names.end(), layout.last.begin(), layout.last.end());
  return first + names.size() == variables.size() ? names : std::vector<std::string>{};
}

}  // namespace

std::vector<std::string> keras_optimizer_names(const KerasOptimizer& optimizer, std::span<const KerasShape> variables,
                                               std::span<const KerasShape> trainables) {
  std::vector<std::string> names;
  if (!variables.empty() && variables[0].shape.empty() && is_integer(variables[0].dtype)) names.push_back(kIteration);
  // A learning rate that follows a schedule is not a variable.
  if (names.size() == 1 && variables.size() > 1 && variables[1].shape.empty() && optimizer.is_keras_3 &&
      !is_integer(variables[1].dtype) && !member(member(optimizer.config, "config"), kLearningRate).is_object()) {
    names.push_back(kLearningRate);
  }
  const Json& options = member(optimizer.config, "config");
  if (auto layout = layout_of_class(text_member(optimizer.config, "class_name"), options)) {
    if (optimizer.is_keras_3) {
      add_common_passes(options, *layout);
    } else {
      split_passes(*layout);
    }
    const auto slots = apply(*layout, options, names.size(), variables, trainables);
    names.insert(names.end(), slots.begin(), slots.end());
  }
  // Whatever is not named gets its number, so every variable has a name and the file can be written again.
  for (std::size_t i = names.size(); i < variables.size(); ++i) names.push_back(std::to_string(i));
  return names;
}

}  // namespace holdfast::format
