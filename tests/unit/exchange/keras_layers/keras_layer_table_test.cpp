// Each kind of layer that Holdfast has is in the table, or here with a reason why not. The kinds are listed in
// sdk/src/nn/layers/layer_registry.cpp, which exchange does not link.

#include "keras_layers/keras_layer_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "keras_layers/keras_layer_reader.h"
#include "keras_layers/keras_layer_writer.h"
#include "support/folders.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;

std::set<std::string> kinds_of_sdk() {
  std::ifstream file(source_folder() + "/sdk/src/nn/layers/layer_registry.cpp");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::regex registration(R"re(registration<\w+>\("([A-Za-z0-9]+)"\))re");
  std::set<std::string> kinds;
  for (std::sregex_iterator found(text.begin(), text.end(), registration), end; found != end; ++found) {
    kinds.insert((*found)[1]);
  }
  return kinds;
}

// The cases of the test against Keras itself.
std::string interop_cases() {
  std::string text;
  for (const char* name : {"keras_kinds_test.py", "keras_graphs_test.py"}) {
    std::ifstream file(source_folder() + "/tests/interop/" + name);
    text.append(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return text;
}

TEST(KerasLayerTable, HasEachKindOfHoldfast) {
  std::set<std::string> kinds = kinds_of_sdk();
  ASSERT_GT(kinds.size(), 50U);
  // Functions between layers have no options of layers: keras_operation_reader.cpp.
  EXPECT_EQ(kinds.erase("Operation"), 1U);
  // KerasHub has these, and Keras does not.
  for (const char* kind : {"PositionEmbedding", "RotaryEmbedding", "SinePositionEncoding"}) {
    EXPECT_EQ(kinds.erase(kind), 1U) << kind;
  }
  for (const LayerRow& row : layer_rows()) kinds.erase(std::string(row.kind));
  EXPECT_THAT(kinds, ::testing::IsEmpty());
}

TEST(KerasLayerTable, HasACaseAgainstKerasForEachClass) {
  const std::string cases = interop_cases();
  for (const LayerRow& row : layer_rows()) {
    EXPECT_THAT(cases, HasSubstr("layers." + std::string(row.keras) + "(")) << row.keras;
  }
}

// What the writer says of a layer that was read is what the reader reads again.
TEST(KerasLayerTable, GoesToHoldfastAndBackForEachClass) {
  for (const LayerRow& row : layer_rows()) {
    Json config = Json::object();
    for (const LayerOption& option : row.options) {
      // Lists of axes are written with the numbers that count from the first one.
      if (option.form == OptionForm::axes) config[std::string(option.keras)] = {1};
      if (option.otherwise != nullptr) continue;
      const bool is_list = option.form == OptionForm::target_shape || option.form == OptionForm::order;
      config[std::string(option.keras)] = option.form == OptionForm::activation ? Json("relu") : Json(1);
      if (is_list) config[std::string(option.keras)] = {1};
      if (option.form == OptionForm::rate) config[std::string(option.keras)] = 0.5;
      if (option.form == OptionForm::equation) config[std::string(option.keras)] = "ab,bc->ac";
    }
    if (row.kind == "Bidirectional") {
      config = {{"merge_mode", "sum"}, {"layer", {{"class_name", "GRU"}, {"config", {{"units", 1}}}}}};
    }
    const std::size_t rank = row.positions == 0 ? 1 : row.positions + 1;
    const std::vector<MaybeShape> inputs(row.takes_list ? 2 : 1, SampleShape(rank, 4));
    std::vector<std::string> notes;
    const auto read = [&](const Json& options) {
      const std::string class_name(row.keras);
      return steps_of_keras_call(
                 {.path = "x", .class_name = class_name, .config = options, .inputs = inputs, .arguments = {}}, notes)
          .front();
    };
    const HoldfastStep step = read(config);
    EXPECT_EQ(step.kind, row.kind);
    const KerasObject written =
        keras_layer_object({.kind = step.kind, .name = "x", .config = step.config}, "x", inputs);
    EXPECT_EQ(written.object["class_name"], row.keras);
    EXPECT_EQ(read(written.object["config"]).config, step.config) << row.keras;
  }
}

}  // namespace
}  // namespace holdfast::format
