// The description travels as JSON in the metadata of an ArraySet, which users may change before they write a file
// again. So it is parsed as untrusted input, and errors never quote the JSON library.

#include "keras_files/keras_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

// The most attributes over which a long list is split. Each holds up to 64 KiB.
constexpr std::size_t kMaxParts = 1000;

// Numbers in attributes travel as hexadecimal bytes, so that no bit changes on the way through JSON. They are few: a
// weight is an array and not an attribute.
std::string to_hex(const std::vector<std::byte>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += {kDigits[std::to_integer<int>(byte) >> 4], kDigits[std::to_integer<int>(byte) & 15]};
  }
  return text;
}

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    // Not stoi(), which takes blanks, signs and half a number.
    std::uint8_t value = 0;
    const char* const end = text.data() + 2 * i + 2;
    const auto [stop, error] = std::from_chars(end - 2, end, value, 16);
    if (error != std::errc() || stop != end) bytes.clear();
    if (bytes.empty()) break;
    bytes[i] = static_cast<std::byte>(value);
  }
  if (2 * bytes.size() == text.size()) return bytes;
  throw Error(ErrorCode::invalid_argument, "the bytes of an attribute are not pairs of hexadecimal digits");
}

// Texts and lists of texts stay readable, since a person may look at the metadata.
Json attribute_value(const Hdf5Attribute& attribute) {
  if (const auto* text = std::get_if<std::string>(&attribute.value)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) return *texts;
  const auto& numbers = std::get<NamedArray>(attribute.value);
  return {{"dtype", name(numbers.dtype)}, {"shape", numbers.shape}, {"bytes", to_hex(numbers.bytes)}};
}

Hdf5Attribute attribute_from(const std::string& name, const Json& value) {
  if (value.is_string()) return {name, value.get<std::string>()};
  // The kind of JSON tells which of the three forms of attribute_value() it is.
  if (value.is_array()) return {name, value.get<std::vector<std::string>>()};
  return {name, NamedArray{.name = "",
                           .dtype = dtype_from_name(value.at("dtype").get<std::string>()),
                           .shape = value.at("shape").get<std::vector<std::uint64_t>>(),
                           .bytes = from_hex(value.at("bytes").get<std::string>())}};
}

Json groups_to_json(const std::vector<Hdf5Group>& groups) {
  Json result = Json::object();
  for (const Hdf5Group& group : groups) {
    Json attributes = Json::object();
    for (const Hdf5Attribute& attribute : group.attributes) attributes[attribute.name] = attribute_value(attribute);
    result[group.path] = std::move(attributes);
  }
  return result;
}

std::vector<Hdf5Group> groups_from(const Json& json) {
  std::vector<Hdf5Group> groups;
  for (const auto& [path, attributes] : json.items()) {
    Hdf5Group group{.path = path, .attributes = {}};
    for (const auto& [name, value] : attributes.items()) group.attributes.push_back(attribute_from(name, value));
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::string keras_metadata(const KerasDescription& description) {
  Json keras = {{"form", name(description.form)},
                {"paths", description.paths},
                {"optimizer", description.optimizer},
                {"groups", groups_to_json(description.groups)}};
  // Empty members are left out: the metadata of a file without them does not depend on what this code knows of them.
  if (!description.config.empty()) keras["config"] = description.config;
  if (!description.archive_metadata.empty()) keras["archive_metadata"] = description.archive_metadata;
  if (!description.added.empty()) keras["added"] = description.added;
  if (!description.scalars.empty()) keras["scalars"] = description.scalars;
  if (description.replicated > 0) keras["replicated"] = description.replicated;
  try {
    return Json{{"kind", "keras"}, {"keras", std::move(keras)}}.dump();
  } catch (const Json::exception&) {
    throw Error(ErrorCode::invalid_file,
                "the Keras file has names that are not UTF-8; save the model again with Keras");
  }
}

KerasDescription keras_description(const Json& metadata) {
  try {
    const Json& keras = metadata.at("keras");
    KerasDescription description;
    description.form = keras_form_from_name(keras.at("form").get<std::string>());
    // Members that keras_metadata() leaves out have the value of an empty one.
    description.config = keras.value("config", "");
    description.archive_metadata = keras.value("archive_metadata", "");
    description.paths = keras.at("paths").get<std::map<std::string, std::string>>();
    description.optimizer = keras.at("optimizer").get<std::vector<std::string>>();
    description.groups = groups_from(keras.at("groups"));
    description.added = keras.value("added", std::set<std::string>());
    description.scalars = keras.value("scalars", std::set<std::string>());
    description.replicated = keras.value("replicated", std::size_t{0});
    return description;
  } catch (const Error& error) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the metadata's \"keras\" does not come from read_keras: {}; read the Keras file again",
                            error.what()));
  } catch (const std::exception&) {
    // These exceptions come from the JSON library or from a malformed number. Their texts speak of code.
    throw Error(ErrorCode::invalid_argument,
                "the metadata's \"keras\" does not come from read_keras: it lacks form, paths, optimizer or groups, or "
                "one of them has a wrong type; read the Keras file again");
  }
}

std::vector<std::string> list_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name) {
  // Returns whether the attribute exists, even if it is not a list.
  const auto append = [&](const std::string& key, std::vector<std::string>& texts) {
    const Hdf5Attribute* attribute = find_attribute(attributes, key);
    if (attribute == nullptr) return false;
    if (const auto* list = std::get_if<std::vector<std::string>>(&attribute->value)) {
      texts.insert(texts.end(), list->begin(), list->end());
    }
    return true;
  };
  std::vector<std::string> texts;
  if (append(std::string(name), texts)) return texts;
  // Keras splits a list that is too long for one attribute: "layer_names0", "layer_names1".
  for (std::size_t part = 0; part < kMaxParts && append(std::string(name) + std::to_string(part), texts); ++part) {
  }
  return texts;
}

bool has_list_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name) {
  return find_attribute(attributes, name) != nullptr || find_attribute(attributes, std::string(name) + "0") != nullptr;
}

std::string text_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name) {
  const Hdf5Attribute* attribute = find_attribute(attributes, name);
  const auto* text = attribute == nullptr ? nullptr : std::get_if<std::string>(&attribute->value);
  return text == nullptr ? std::string() : *text;
}

}  // namespace holdfast::format
