#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/base/utf8.h"
#include "holdfast/nn/activation_layer.h"
#include "holdfast/nn/attention.h"
#include "holdfast/nn/average_pooling2d.h"
#include "holdfast/nn/batch_normalization.h"
#include "holdfast/nn/conv2d.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/dropout.h"
#include "holdfast/nn/einsum_dense.h"
#include "holdfast/nn/flatten.h"
#include "holdfast/nn/functions.h"
#include "holdfast/nn/max_pooling2d.h"
#include "holdfast/nn/recurrent_layers.h"
#include "holdfast/nn/sequential.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;

// Every kind of layer, every option away from its default.
Sequential model_of_everything() {
  return Sequential{Input{28, 28, 3},
                    Conv2D{6,
                           {5, 3},
                           {.strides = {1, 2},
                            .padding = Padding::same,
                            .activation = Activation::tanh,
                            .use_bias = false,
                            .kernel_initializer = Initializer::he_normal(),
                            .bias_initializer = Initializer::ones(),
                            .name = "first"}},
                    MaxPooling2D{{2, 3}, {.strides = Extent2D{2, 1}, .padding = Padding::same}},
                    AveragePooling2D{2, {.strides = 1}},
                    BatchNormalization{{.momentum = 0.9F, .epsilon = 1e-5F}},
                    ActivationLayer{Activation::gelu},
                    Dropout{0.3F},
                    Flatten{},
                    Dense{7,
                          {.activation = Activation::softmax,
                           .kernel_initializer = Initializer::normal(0.02F),
                           .bias_initializer = Initializer::ones()}}};
}

ErrorCode code_of(const std::string& graph) {
  try {
    Sequential::from_graph(graph);
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "accepted: " << graph.substr(0, 200);
  return ErrorCode::unsupported;
}

TEST(SequentialGraph, ReadsBackWhatItWrote) {
  const Sequential model = model_of_everything();

  const Sequential read = Sequential::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_EQ(read.summary(), model.summary());
  std::vector<float> weights(model.parameters().float_count()), read_weights(weights.size());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(1, weights, buffers);
  read.initialize(1, read_weights, buffers);
  EXPECT_EQ(read_weights, weights);
}

TEST(SequentialGraph, IsTheDocumentedText) {
  const Sequential model{Input{4}, Dense{2}, Dropout{0.3F}};

  EXPECT_EQ(model.graph(),
            R"({"format":"holdfast.sequential","version":1,"input_shape":[4],"layers":[)"
            R"({"kind":"Dense","name":"dense","config":{"units":2,"activation":"linear","use_bias":true,)"
            R"("kernel_initializer":"glorot_uniform","bias_initializer":"zeros"}},)"
            R"({"kind":"Dropout","name":"dropout","config":{"rate":0.3}}]})");
}

TEST(SequentialGraph, NamesScaleAndCenterOfABatchNormalizationWhereTheyAreFalse) {
  const auto text_of = [](const BatchNormalizationOptions& options) {
    const Sequential model{Input{2}, BatchNormalization{options}};
    EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
    EXPECT_EQ(Sequential::from_graph(model.graph()).summary(), model.summary());
    return model.graph();
  };
  using ::testing::HasSubstr;
  const std::string both = text_of({});
  EXPECT_THAT(both, HasSubstr(R"("config":{"momentum":0.99,"epsilon":0.001}})"));
  EXPECT_THAT(text_of({.has_scale = false}), HasSubstr(R"("config":{"momentum":0.99,"epsilon":0.001,"scale":false}})"));
  EXPECT_THAT(text_of({.has_scale = false, .has_center = false}),
              HasSubstr(R"("config":{"momentum":0.99,"epsilon":0.001,"scale":false,"center":false}})"));

  const auto with = [&](const char* option, const Json& value) {
    Json json = Json::parse(both);
    json["layers"][0]["config"][option] = value;
    return json.dump();
  };
  EXPECT_EQ(Sequential::from_graph(with("scale", true)).graph(), both);
  EXPECT_EQ(Sequential::from_graph(with("center", true)).graph(), both);
  for (const char* option : {"scale", "center"}) {
    for (const Json& stranger : std::vector<Json>{nullptr, 0, 1, 0.5, "false", Json::array({false})}) {
      EXPECT_EQ(code_of(with(option, stranger)), ErrorCode::invalid_file) << option << " " << stranger.dump();
    }
  }
  EXPECT_EQ(code_of(with("has_scale", false)), ErrorCode::invalid_file);
}

TEST(SequentialGraph, KeepsEveryBitOfItsNumbers) {
  for (const float value : {0.1F, 0.99F, 1e-7F, 0x1.fffffep-1F, 0x1p-149F, 1.17549449e-38F}) {
    const Sequential model{Input{2}, Dropout{value}};

    const Json json = Json::parse(model.graph());

    EXPECT_EQ(json["layers"][0]["config"]["rate"].get<float>(), value);
    EXPECT_EQ(Sequential::from_graph(model.graph()).graph(), model.graph());
  }
}

TEST(SequentialGraph, IsReadInAnyOrderOfKeysAndWithSpaces) {
  const Sequential model = model_of_everything();

  // The plain kind sorts its keys; 2 adds line breaks.
  const std::string sorted = Json::parse(model.graph()).dump(2);

  EXPECT_EQ(Sequential::from_graph(sorted).graph(), model.graph());
}

TEST(SequentialGraph, RefusesEveryPartThatIsMissing) {
  const Json whole = Json::parse(model_of_everything().graph());
  for (const auto& [key, value] : whole.items()) {
    Json json = whole;
    json.erase(key);
    EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file) << key;
  }
  for (std::size_t layer = 0; layer < whole["layers"].size(); ++layer) {
    for (const auto& [key, value] : whole["layers"][layer].items()) {
      Json json = whole;
      json["layers"][layer].erase(key);
      EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file) << layer << " " << key;
    }
    for (const auto& [key, value] : whole["layers"][layer]["config"].items()) {
      Json json = whole;
      json["layers"][layer]["config"].erase(key);
      EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file) << layer << " " << key;
    }
  }
}

TEST(SequentialGraph, RefusesValuesOfAnotherKindEverywhere) {
  const Json whole = Json::parse(model_of_everything().graph());
  const std::vector<Json> strangers = {
      nullptr, -1, 1.5, "text", Json::array({1, "x", 2}), Json::object({{"a", 1}}), 18446744073709551615U, 1e300};
  const auto expect_refused = [&](const Json::json_pointer& pointer) {
    for (const Json& stranger : strangers) {
      Json json = whole;
      if (stranger.is_number() && json[pointer].is_number_float()) continue;
      json[pointer] = stranger;
      EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file) << pointer.to_string() << " " << stranger.dump();
    }
  };
  for (const auto& [key, value] : whole.items()) expect_refused(Json::json_pointer("/" + key));
  for (std::size_t layer = 0; layer < whole["layers"].size(); ++layer) {
    const std::string path = "/layers/" + std::to_string(layer);
    expect_refused(Json::json_pointer(path));
    expect_refused(Json::json_pointer(path + "/kind"));
    expect_refused(Json::json_pointer(path + "/config"));
    for (const auto& [key, value] : whole["layers"][layer]["config"].items()) {
      expect_refused(Json::json_pointer(path + "/config/" + key));
    }
  }
}

TEST(SequentialGraph, RefusesNumbersOutOfRange) {
  const Json whole = Json::parse(model_of_everything().graph());
  const auto with = [&](const std::string& pointer, const Json& value) {
    Json json = whole;
    json[Json::json_pointer(pointer)] = value;
    return json.dump();
  };

  EXPECT_EQ(code_of(with("/layers/0/config/filters", 0)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/0/config/filters", 9223372036854775807)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/0/config/kernel_size", {2147483647, 2147483647})), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/0/config/strides", {0, 1})), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/3/config/epsilon", -1.0)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/5/config/rate", 1.0)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/7/config/units", 2147483647)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/7/config/kernel_initializer", "normal(nan)")), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/7/name", "first")), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/7/name", "../../etc")), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/layers/7/kind", "Lambda")), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/input_shape", Json::array())), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/input_shape", {28, 28, 0})), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/input_shape", {2147483647, 2147483647, 2147483647})), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/version", 2)), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(with("/format", "keras")), ErrorCode::invalid_file);
}

TEST(SequentialGraph, RefusesWhatItDoesNotKnow) {
  Json json = Json::parse(model_of_everything().graph());
  json["layers"][0]["config"]["dilation_rate"] = 2;
  EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file);

  json = Json::parse(model_of_everything().graph());
  json["layers"][0]["colour"] = false;
  EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file);
}

TEST(SequentialGraph, RefusesTextThatIsNotJson) {
  const std::string whole = model_of_everything().graph();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(code_of(whole.substr(0, length)), ErrorCode::invalid_file);
  }
  EXPECT_EQ(code_of(whole + "}"), ErrorCode::invalid_file);
  EXPECT_EQ(code_of("\xFF\xFE"), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(std::string("\0\0", 2)), ErrorCode::invalid_file);
}

TEST(SequentialGraph, SurvivesTextsMadeToExhaustIt) {
  // Nesting that would overflow a stack, more text than any model needs, very many keys, and more layers than a model
  // has.
  EXPECT_EQ(code_of(std::string(400'000, '[')), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(std::string(200'000, '[') + std::string(200'000, ']')), ErrorCode::invalid_file);
  EXPECT_EQ(code_of(std::string(10'000'000, ' ')), ErrorCode::invalid_file);
  std::string keys = "{";
  for (int key = 0; key < 100'000; ++key) keys += "\"" + std::to_string(key) + "\":0,";
  EXPECT_EQ(code_of(keys + "\"last\":0}"), ErrorCode::invalid_file);
  Json json = Json::parse(Sequential{Input{2}, Flatten{}}.graph());
  json["layers"] = std::vector<Json>(Sequential::kMaximumLayers + 1, json["layers"][0]);
  EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file);
}

// Two inputs, a sum and a reshape.
Json graph_of_calls() {
  const Value x = input({4}, {.name = "x"}), y = input({4}, {.name = "y"});
  return Json::parse(Model({x, y}, {reshape(x + y, {2, 2})}).graph());
}

TEST(ModelGraph, RefusesTwoInputsOfOneName) {
  Json json = graph_of_calls();
  json["inputs"][1]["name"] = "x";

  EXPECT_THAT(refusal([&] { Model::from_graph(json.dump()); }), testing::HasSubstr("two inputs"));
}

TEST(ModelGraph, RefusesNumbersOfCallsThatDoNotFitIntoSignedIntegers) {
  // Read as a signed number, 2^64 - 1 would be -1, which names an input of the model.
  for (const std::uint64_t number : {~std::uint64_t{0}, std::uint64_t{1} << 63}) {
    Json json = graph_of_calls();
    json["calls"][0]["inputs"][0] = {number, 0};
    EXPECT_THAT(refusal([&] { Model::from_graph(json.dump()); }), testing::HasSubstr("names no input")) << number;
    json = graph_of_calls();
    json["outputs"][0] = {0, number};
    EXPECT_THAT(refusal([&] { Model::from_graph(json.dump()); }), testing::HasSubstr("names no input")) << number;
  }
}

TEST(ModelGraph, RefusesExtentsWhoseProductOverflows) {
  const std::int64_t large = std::int64_t{1} << 62;
  for (const std::vector<std::int64_t>& extents :
       {std::vector<std::int64_t>{large, 4}, {large, 4, -1}, {large, large, large, -1}, {-large, 4, -1}}) {
    Json json = graph_of_calls();
    json["layers"][1]["config"]["shape"] = extents;
    EXPECT_EQ(code_of(json.dump()), ErrorCode::invalid_file);
    EXPECT_NE(refusal([&] { reshape(input({4}), extents); }), "");
  }
}

// Sentences showed texts of a file as they came, cut in the middle of a character: a terminal obeys what it is shown.
TEST(ModelGraph, ShowsTextsEscapedAndInWholeCharacters) {
  const Value x = input({5, 4}, {.name = "x"});
  const Value z = input({5, 4}, {.name = "z"});
  const Dense dense{2,
                    {.activation = Activation::tanh,
                     .kernel_regularizer = Regularizer::l2(0.5F),
                     .kernel_constraint = Constraint::max_norm(2)}};
  const Json graph = Json::parse(
      Model({x, z}, {Attention{}(x, z), Bidirectional{LSTM{2}}(x), EinsumDense{"abc,cd->abd", {5, 3}}(x), dense(x)})
          .graph());

  const Json leaves = graph.flatten();
  int texts = 0;
  for (const auto& [path, value] : leaves.items()) {
    if (!value.is_string()) continue;
    ++texts;
    // The second byte of the last character is the 101st.
    for (const std::string& text : {std::string("\x7f"), std::string(99, 'a') + "é and more"}) {
      Json changed = graph;
      changed[Json::json_pointer(path)] = text;
      // An input may have any name that no other one has.
      if (path.starts_with("/inputs/") && path.ends_with("/name")) {
        for (Json& input : changed["inputs"]) input["name"] = text;
      }

      const std::string sentence = refusal([&] { Model::from_graph(changed.dump()); });

      EXPECT_NE(sentence, "") << path;
      EXPECT_TRUE(is_utf8(sentence)) << path;
      EXPECT_EQ(sentence.find('\x7f'), std::string::npos) << path << ": " << sentence;
    }
  }
  EXPECT_GE(texts, 25);
}

}  // namespace
}  // namespace holdfast
