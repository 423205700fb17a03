#include "foreign_hdf5/hdf5_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <span>

namespace holdfast::format {
namespace {

using Json = nlohmann::json;

template <typename T>
NamedArray numbers(const std::string& name, DType dtype, std::vector<std::uint64_t> shape,
                   const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {name, dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

Json attribute_of_root(const std::variant<std::string, std::vector<std::string>, NamedArray>& value) {
  Hdf5Tree tree;
  tree.groups = {{"", {{"x", value}}}};
  return Json::parse(hdf5_arrays(tree).metadata)["attributes"][""]["x"];
}

TEST(Hdf5Arrays, KeepsNamesTypesShapesAndBits) {
  const NamedArray array = numbers<std::int16_t>("a/b", DType::i16, {1, 2}, {-3, 4});
  Hdf5Tree tree;
  tree.groups = {{"", {}}, {"a", {}}};
  tree.datasets = {{array, {}}};

  const ArraySet set = hdf5_arrays(tree);

  ASSERT_EQ(set.arrays.size(), 1U);
  EXPECT_EQ(set.arrays[0].name, array.name);
  EXPECT_EQ(set.arrays[0].dtype, array.dtype);
  EXPECT_EQ(set.arrays[0].shape, array.shape);
  EXPECT_TRUE(set.arrays[0].bytes == array.bytes);
  EXPECT_EQ(set.metadata, R"({"kind":"hdf5"})");
}

TEST(Hdf5Arrays, KeepsTextsAndAttributesAsMetadata) {
  Hdf5Tree tree;
  tree.groups = {{"", {{"author", std::string("me")}}}};
  tree.texts = {{"note", "hello", {{"language", std::string("en")}}}};

  const Json metadata = Json::parse(hdf5_arrays(tree).metadata);

  EXPECT_EQ(metadata, (Json{{"kind", "hdf5"},
                            {"texts", {{"note", "hello"}}},
                            {"attributes", {{"", {{"author", "me"}}}, {"note", {{"language", "en"}}}}}}));
}

TEST(Hdf5Arrays, ConvertsEachKindOfAttributeToJson) {
  EXPECT_EQ(attribute_of_root(std::vector<std::string>{"a", "b"}), (Json{"a", "b"}));
  EXPECT_EQ(attribute_of_root(numbers<std::uint64_t>("", DType::u64, {}, {~std::uint64_t{0}})),
            Json(~std::uint64_t{0}));
  EXPECT_EQ(attribute_of_root(numbers<std::int8_t>("", DType::i8, {2}, {-1, 2})), (Json{-1, 2}));
  EXPECT_EQ(attribute_of_root(numbers<double>("", DType::f64, {1, 1}, {0.5})), Json::array({0.5}));
  EXPECT_EQ(attribute_of_root(numbers<double>("", DType::f64, {0}, {})), Json::array());
}

TEST(Hdf5Arrays, HasNullWhereJsonHasNoNumber) {
  const double infinity = std::numeric_limits<double>::infinity();

  EXPECT_EQ(attribute_of_root(numbers<double>("", DType::f64, {2}, {infinity, 1.0})), (Json{nullptr, 1.0}));
}

}  // namespace
}  // namespace holdfast::format
