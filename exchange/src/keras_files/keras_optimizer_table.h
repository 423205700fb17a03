#pragma once

// Keras's optimizers: what they keep for each trainable variable, and what Holdfast calls it.

#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// How Keras keeps a slot. All but `whole` are of Adafactor (keras_adafactor.h).
enum class SlotKind { whole, row_factor, column_factor, product_of_factors };

struct KerasOptimizerSlot {
  std::string_view keras;
  std::string_view holdfast;
  int pass = 0;                      // Keras visits the trainable variables once for each pass, in this order
  std::string_view option{};         // the slot exists where this option is true or above 0; empty: always
  std::string_view initial{};        // the option whose value the elements begin with; empty: they begin with 0
  bool is_for_adam_alone = false;    // of Muon: only arrays have it that Adam updates (keras_muon.h)
  bool begins_as_parameter = false;  // in Keras; Holdfast's slot is 0 until the first step, which takes the parameter
  SlotKind kind = SlotKind::whole;
};

struct KerasOptimizerKind {
  std::string_view keras;     // the class: "RMSprop"
  std::string_view holdfast;  // the kind in a savepoint: "rmsprop"
  std::vector<KerasOptimizerSlot> slots;
  std::string_view product{};   // a scalar after all slots, which Holdfast computes from the step; empty if none
  bool requires_decay = false;  // Keras accepts no None as its weight_decay
};

// A pass creates all of its slots for one variable before it goes to the next.
using KerasOptimizerPass = std::vector<KerasOptimizerSlot>;

// Null for an unknown name. The result lives as long as the program.
const KerasOptimizerKind* keras_optimizer_of_class(std::string_view class_name);
const KerasOptimizerKind* keras_optimizer_of_kind(std::string_view kind);

// The passes that create slots with these options. Options have the same names on both sides.
std::vector<KerasOptimizerPass> keras_optimizer_passes(const KerasOptimizerKind& kind, const Json& options);

}  // namespace holdfast::format
