// Arguments that an HDF5 file cannot hold are refused before anything is written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foreign_hdf5/tree.h"
#include "support/temporary_folder.h"
#include "unit/exchange/support/trees.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

Hdf5Tree tree_of(Hdf5Dataset dataset) {
  Hdf5Tree tree;
  tree.datasets.push_back(std::move(dataset));
  return tree;
}

Hdf5Tree tree_of(Hdf5Attribute attribute) {
  Hdf5Tree tree;
  tree.groups.push_back({"", {std::move(attribute)}});
  return tree;
}

void expect_refused(const Hdf5Tree& tree, const std::string& problem) {
  const testing::Thrown thrown = testing::thrown_by([&] { compose_hdf5_tree("a.h5", tree); });
  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
  EXPECT_THAT(thrown.sentence, HasSubstr("cannot write a.h5: "));
  EXPECT_THAT(thrown.sentence, HasSubstr(problem));
}

TEST(WriteHdf5Tree, RefusesPathsThatAFileCannotHave) {
  for (const std::string path : {"", "/a", "a//b", "a/", "a/./b", "../a"}) {
    expect_refused(tree_of(Hdf5Dataset{testing::make_numbers(path, DType::f32, {1}), {}}), "path \"" + path + "\"");
  }
  for (const std::string& path : {std::string("a\0b", 3), std::string("a\xFF")}) {
    expect_refused(tree_of(Hdf5Dataset{testing::make_numbers(path, DType::f32, {1}), {}}), "is not UTF-8 text");
  }
  expect_refused(tree_of(Hdf5Dataset{testing::make_numbers(std::string(5000, 'a'), DType::f32, {1}), {}}), "longer");
}

TEST(WriteHdf5Tree, RefusesTwoObjectsOfOnePath) {
  const Hdf5Dataset a{testing::make_numbers("a", DType::f32, {1}), {}};
  Hdf5Tree twice = tree_of(a);
  twice.datasets.push_back(a);
  Hdf5Tree inside = tree_of(a);
  inside.datasets.push_back({testing::make_numbers("a/b", DType::f32, {1}), {}});
  Hdf5Tree groups;
  groups.groups = {{"g", {}}, {"g", {}}};

  expect_refused(twice, "dataset \"a\" is listed twice");
  expect_refused(inside, "dataset \"a\" is also a group");
  expect_refused(groups, "group \"g\" is listed twice");
}

TEST(WriteHdf5Tree, RefusesTextsThatAFileCannotHave) {
  Hdf5Tree not_utf8;
  not_utf8.texts.push_back({"a", "\xFF", {}});
  Hdf5Tree path;
  path.texts.push_back({"a/", "", {}});
  Hdf5Tree twice;
  twice.texts = {{"a", "", {}}, {"a", "", {}}};
  Hdf5Tree array = tree_of(Hdf5Dataset{testing::make_numbers("a", DType::f32, {1}), {}});
  array.texts.push_back({"a", "", {}});
  Hdf5Tree group;
  group.texts = {{"a", "", {}}, {"a/b", "", {}}};

  expect_refused(not_utf8, "text \"a\" is not UTF-8 text without NUL");
  expect_refused(path, "path \"a/\"");
  expect_refused(twice, "text \"a\" is listed twice");
  expect_refused(array, "text \"a\" is listed twice");
  expect_refused(group, "text \"a\" is also a group");
}

TEST(WriteHdf5Tree, RefusesNumbersWhoseBytesDoNotFit) {
  Hdf5Dataset dataset{testing::make_numbers("a", DType::f32, {3}), {}};
  dataset.array.bytes.pop_back();

  expect_refused(tree_of(dataset), "dataset \"a\" has 11 bytes, but its shape needs 12");
}

TEST(WriteHdf5Tree, RefusesAttributesThatAFileCannotHave) {
  expect_refused(tree_of(Hdf5Attribute{"a", std::string("\xFF")}), "is not UTF-8 text without NUL");
  expect_refused(tree_of(Hdf5Attribute{"a", std::vector<std::string>{std::string(1, '\0')}}), "is not UTF-8 text");
  expect_refused(tree_of(Hdf5Attribute{"", std::string()}), "has no valid name");
  expect_refused(tree_of(Hdf5Attribute{"a", testing::make_numbers("", DType::bf16, {1})}), "is bf16");
  expect_refused(tree_of(Hdf5Dataset{testing::make_numbers("a", DType::bf16, {1}), {{"dtype", std::string("f")}}}),
                 "has an attribute dtype");
}

TEST(WriteHdf5Tree, KeepsTheOldFileWhenTheDiskFails) {
  for (const std::string failing : {"create", "write", "sync", "rename"}) {
    const TemporaryFolder folder;
    write_hdf5_tree(posix_file_system(), folder / "a.h5", testing::every_kind_of_content());
    const std::unique_ptr<FileSystem> files =
        watched_file_system(posix_file_system(), [&](const FileOperation& operation) {
          if (operation.name == failing) throw Error(ErrorCode::disk_full, "full");
        });

    const testing::Thrown thrown = testing::thrown_by([&] { write_hdf5_tree(*files, folder / "a.h5", {}); });

    EXPECT_EQ(thrown.code, ErrorCode::disk_full) << failing;
    EXPECT_EQ(folder.names(), std::vector<std::string>{"a.h5"}) << failing;
    EXPECT_TRUE(
        testing::are_equal(read_hdf5_tree(posix_file_system(), folder / "a.h5"), testing::every_kind_of_content()));
  }
}

}  // namespace
}  // namespace holdfast::format
