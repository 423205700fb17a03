// The calls are sorted before they are followed, so that neither a long chain nor a cycle needs recursion. A file is
// not trusted: what is nested or repeated has a limit.

#include "keras/keras_container.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bytes/byte_source.h"
#include "keras_files/keras_model.h"
#include "keras_files/keras_path.h"
#include "keras_layers/keras_layer_reader.h"
#include "keras_layers/keras_layer_table.h"
#include "keras_layers/model_graph.h"

namespace holdfast::format {
namespace {

// Arguments of calls are lists in lists.
constexpr std::size_t kMaxArgumentDepth = 8;

constexpr const char* kSharedSequential =
    "is a Sequential that is called several times, in a file of Keras 2 that does not tell its calls apart; load the "
    "file with Keras 3 and save it again";

bool is_model_class(const std::string& class_name) {
  return class_name == "Functional" || class_name == "Model" || class_name == "Sequential";
}

// Operations have a module, or in older files no options but a name. Every layer has more.
bool is_operation_entry(const Json& entry) {
  // Keras 3 writes the module of each object, which says it without a guess.
  const std::string module = text_member(entry, "module");
  if (!module.empty()) return module.starts_with("keras.src.ops") || module.starts_with("keras.ops");
  const Json& config = member(entry, "config");
  return config.is_object() && config.contains("name") && !config.contains("trainable") && !config.contains("dtype") &&
         member(entry, "inbound_nodes").is_array() && text_member(entry, "class_name") != "InputLayer";
}

}  // namespace

KerasContainer::KerasContainer(const Json& config, std::string path, const std::string& label)
    : config_(config), path_(std::move(path)), label_(label) {
  for (const Json& json : layers_of_config(config)) add_entry(json);
}

void KerasContainer::read_nodes() {
  for (std::size_t entry = 0; entry < entries_.size(); ++entry) {
    const Json& list = member(*entries_[entry].json, "inbound_nodes");
    if (!list.is_array()) refuse(fmt::format("has no list of calls of {}", shown(entry)));
    // The order of the list is the number of a call, by which other calls name its outputs.
    for (const Json& json : list) add_node(entry, json);
    // An input has one call, which has no arguments and is not written.
    if (list.empty() && entries_[entry].class_name == "InputLayer") add_node(entry, Json::array());
  }
}

std::vector<KerasReference> KerasContainer::references(const char* key) const {
  std::vector<KerasReference> result;
  collect_references(member(member(config_, "config"), key), 0, key, result);
  if (result.empty()) refuse(fmt::format("has no {}", key));
  if (result.size() > ModelGraph::kMaxArrays) {
    refuse(fmt::format("has more than {} {}", ModelGraph::kMaxArrays, key));
  }
  return result;
}

std::size_t KerasContainer::node_of(const KerasReference& reference, bool counts_model) const {
  const auto found = by_name_.find(reference.layer);
  if (found == by_name_.end()) refuse(fmt::format("names a layer {} that it lacks", quoted_text(reference.layer)));
  const KerasEntry& entry = entries_[found->second];
  std::int64_t node = reference.node;
  // The call that built a nested model has a number, and is not in the list. A negative number stays as it is, and is
  // refused below.
  if (counts_model && entry.is_model && node >= 0) {
    if (entry.class_name != "Sequential") {
      --node;
    } else if (entry.has_old_nodes) {
      // A Sequential of Keras 2 counts from 0 or from 1. With several calls the two cannot be told apart.
      if (entry.nodes.size() > 1) refuse_keras_layer(shown(entry), "Sequential", kSharedSequential);
      if (node == 1) node = 0;
    }
  }
  if (node < 0 || node >= static_cast<std::int64_t>(entry.nodes.size())) {
    refuse(
        fmt::format("names call {} of layer {}, which has {} calls", reference.node, shown(entry), entry.nodes.size()));
  }
  return entry.nodes[static_cast<std::size_t>(node)];
}

std::vector<std::size_t> KerasContainer::nodes_in_order(const std::vector<KerasReference>& outputs) const {
  enum class Mark { unseen, open, done };
  struct Visit {
    std::size_t node;
    std::size_t next_input = 0;
  };
  std::vector<Mark> marks(nodes_.size(), Mark::unseen);
  std::vector<std::size_t> order;
  // The stack of a depth-first search, in memory: a file may hold a chain that is longer than any stack.
  std::vector<Visit> visits;
  const auto enter = [&](std::size_t node) {
    // An open node is on the way from the output to here, so it depends on itself.
    if (marks[node] == Mark::open) {
      refuse(fmt::format("has a cycle through layer {}", shown(nodes_[node].entry)));
    }
    if (marks[node] == Mark::done) return;
    marks[node] = Mark::open;
    visits.push_back({.node = node});
  };
  for (const KerasReference& output : outputs) {
    enter(node_of(output, true));
    while (!visits.empty()) {
      Visit& visit = visits.back();
      const KerasNode& node = nodes_[visit.node];
      if (visit.next_input < node.inputs.size()) {
        enter(node_of(node.inputs[visit.next_input++], has_old_nodes(node)));
      } else {
        marks[visit.node] = Mark::done;
        order.push_back(visit.node);
        visits.pop_back();
      }
    }
  }
  return order;
}

void KerasContainer::refuse(const std::string& problem) const {
  refuse_keras_model(label_, path_.empty() ? problem : fmt::format("{} in {}", problem, quoted_text(path_)));
}

void KerasContainer::add_entry(const Json& json) {
  KerasEntry entry{.json = &json,
                   .name = layer_name(json),
                   .class_name = text_member(json, "class_name"),
                   .is_operation = is_operation_entry(json),
                   .is_model = false};
  // A class of that name without layers is an application's own layer, and is refused as such later.
  entry.is_model = is_model_class(entry.class_name) && layers_of_config(json).is_array();
  if (entry.class_name.empty()) refuse("has a layer without a class");
  if (entry.name.empty()) refuse(fmt::format("has a {} without a name", quoted_text(entry.class_name)));
  // Calls name layers by their names, so two of one name could be mistaken for each other.
  if (!by_name_.emplace(entry.name, entries_.size()).second) {
    refuse(fmt::format("has two layers named {}", quoted_text(entry.name)));
  }
  entries_.push_back(std::move(entry));
}

void KerasContainer::add_node(std::size_t entry, const Json& json) {
  KerasNode node{.entry = entry, .inputs = {}, .arguments = {}};
  if (json.is_array()) {
    entries_[entry].has_old_nodes = true;
    collect_references(json, 0, "inbound_nodes", node.inputs);
    for (const Json& input : json) read_options(entry, input.is_array() && input.size() > 3 ? input[3] : Json(), node);
    // Lists of Keras 2 have no numbers among the arguments: they are all values.
    node.arguments.resize(node.inputs.size());
  } else {
    const Json& arguments = member(json, "args");
    const std::size_t count = arguments.is_array() ? arguments.size() : 0;
    const bool has_index = entries_[entry].is_operation && entries_[entry].class_name == "GetItem" && count == 2;
    if (has_index) node.index = &arguments[1];
    for (std::size_t place = 0; place < count - (has_index ? 1 : 0); ++place) {
      collect_argument(entry, arguments[place], 0, node);
    }
    read_options(entry, member(json, "kwargs"), node);
  }
  // A file may repeat one call without end, and each argument becomes an entry here.
  if (node.arguments.size() > ModelGraph::kMaxArrays) {
    refuse(fmt::format("calls layer {} with more than {} values", shown(entry), ModelGraph::kMaxArrays));
  }
  entries_[entry].nodes.push_back(nodes_.size());
  nodes_.push_back(std::move(node));
}

void KerasContainer::read_options(std::size_t entry, const Json& options, KerasNode& node) const {
  if (!options.is_object()) return;
  read_named_values(entry, options, node);
  const LayerRow* const row = row_of_keras_class(entries_[entry].class_name);
  for (const auto& [key, value] : options.items()) {
    if (value.is_null() || std::ranges::find(node.named, key) != node.named.end()) continue;
    if (row != nullptr && std::ranges::find(row->argument_names, key) != row->argument_names.end()) continue;
    if (row != nullptr && std::ranges::find(row->call_flags, key) != row->call_flags.end() && value.is_boolean()) {
      // A flag that is false is the default.
      if (value.get<bool>()) node.flags.push_back(key);
      continue;
    }
    if (key == "training" && value.is_boolean()) {
      node.training = value.get<bool>();
      continue;
    }
    if (key == "reverse" && value.is_boolean() && entries_[entry].class_name == "ReversibleEmbedding") {
      node.is_reversed = value.get<bool>();
      continue;
    }
    refuse_argument(entry, key);
  }
}

// Values among the named arguments, in the order of a layer's inputs and not in that of the names.
void KerasContainer::read_named_values(std::size_t entry, const Json& options, KerasNode& node) const {
  const LayerRow* const row = row_of_keras_class(entries_[entry].class_name);
  if (row == nullptr) return;
  for (const std::string_view name : row->argument_names) {
    if (const Json& value = member(options, name); !value.is_null()) collect_argument(entry, value, 0, node);
  }
  for (const CallValue& argument : row->call_values) {
    const Json& value = member(options, argument.keras);
    if (value.is_null()) continue;
    // A plain attention has a list of masks, of which the one of the queries comes first.
    const bool is_masks = argument.is_list && !argument.flag.empty();
    const bool is_of_values = value.is_array() && value.size() >= 2 && value[0].is_null() && value[1].is_object() &&
                              (value.size() == 2 || (value.size() == 3 && value[2].is_null()));
    if (is_masks && !is_of_values) refuse_argument(entry, std::string(argument.keras));
    const std::size_t before = node.inputs.size();
    collect_argument(entry, value, 0, node);
    if (node.inputs.size() > before) node.named.emplace_back(argument.keras);
  }
}

void KerasContainer::refuse_argument(std::size_t entry, const std::string& name) const {
  refuse_keras_layer(
      path_of(entries_[entry]), entries_[entry].class_name,
      fmt::format("is called with the argument {}, which Holdfast does not have; call it without", quoted_text(name)));
}

std::optional<KerasReference> KerasContainer::reference_from(const Json& list) {
  const bool is_list = list.is_array() && (list.size() == 3 || list.size() == 4) && list[0].is_string();
  const auto node = is_list ? integer_value(list[1]) : std::nullopt;
  const auto tensor = is_list ? integer_value(list[2]) : std::nullopt;
  if (!node || !tensor) return std::nullopt;
  return KerasReference{.layer = list[0].get<std::string>(), .node = *node, .tensor = *tensor};
}

void KerasContainer::collect_references(const Json& json, std::size_t depth, const char* place,
                                        std::vector<KerasReference>& found) const {
  if (auto reference = reference_from(json)) return found.push_back(std::move(*reference));
  // A limit on the depth, because the file is not trusted and this function calls itself.
  const bool is_nested = (json.is_array() || json.is_object()) && depth < kMaxArgumentDepth;
  if (!is_nested) refuse(fmt::format("has an entry of {} that names no output of a layer", place));
  for (const Json& element : json) collect_references(element, depth + 1, place, found);
}

void KerasContainer::collect_argument(std::size_t entry, const Json& argument, std::size_t depth,
                                      KerasNode& node) const {
  if (text_member(argument, "class_name") == "__keras_tensor__") {
    auto reference = reference_from(member(member(argument, "config"), "keras_history"));
    if (!reference) refuse(fmt::format("calls layer {} with an output of no layer", shown(entry)));
    // An argument without a number stands for the next of the inputs: subtract(3, x) has the order of its operands
    // here.
    node.inputs.push_back(std::move(*reference));
    node.arguments.emplace_back();
  } else if (argument.is_number()) {
    node.arguments.emplace_back(argument.get<double>());
  } else if (argument.is_array() && depth < kMaxArgumentDepth) {
    for (const Json& element : argument) collect_argument(entry, element, depth + 1, node);
  } else if (argument.is_object() && !argument.contains("class_name") && depth < kMaxArgumentDepth) {
    for (const Json& element : argument) collect_argument(entry, element, depth + 1, node);
  } else if (!argument.is_null()) {
    // A null stands for a default. Everything else would change what the layer computes.
    refuse_keras_layer(path_of(entries_[entry]), entries_[entry].class_name,
                       "is called with an argument that is neither a value nor a number; call it without");
  }
}

std::string KerasContainer::path_of(const KerasEntry& entry) const {
  return join_path(path_, entry.name);
}

std::string KerasContainer::shown(const KerasEntry& entry) const {
  return quoted_text(path_of(entry));
}

}  // namespace holdfast::format
