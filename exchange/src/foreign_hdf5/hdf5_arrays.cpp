// Everything that is not an array becomes metadata, so that no content of a file is lost in a conversion. Strings and
// attributes keep their paths as keys.

#include "foreign_hdf5/hdf5_arrays.h"

#include <cmath>
#include <type_traits>
#include <utility>

#include "bytes/json.h"
#include "holdfast/base/elements.h"

namespace holdfast::format {
namespace {

Json as_json(const std::string& text) {
  return text;
}

Json as_json(const std::vector<std::string>& texts) {
  return texts;
}

Json as_json(const NamedArray& numbers) {
  Json list = Json::array();
  with_element(numbers.dtype, [&](auto element) {
    using Element = decltype(element);
    for (std::size_t offset = 0; offset < numbers.bytes.size(); offset += Element::kBytes) {
      // JSON has neither NaN nor infinity: the library writes null for them.
      // One flat list: a reader finds the shape of an attribute in the file itself, and few attributes have one.
      list.push_back(Element::load(numbers.bytes.data() + offset));
    }
  });
  return numbers.shape.empty() ? list.front() : list;
}

Json as_json(const std::vector<Hdf5Attribute>& attributes) {
  Json object = Json::object();
  for (const Hdf5Attribute& attribute : attributes) {
    object[attribute.name] = std::visit([](const auto& value) { return as_json(value); }, attribute.value);
  }
  return object;
}

void add(Json& all, const std::string& path, const std::vector<Hdf5Attribute>& attributes) {
  // Empty objects would say nothing, and a file has many groups without attributes.
  if (!attributes.empty()) all[path] = as_json(attributes);
}

std::string metadata_of(const Hdf5Tree& tree) {
  Json attributes = Json::object();
  Json texts = Json::object();
  for (const Hdf5Group& group : tree.groups) add(attributes, group.path, group.attributes);
  for (const Hdf5Dataset& dataset : tree.datasets) add(attributes, dataset.array.name, dataset.attributes);
  for (const Hdf5Text& text : tree.texts) {
    add(attributes, text.path, text.attributes);
    texts[text.path] = text.text;
  }
  Json metadata = {{"kind", "hdf5"}};
  if (!attributes.empty()) metadata["attributes"] = std::move(attributes);
  if (!texts.empty()) metadata["texts"] = std::move(texts);
  return metadata.dump();
}

}  // namespace

ArraySet hdf5_arrays(Hdf5Tree tree) {
  ArraySet set{.arrays = {}, .metadata = metadata_of(tree)};
  for (Hdf5Dataset& dataset : tree.datasets) set.arrays.push_back(std::move(dataset.array));
  return set;
}

}  // namespace holdfast::format
