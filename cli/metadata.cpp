// Reads and compares metadata, which may come from an unknown file: any type may stand under any key, and nesting may
// be deep. So nothing here assumes a type, and values are shortened before they are printed.

#include "metadata.h"

#include <fmt/format.h>

#include "text.h"

namespace holdfast::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Lines = std::vector<std::pair<std::string, std::string>>;

constexpr int kMaxDepth = 100;
constexpr std::size_t kMaxValueBytes = 60;

// Bytes that are not UTF-8 are replaced, because dump() would throw.
template <typename AnyJson>
std::string dumped(const AnyJson& value) {
  return value.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

template <typename AnyJson>
std::string brief(const AnyJson& value) {
  return shortened(dumped(value), kMaxValueBytes);
}

// Missing keys give null, so that chains of lookups need no checks.
const OrderedJson& member(const OrderedJson& object, const char* key) {
  static const OrderedJson nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::string text_or_empty(const OrderedJson& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}

void add_if_there(const OrderedJson& metadata, const char* key, const std::string& name, Lines& lines) {
  const OrderedJson& value = member(metadata, key);
  if (!value.is_null()) lines.emplace_back(name, value.is_string() ? text_or_empty(value) : brief(value));
}

std::string describe_keras(const OrderedJson& keras) {
  std::string text = "Keras";
  // Keras's own metadata is kept as a text that is JSON.
  const OrderedJson archive = parse_metadata(text_or_empty(member(keras, "archive_metadata")));
  const std::string version = text_or_empty(member(archive, "keras_version"));
  if (!version.empty()) text += " " + version;
  text += fmt::format(" ({})", text_or_empty(member(keras, "form")));
  const OrderedJson& replicated = member(keras, "replicated");
  if (replicated.is_number_unsigned() && replicated.get<std::uint64_t>() > 0) {
    text += fmt::format(", from a model of multi_gpu_model, wrapped {} times", dumped(replicated));
  }
  return text;
}

// Each kind of file records its maker in another way, and some do not.
std::string describe_maker(const format::AnyFile& file, const OrderedJson& metadata) {
  const OrderedJson& keras = member(metadata, "keras");
  if (keras.is_object()) return describe_keras(keras);
  const std::string holdfast = text_or_empty(member(metadata, "holdfast"));
  if (!holdfast.empty()) return fmt::format("Holdfast {}", holdfast);
  if (file.kind() == format::FileKind::safetensors) {
    const std::string framework = text_or_empty(member(metadata, "format"));
    return framework.empty() ? "" : fmt::format("safetensors for \"{}\"", framework);
  }
  return "";
}

// Names of keys alone, because a value such as the model's graph fills many screens.
std::string describe_keys(const std::string& text, const OrderedJson& metadata) {
  std::string keys = describe_count(text.size(), "byte");
  if (metadata.is_object() && !metadata.empty()) {
    const char* separator = ": ";
    for (const auto& item : metadata.items()) keys += std::exchange(separator, ", ") + item.key();
  }
  return keys;
}

// Names and sizes: a vocabulary fills many screens.
std::string describe_attached(const OrderedJson& attached) {
  std::vector<std::string> texts;
  if (!attached.is_object()) return "";
  for (const auto& item : attached.items()) {
    texts.push_back(fmt::format("{} ({})", item.key(), describe_count(text_or_empty(item.value()).size(), "byte")));
  }
  return joined(texts, ", ");
}

// "?" unless `list` has an object with a name at this place.
std::string name_at(const OrderedJson& list, const OrderedJson& place) {
  const bool is_place = list.is_array() && place.is_number_integer() && place >= 0 && place < list.size();
  const std::string name = is_place ? text_or_empty(member(list[place.get<std::size_t>()], "name")) : "";
  // A wrong place is shown and not refused: people inspect files in order to find such mistakes.
  return name.empty() ? "?" : name;
}

// What a call of a graph takes: [call, output] or [-1, input], each once.
std::string describe_inputs(const OrderedJson& graph, const OrderedJson& call) {
  const OrderedJson& calls = member(graph, "calls");
  std::vector<std::string> names;
  const OrderedJson& inputs = member(call, "inputs");
  for (const OrderedJson& input : inputs.is_array() ? inputs : OrderedJson::array()) {
    const bool is_pair = input.is_array() && input.size() == 2;
    if (is_pair && input[0] == -1) {
      names.push_back(name_at(member(graph, "inputs"), input[1]));
    } else {
      const bool is_call =
          is_pair && calls.is_array() && input[0].is_number_integer() && input[0] >= 0 && input[0] < calls.size();
      const OrderedJson layer = is_call ? member(calls[input[0].get<std::size_t>()], "layer") : OrderedJson();
      names.push_back(name_at(member(graph, "layers"), layer));
    }
  }
  return joined(names, ", ");
}

// Objects with sorted keys, since the order in which keys were written does not matter.
using SortedJson = nlohmann::json;

class Differences {
 public:
  void compare(const SortedJson& a, const SortedJson& b, const std::string& path) {
    if (a == b) return;
    const std::string prefix = path.empty() ? "" : path + "/";
    if (a.is_object() && b.is_object()) return compare_objects(a, b, prefix);
    // In lists of different lengths it is unknown which elements belong together, so they are shown
    // as a whole.
    if (a.is_array() && b.is_array() && a.size() == b.size()) {
      for (std::size_t i = 0; i < a.size(); ++i) compare(a[i], b[i], prefix + std::to_string(i));
      return;
    }
    lines_.push_back(fmt::format("{}: {} in A, {} in B", path.empty() ? "all of it" : path, brief(a), brief(b)));
  }

  std::vector<std::string> take() { return std::move(lines_); }

 private:
  void compare_objects(const SortedJson& a, const SortedJson& b, const std::string& prefix) {
    for (const auto& item : a.items()) {
      const auto other = b.find(item.key());
      if (other == b.end()) {
        lines_.push_back(fmt::format("only in A: {}{}", prefix, item.key()));
      } else {
        compare(item.value(), *other, prefix + item.key());
      }
    }
    for (const auto& item : b.items()) {
      if (!a.contains(item.key())) lines_.push_back(fmt::format("only in B: {}{}", prefix, item.key()));
    }
  }

  std::vector<std::string> lines_;
};

}  // namespace

nlohmann::ordered_json parse_metadata(const std::string& text) {
  // Destroying deep JSON recurses, and a file could overflow the stack with it.
  const auto is_shallow = [](int depth, OrderedJson::parse_event_t, OrderedJson&) { return depth <= kMaxDepth; };
  OrderedJson parsed = OrderedJson::parse(text, is_shallow, false);
  return parsed.is_discarded() ? OrderedJson() : parsed;
}

std::vector<std::pair<std::string, std::string>> summarise_metadata(const format::AnyFile& file) {
  const OrderedJson metadata = parse_metadata(file.metadata());
  Lines lines;
  add_if_there(metadata, "kind", "kind", lines);
  const std::string maker = describe_maker(file, metadata);
  if (!maker.empty()) lines.emplace_back("made by", maker);
  // What people ask of a savepoint first. The rest is in the JSON form.
  for (const char* key : {"step", "epoch", "batch", "seed", "shards", "metrics"}) {
    add_if_there(metadata, key, key, lines);
  }
  const OrderedJson& configuration = member(metadata, "configuration");
  add_if_there(member(configuration, "optimizer"), "kind", "optimizer", lines);
  const std::string attached = describe_attached(member(metadata, "attached"));
  if (!attached.empty()) lines.emplace_back("attached", attached);
  lines.emplace_back("metadata", describe_keys(file.metadata(), metadata));
  return lines;
}

std::vector<LayerRow> model_layers(const OrderedJson& metadata) {
  const OrderedJson& graph = member(metadata, "graph");
  const OrderedJson& layers = member(graph, "layers");
  std::vector<LayerRow> rows;
  for (const OrderedJson& layer : layers.is_array() ? layers : OrderedJson::array()) {
    // A chain does not say its calls: each layer is called on the one before it.
    const bool is_chain = member(graph, "calls").is_null();
    const std::string before = !is_chain ? "" : rows.empty() ? "input" : rows.back().name;
    rows.push_back({text_or_empty(member(layer, "name")), text_or_empty(member(layer, "kind")), before});
  }
  const OrderedJson& calls = member(graph, "calls");
  for (const OrderedJson& call : calls.is_array() ? calls : OrderedJson::array()) {
    const OrderedJson& layer = member(call, "layer");
    if (!layer.is_number_integer() || layer < 0 || layer >= rows.size()) continue;
    std::string& inputs = rows[layer.get<std::size_t>()].inputs;
    inputs += (inputs.empty() ? "" : "; ") + describe_inputs(graph, call);
  }
  return rows;
}

std::vector<std::string> metadata_differences(const nlohmann::ordered_json& a, const nlohmann::ordered_json& b) {
  Differences differences;
  differences.compare(a, b, "");
  return differences.take();
}

}  // namespace holdfast::cli
