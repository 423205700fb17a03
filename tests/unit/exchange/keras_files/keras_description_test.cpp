#include "keras_files/keras_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/exchange/support/keras_trees.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

TEST(KerasDescription, SurvivesARoundTripThroughJson) {
  KerasDescription before;
  before.form = KerasForm::legacy_model;
  before.config = "{\"class_name\": \"Sequential\", \"config\": {\"big\": 1e-07}}";
  before.paths = {{"model/a/kernel", "model_weights/a/a/kernel:0"}};
  before.optimizer = {"optimizer/iteration", "optimizer/2"};
  before.groups = {{"", {{"backend", std::string("jax")}}}, {"model_weights", {{"layer_names", Names{"a", "ü"}}}}};
  before.replicated = 3;

  const KerasDescription after = keras_description(Json::parse(keras_metadata(before)));

  EXPECT_EQ(after.form, before.form);
  EXPECT_EQ(after.config, before.config);
  EXPECT_EQ(after.paths, before.paths);
  EXPECT_EQ(after.optimizer, before.optimizer);
  EXPECT_EQ(after.replicated, 3U);
  ASSERT_EQ(after.groups.size(), 2U);
  EXPECT_EQ(text_attribute(after.groups[0].attributes, "backend"), "jax");
  EXPECT_THAT(list_attribute(after.groups[1].attributes, "layer_names"), ElementsAre("a", "ü"));
}

TEST(KerasDescription, RefusesMetadataThatIsNotItsOwn) {
  const Json whole = Json::parse(keras_metadata({}));
  for (const char* pointer : {"/keras", "/keras/form", "/keras/paths", "/keras/optimizer", "/keras/groups"}) {
    for (const Json& other : {Json(), Json(3), Json("x"), Json::array({1}), Json{{"a", 1}}, Json{{"a", {{"b", 1}}}}}) {
      Json damaged = whole;
      damaged[Json::json_pointer(pointer)] = other;
      const std::string error = error_of([&] { keras_description(damaged); });
      EXPECT_TRUE(error.empty() || error.starts_with("invalid_argument: the metadata's \"keras\"")) << error;
      EXPECT_THAT(error, ::testing::Not(HasSubstr("json.exception")));
      EXPECT_FALSE(error.empty() && std::string(pointer) == "/keras") << other.dump();
    }
  }
}

// stoi() took signs, blanks and half a number, and an odd last digit was dropped.
TEST(KerasDescription, RefusesBytesThatAreNotHexadecimal) {
  KerasDescription description;
  description.groups.push_back(
      {.path = "/g",
       .attributes = {
           {"a", NamedArray{.name = "", .dtype = DType::u8, .shape = {2}, .bytes = {std::byte{1}, std::byte{255}}}}}});
  const Json whole = Json::parse(keras_metadata(description));
  const Json::json_pointer bytes("/keras/groups/~1g/a/bytes");
  ASSERT_EQ(whole.at(bytes), "01ff");
  EXPECT_EQ(error_of([&] { keras_description(whole); }), "");

  for (const char* text : {"-1ff", " 1ff", "1g00", "01f", "+1+1"}) {
    Json damaged = whole;
    damaged.at(bytes) = text;
    EXPECT_THAT(error_of([&] { keras_description(damaged); }), HasSubstr("hexadecimal")) << text;
  }
}

TEST(KerasDescription, RefusesNamesThatAreNotUtf8) {
  KerasDescription description;
  description.archive_metadata = "\xFF\xFE";

  EXPECT_THAT(error_of([&] { keras_metadata(description); }), HasSubstr("not UTF-8"));
}

}  // namespace
}  // namespace holdfast::format
