#pragma once

// The layers that Keras and Holdfast both have, and how their options are written on either side.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"

namespace holdfast::format {

// What an option holds, by which both its checks and its other form follow.
enum class OptionForm {
  flag,
  count,            // an integer of at least 1
  count_or_all,     // a count, or -1
  number,           // a finite one
  at_least_0,       // a finite number
  rate,             // from 0 to below 1
  fraction,         // from 0 to 1
  epsilon,          // above 0 as an f32
  limit,            // a number of at least 0 or null in Keras, a list of one such in Holdfast
  counts,           // one for each axis of positions; Keras may have one number for all of them
  pool_strides,     // counts; those of "pool_size" where Keras has none
  optional_counts,  // from 0; null in Keras where Holdfast has none
  margins,          // before and after each axis of positions: a flat list in Holdfast
  padding,          // "valid" or "same"
  causal_padding,   // also "causal"
  axis,             // Keras counts the axis of samples
  axes,             // a list of those, in Keras perhaps null or one number
  two_axes,         // of two inputs; Keras may have one number for both
  last_axis,        // Keras can name another one, Holdfast has no option
  last_axes,        // a list of the last ones; in Keras perhaps one number
  interpolation,    // "nearest" or "bilinear"
  target_shape,     // of a sample, -1 for the extent that follows from the others
  order,            // of axes, counted from 1 on both sides
  activation,       // keras_activation.h
  initializer,      // keras_initializer.h
  regularizer,      // keras_regularizer.h; null in Keras where Holdfast has none
  constraint,       // keras_constraint.h; likewise
  equation,         // a text
  letters,          // a text; null in Keras where it is empty
  partial_shape,    // of a sample; -1 for an extent of the input, which is null in Keras
  statistics,       // a list of numbers in Holdfast; null in Keras, which keeps them as weights
  count_or_none,    // at least 1; null in Keras where Holdfast has 0
  cell_activation,  // one of those that recurrent layers have
  score_mode,       // "dot" or "concat"
};

struct LayerOption {
  std::string_view keras;  // its name
  OptionForm form;
  const char* otherwise = nullptr;  // what Keras takes where a file lacks it, as JSON; null if none may lack it
  std::string_view holdfast = {};   // its name, if it is another one
  bool is_left_out = false;         // in files of Holdfast, where it is `otherwise`
  std::string_view old_keras = {};  // its name in Keras 2, if it was another one
  // Also left out in files of Keras, which so keep the text that they had before the option.
  bool is_silent = false;

  std::string_view holdfast_name() const { return holdfast.empty() ? keras : holdfast; }
};

// An option of Keras that Holdfast lacks, and the only value with which both compute the same.
struct LayerRequirement {
  std::string_view keras;
  const char* value;  // as JSON; a missing or null option has it
};

// An argument of a call in Keras that is a value. In Holdfast it is an input after those without a name.
struct CallValue {
  std::string_view keras;      // "attention_mask"
  std::string_view flag = {};  // the option that says whether it is there; empty where their number says it
  bool is_list = false;        // several values
};

struct LayerRow {
  std::string_view kind;      // in Holdfast
  std::string_view keras;     // its class
  std::size_t positions = 0;  // axes of a sample before its channels; 0 where the layer takes any number
  std::vector<LayerOption> options = {};
  std::vector<LayerRequirement> requirements = {};
  bool has_data_format = false;
  bool takes_list = false;      // merges several values
  bool takes_trainable = true;  // Keras's constructor has the argument `trainable`
  // Arguments of a call in Keras that are options in Holdfast: true or false, and values in the order of the inputs.
  std::vector<std::string_view> call_flags = {};
  std::vector<CallValue> call_values = {};
  // Other options that keras_layer_reader.cpp reads.
  std::vector<std::string_view> read_by_name = {};
  // The names under which Keras's call takes the first values, in their order.
  std::vector<std::string_view> argument_names = {};
};

// Whether recurrent layers have this activation on both sides.
bool is_cell_activation(const Json& value);
// Whether a number is one that an option of this form may have on both sides.
bool fits_form(OptionForm form, const Json& value);

// All rows, sorted by neither name. A kind with several classes (global pooling) has a row for each.
std::span<const LayerRow> layer_rows();
// Null for a class that the table lacks. Older names of classes are known, too.
const LayerRow* row_of_keras_class(std::string_view class_name);
// Null for a kind that the table lacks. `positions` chooses among the rows of a kind.
const LayerRow* row_of_kind(std::string_view kind, std::size_t positions);
// Whether a kind of the table has a row for each number of positions.
bool has_row_for_each_rank(std::string_view kind);

}  // namespace holdfast::format
