// One row says all about an optimizer, so that the reader of Keras's lists and the writer of savepoints cannot
// disagree. The slots and passes are those of each class's build() in Keras 3. docs/decisions/exchange.md

#include "keras_files/keras_optimizer_table.h"

#include <algorithm>

namespace holdfast::format {
namespace {

const std::vector<KerasOptimizerKind>& optimizer_kinds() {
  // Keras calls Adam's first moment momentum, and its second one velocity.
  static const std::vector<KerasOptimizerKind> kinds = {
      {"SGD", "sgd", {{"momentum", "momentum", 0, "momentum"}}},
      {"RMSprop",
       "rmsprop",
       {{"velocity", "velocity"},
        {"momentum", "momentum", 1, "momentum"},
        {"average_gradient", "average_gradient", 2, "centered"}}},
      {"Adam", "adam", {{"momentum", "m"}, {"velocity", "v"}, {"velocity_hat", "v_hat", 1, "amsgrad"}}},
      {"AdamW",
       "adamw",
       {{"momentum", "m"}, {"velocity", "v"}, {"velocity_hat", "v_hat", 1, "amsgrad"}},
       "",
       /*requires_decay=*/true},
      {"Nadam", "nadam", {{"momentum", "momentum"}, {"velocity", "velocity"}}, "u_product"},
      {"Adamax", "adamax", {{"momentum", "momentum"}, {"norm", "norm"}}},
      {"Adagrad", "adagrad", {{"accumulator", "accumulator", 0, "", "initial_accumulator_value"}}},
      {"Adadelta",
       "adadelta",
       {{"accumulated_grad", "accumulated_grad"}, {"accumulated_delta_var", "accumulated_delta_var"}}},
      {"Lion", "lion", {{"momentum", "momentum"}}},
      {"Lamb", "lamb", {{"momentum", "momentum"}, {"velocity", "velocity"}}},
      {"Adafactor",
       "adafactor",
       {{.keras = "r", .holdfast = "row_velocity", .kind = SlotKind::row_factor},
        {.keras = "c", .holdfast = "column_velocity", .kind = SlotKind::column_factor},
        {.keras = "velocity", .holdfast = "row_velocity", .kind = SlotKind::product_of_factors}}},
      {"Ftrl", "ftrl", {{"accumulator", "accumulator", 0, "", "initial_accumulator_value"}, {"linear", "linear"}}},
      {"ScheduleFreeAdamW",
       "schedule_free_adamw",
       {{"momentum", "momentum", 0, "", "", false, /*begins_as_parameter=*/true}, {"velocity", "velocity"}}},
      {"Muon", "muon", {{"momentum", "momentum"}, {"velocity", "velocity", 0, "", "", /*is_for_adam_alone=*/true}}},
  };
  return kinds;
}

const KerasOptimizerKind* find_kind(std::string_view KerasOptimizerKind::*name, std::string_view wanted) {
  // A file may lack the name.
  if (wanted.empty()) return nullptr;
  const auto found = std::find_if(optimizer_kinds().begin(), optimizer_kinds().end(),
                                  [&](const KerasOptimizerKind& kind) { return kind.*name == wanted; });
  return found == optimizer_kinds().end() ? nullptr : &*found;
}

// Options are flags, such as `centered`, or numbers, such as `momentum`, of which 0 means none.
bool is_option_on(const Json& options, std::string_view option) {
  return option.empty() || flag_member(options, option, false) || number_member(options, option) > 0;
}

}  // namespace

const KerasOptimizerKind* keras_optimizer_of_class(std::string_view class_name) {
  return find_kind(&KerasOptimizerKind::keras, class_name);
}

const KerasOptimizerKind* keras_optimizer_of_kind(std::string_view kind) {
  return find_kind(&KerasOptimizerKind::holdfast, kind);
}

std::vector<KerasOptimizerPass> keras_optimizer_passes(const KerasOptimizerKind& kind, const Json& options) {
  std::vector<KerasOptimizerPass> passes;
  for (const KerasOptimizerSlot& slot : kind.slots) {
    if (!is_option_on(options, slot.option)) continue;
    // Slots stand in the order of their passes, so a new number begins a new pass. A pass all of whose slots are off is
    // not there.
    if (passes.empty() || passes.back().back().pass != slot.pass) passes.emplace_back();
    passes.back().push_back(slot);
  }
  return passes;
}

}  // namespace holdfast::format
