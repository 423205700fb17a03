#include "foreign_hdf5/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/temporary_folder.h"
#include "unit/exchange/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

TEST(Hdf5Tree, ComesBackAsItWasWritten) {
  const TemporaryFolder folder;
  const Hdf5Tree tree = testing::every_kind_of_content();

  write_hdf5_tree(posix_file_system(), folder / "a.h5", tree);

  EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"});
  EXPECT_TRUE(testing::are_equal(read_hdf5_tree(posix_file_system(), folder / "a.h5"), tree));
}

TEST(Hdf5Tree, GivesTheSameBytesInAnyOrder) {
  Hdf5Tree tree = testing::every_kind_of_content();
  const std::vector<std::byte> bytes = compose_hdf5_tree("a.h5", tree);

  std::reverse(tree.groups.begin(), tree.groups.end());
  std::reverse(tree.datasets.begin(), tree.datasets.end());
  std::reverse(tree.texts.begin(), tree.texts.end());
  for (Hdf5Group& group : tree.groups) std::reverse(group.attributes.begin(), group.attributes.end());

  EXPECT_TRUE(compose_hdf5_tree("a.h5", tree) == bytes);
}

TEST(Hdf5Tree, HoldsAttributesAboveTheLimitOfOldHeaders) {
  Hdf5Tree tree;
  tree.groups.push_back({"", {{"model_config", std::string(300'000, 'x')}}});
  std::vector<std::string> names;
  for (int i = 0; i < 20'000; ++i) names.push_back("layer_" + std::to_string(i));
  tree.groups[0].attributes.push_back({"names", names});
  tree.groups[0].attributes.push_back({"numbers", testing::make_numbers("", DType::f64, {50'000})});

  const Hdf5Tree read = read_hdf5_tree(compose_hdf5_tree("a.h5", tree), "a.h5");

  EXPECT_TRUE(testing::are_equal(read, tree));
}

TEST(Hdf5Tree, MakesTheGroupsThatPathsImply) {
  Hdf5Tree tree;
  tree.datasets.push_back({testing::make_numbers("a/b/c", DType::f32, {2}), {}});

  const Hdf5Tree read = read_hdf5_tree(compose_hdf5_tree("a.h5", tree), "a.h5");

  ASSERT_EQ(read.groups.size(), 3U);
  EXPECT_NE(read.find_group(""), nullptr);
  EXPECT_NE(read.find_group("a"), nullptr);
  EXPECT_NE(read.find_group("a/b"), nullptr);
  EXPECT_EQ(read.find_group("a/b/c"), nullptr);
  EXPECT_NE(read.find_dataset("a/b/c"), nullptr);
}

TEST(Hdf5Tree, FindsAttributesByName) {
  const Hdf5Tree tree = testing::every_kind_of_content();

  EXPECT_EQ(std::get<std::string>(find_attribute(tree.groups[0].attributes, "keras_version")->value), "3.16.0");
  EXPECT_EQ(find_attribute(tree.groups[0].attributes, "keras"), nullptr);
}

}  // namespace
}  // namespace holdfast::format
