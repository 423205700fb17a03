// A search by halves: large models have thousands of objects, and each is looked up once for each of its names.

#include "foreign_hdf5/tree.h"

#include <algorithm>
#include <functional>

namespace holdfast::format {

namespace {

// The objects of one kind are sorted by path.
template <typename Object, typename PathOf>
const Object* find_object(const std::vector<Object>& objects, std::string_view path, PathOf path_of) {
  const auto found = std::ranges::lower_bound(objects, path, {}, path_of);
  return found != objects.end() && std::invoke(path_of, *found) == path ? &*found : nullptr;
}

}  // namespace

const Hdf5Group* Hdf5Tree::find_group(std::string_view path) const {
  return find_object(groups, path, &Hdf5Group::path);
}

const Hdf5Dataset* Hdf5Tree::find_dataset(std::string_view path) const {
  return find_object(datasets, path, [](const Hdf5Dataset& dataset) { return std::string_view(dataset.array.name); });
}

const Hdf5Text* Hdf5Tree::find_text(std::string_view path) const {
  return find_object(texts, path, &Hdf5Text::path);
}

const Hdf5Attribute* find_attribute(const std::vector<Hdf5Attribute>& attributes, std::string_view name) {
  const auto found = std::ranges::find(attributes, name, &Hdf5Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

}  // namespace holdfast::format
