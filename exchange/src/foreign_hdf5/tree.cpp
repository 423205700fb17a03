#include "foreign_hdf5/tree.h"

#include <algorithm>

namespace holdfast::format {

const Hdf5Group* Hdf5Tree::find_group(std::string_view path) const {
  const auto found =
      std::lower_bound(groups.begin(), groups.end(), path,
                       [](const Hdf5Group& group, std::string_view wanted) { return group.path < wanted; });
  return found != groups.end() && found->path == path ? &*found : nullptr;
}

const Hdf5Dataset* Hdf5Tree::find_dataset(std::string_view path) const {
  const auto found =
      std::lower_bound(datasets.begin(), datasets.end(), path,
                       [](const Hdf5Dataset& dataset, std::string_view wanted) { return dataset.array.name < wanted; });
  return found != datasets.end() && found->array.name == path ? &*found : nullptr;
}

const Hdf5Text* Hdf5Tree::find_text(std::string_view path) const {
  const auto found = std::lower_bound(texts.begin(), texts.end(), path,
                                      [](const Hdf5Text& text, std::string_view wanted) { return text.path < wanted; });
  return found != texts.end() && found->path == path ? &*found : nullptr;
}

const Hdf5Attribute* find_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name) {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const Hdf5Attribute& attribute) { return attribute.name == name; });
  return found == attributes.end() ? nullptr : &*found;
}

}  // namespace holdfast::format
