#pragma once

// The layers of one functional model of Keras and the calls between them, as its JSON lists them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bytes/json.h"

namespace holdfast::format {

// An output of a call of a layer.
struct KerasReference {
  std::string layer;
  std::int64_t node;
  std::int64_t tensor;
};

// A call of a layer.
struct KerasNode {
  std::size_t entry;
  std::vector<KerasReference> inputs;
  // In the order of the arguments: a number, or missing where an input stands.
  std::vector<std::optional<double>> arguments;
  // The argument `training`, where the call gives one.
  std::optional<bool> training{};
  bool is_reversed = false;     // the argument `reverse` of a ReversibleEmbedding
  const Json* index = nullptr;  // what GetItem takes between brackets
  // Arguments that are true or false, and those that are values after the inputs without a name (LayerRow).
  std::vector<std::string> flags{};
  std::vector<std::string> named{};
};

// An entry of a model's list of layers.
struct KerasEntry {
  const Json* json;
  std::string name;
  std::string class_name;
  bool is_operation;
  bool is_model;
  bool has_old_nodes = false;        // as lists, which Keras 2 wrote
  std::vector<std::size_t> nodes{};  // in order
};

// The layers of one model and the calls between them.
class KerasContainer {
 public:
  // Both references outlive the container. `path` is that of a nested model, empty for the outermost one; `label` names
  // the file in messages. All functions throw Error{invalid_file} or Error{unsupported} for what no model has.
  KerasContainer(const Json& config, std::string path, const std::string& label);

  const std::vector<KerasEntry>& entries() const { return entries_; }
  const std::vector<KerasNode>& nodes() const { return nodes_; }

  // Reads the calls of all layers. The functions below that speak of nodes come after it.
  void read_nodes();

  // The references in a list of inputs or outputs, in the order of Keras.
  std::vector<KerasReference> references(const char* key) const;

  // The node that a reference names. `counts_model` says that Keras counted a nested model's own graph as its call 0.
  std::size_t node_of(const KerasReference& reference, bool counts_model) const;

  bool has_old_nodes(const KerasNode& node) const { return entries_[node.entry].has_old_nodes; }

  // The nodes that the outputs need, each after those that it depends on.
  std::vector<std::size_t> nodes_in_order(const std::vector<KerasReference>& outputs) const;

  [[noreturn]] void refuse(const std::string& problem) const;

  std::string path_of(const KerasEntry& entry) const;

 private:
  std::string shown(std::size_t entry) const { return shown(entries_[entry]); }
  std::string shown(const KerasEntry& entry) const;

  void add_entry(const Json& json);

  void add_node(std::size_t entry, const Json& json);

  // Reads the named arguments of a call. A mask would be a value, and the others change what the layer computes.
  void read_options(std::size_t entry, const Json& options, KerasNode& node) const;
  void read_named_values(std::size_t entry, const Json& options, KerasNode& node) const;
  [[noreturn]] void refuse_argument(std::size_t entry, const std::string& name) const;

  static std::optional<KerasReference> reference_from(const Json& list);

  void collect_references(const Json& json, std::size_t depth, const char* place,
                          std::vector<KerasReference>& found) const;

  void collect_argument(std::size_t entry, const Json& argument, std::size_t depth, KerasNode& node) const;

  const Json& config_;
  const std::string path_;
  const std::string& label_;
  std::vector<KerasEntry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<KerasNode> nodes_;
};

}  // namespace holdfast::format
