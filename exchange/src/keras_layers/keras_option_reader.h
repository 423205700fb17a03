#pragma once

// Reads the options of a Keras layer or function, and refuses those that Holdfast does not have by name.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "keras_files/keras_json.h"
#include "keras_layers/keras_layer_reader.h"
#include "keras_layers/keras_layer_table.h"

namespace holdfast::format {

class KerasOptionReader {
 public:
  // Both must outlive the reader.
  KerasOptionReader(const KerasCall& call, std::vector<std::string>& notes)
      : call_(call), config_(call.config), notes_(notes) {}

  // The value in a file of Holdfast. `read` has the options of the row before this one.
  Json value(const LayerRow& row, const LayerOption& option, const Json& read) const;

  // Fails unless the option is missing or has the value.
  void require(std::string_view key, const Json& expected) const;
  // Fails for an option that nobody knows, unless it is off: null, false or an empty list.
  void refuse_unknown(const LayerRow& row) const;
  // Keras counts the axis of samples, Holdfast does not.
  std::int64_t axis(std::string_view key, std::int64_t otherwise) const;
  // The number of axes of the first input.
  std::size_t rank() const;

  // Adds the sentence "layer PATH PROBLEM".
  void note(const std::string& problem) const;
  // Both throw Error{unsupported}.
  [[noreturn]] void refuse(const std::string& problem) const;
  [[noreturn]] void refuse_option(std::string_view key) const;

 private:
  const Json& given(const LayerOption& option) const;
  Json read_count(const LayerOption& option, const Json& value, std::int64_t least) const;
  Json read_number(const LayerOption& option, const Json& value) const;
  Json read_counts(const LayerOption& option, const Json& value, std::size_t positions, std::int64_t least) const;
  Json read_margins(const LayerOption& option, const Json& value, std::size_t positions) const;
  Json read_padding(const LayerOption& option, const Json& value) const;
  Json read_integers(const LayerOption& option, const Json& value) const;
  Json read_regularizer(const LayerOption& option, const Json& value) const;
  Json read_constraint(const LayerOption& option, const Json& value) const;
  Json read_initializer(const LayerOption& option, const Json& value) const;
  Json read_cell_activation(const LayerOption& option, const Json& value) const;
  Json read_activation(const LayerOption& option, const Json& value) const;
  Json read_axes(const LayerOption& option, const Json& value) const;
  Json read_last_axes(const LayerOption& option, const Json& value) const;
  Json read_two_axes(const LayerOption& option, const Json& value) const;
  Json read_text(const LayerOption& option, const Json& value) const;
  Json read_partial_shape(const LayerOption& option, const Json& value) const;
  Json read_statistics(const LayerOption& option, const Json& value) const;
  std::int64_t axis_in(std::string_view key, const Json& value, std::size_t rank) const;
  void require_last_axis(std::string_view key, const Json& value) const;

  const KerasCall& call_;
  const Json& config_;
  std::vector<std::string>& notes_;
};

}  // namespace holdfast::format
