#include "unit/format/support/views.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "foreign_hdf5/tree.h"
#include "holdfast/format/array_file.h"

namespace holdfast::format::testing {
namespace {

// The type that HDF5 shows for an element type.
DType shown_type(DType dtype) {
  if (dtype == DType::bf16) return DType::u16;
  return dtype == DType::boolean ? DType::u8 : dtype;
}

std::map<std::string, std::string> text_attributes(const Hdf5Dataset& dataset) {
  std::map<std::string, std::string> texts;
  for (const Hdf5Attribute& attribute : dataset.attributes) {
    const auto* text = std::get_if<std::string>(&attribute.value);
    texts[attribute.name] = text == nullptr ? "(no text)" : *text;
  }
  return texts;
}

void expect_equal(const ArrayFile& file, const ArrayInfo& info, const Hdf5Dataset& dataset) {
  std::map<std::string, std::string> attributes = {{"digest", info.digest.hex()}};
  if (shown_type(info.dtype) != info.dtype) attributes["dtype"] = name(info.dtype);

  EXPECT_EQ(dataset.array.name, info.name);
  EXPECT_EQ(dataset.array.dtype, shown_type(info.dtype)) << info.name;
  EXPECT_EQ(dataset.array.shape, info.shape) << info.name;
  EXPECT_TRUE(dataset.array.bytes == file.read(info.name)) << info.name;
  EXPECT_EQ(text_attributes(dataset), attributes) << info.name;
}

// The root and all groups that contain arrays or groups.
std::set<std::string> groups_of(const ArrayFile& file) {
  std::set<std::string> groups = {""};
  for (const ArrayInfo& info : file.arrays()) {
    for (std::size_t slash = info.name.find('/'); slash != std::string::npos; slash = info.name.find('/', slash + 1)) {
      groups.insert(info.name.substr(0, slash));
    }
  }
  return groups;
}

}  // namespace

void expect_views_equal(const std::string& path, FileSystem& files) {
  const ArrayFile file = ArrayFile::open(files, path);
  const Hdf5Tree tree = read_hdf5_tree(files, path);

  std::set<std::string> groups;
  for (const Hdf5Group& group : tree.groups) {
    groups.insert(group.path);
    EXPECT_EQ(group.attributes.size(), 0U) << group.path;
  }
  EXPECT_EQ(groups, groups_of(file)) << path;

  ASSERT_EQ(tree.texts.size(), 1U) << path;
  EXPECT_EQ(tree.texts[0].path, "metadata");
  EXPECT_EQ(tree.texts[0].text, file.metadata());
  EXPECT_EQ(tree.texts[0].attributes.size(), 0U);

  // Both lists are sorted by name.
  ASSERT_EQ(tree.datasets.size(), file.arrays().size()) << path;
  for (std::size_t i = 0; i < tree.datasets.size(); ++i) expect_equal(file, file.arrays()[i], tree.datasets[i]);
}

}  // namespace holdfast::format::testing
