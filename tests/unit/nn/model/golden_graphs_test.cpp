// Texts of the graphs of models (docs/format.md), made by the first build that wrote them (tests/golden/graphs). Every
// later build must read them and write the same text again, since a savepoint is found to be of the same model by this
// text. So never change a file. For a new kind of layer or a new version of the format, add files:
// HOLDFAST_WRITE_GOLDEN=1 writes those of the models below that are missing.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "holdfast/holdfast.h"
#include "nn/layers/layer_registry.h"
#include "support/folders.h"
#include "support/program.h"

namespace holdfast {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

fs::path folder() {
  return source_folder() + "/tests/golden/graphs";
}

Model golden_chain() {
  return Sequential{Input{28, 28, 3},
                    Conv2D{6, {5, 3}, {.strides = {1, 2}, .padding = Padding::same, .use_bias = false}},
                    MaxPooling2D{{2, 3}, {.strides = Extent2D{2, 1}}},
                    BatchNormalization{{.momentum = 0.9F, .epsilon = 1e-5F, .name = "statistics"}},
                    Dropout{0.3F},
                    Flatten{},
                    Dense{7, {.activation = Activation::softmax, .kernel_initializer = Initializer::normal(0.02F)}}};
}

// Blocks that are recomputed, shortcuts, operators, and a model in a model.
Model golden_residual() {
  const Value inner = input({8, 8, 4});
  const Model block(inner, relu(inner + Conv2D{4, 3, {.padding = Padding::same}}(inner)));
  const Value x = input({8, 8, 3}, {.name = "image"});
  const Value first = Conv2D{4, 3, {.padding = Padding::same}}(x);
  const Value second = recompute([&] { return 0.5F * block.call({first}, "block").front() + gelu(first); });
  return Model(x, Dense{10}(GlobalAveragePooling{}(second)));
}

// Inputs of several types, a shared layer, two outputs.
Model golden_two_towers() {
  const Value left = input({3}, {.dtype = DType::u16, .name = "left"});
  const Value right = input({3}, {.dtype = DType::u16, .name = "right"});
  const Value price = input({1}, {.dtype = DType::bf16, .name = "price"});
  const Embedding words(50, 4);
  const auto tower = [&](const Value& ids) { return Flatten{}(words(ids)); };
  const Value joined = Concatenate{}(tower(left), tower(right), price);
  return Model({left, right, price}, {Dense{1, {.name = "score"}}(joined), Dense{3, {.name = "class"}}(joined)});
}

// Options that files name where they are not the default.
Model golden_batch_normalization() {
  return Sequential{Input{4, 2}, BatchNormalization{{.momentum = 0.9F, .has_scale = false}},
                    BatchNormalization{{.has_center = false}},
                    BatchNormalization{{.epsilon = 1e-5F, .has_scale = false, .has_center = false, .name = "neither"}}};
}

// One array for several layers, by functions of a weight and by a layer of two directions.
Model golden_tied_weights() {
  const Value ids = input({5}, {.dtype = DType::i32, .name = "ids"});
  const ReversibleEmbedding words{40, 6, {.logit_soft_cap = 30.0F, .name = "words"}};
  const Value hidden = words(ids);
  const Value code = Dense{3, {.use_bias = false, .name = "encoder"}}(hidden);
  const Value decoded = matmul(code, permute(weight_of(code, "kernel"), {1, 0}));
  const Value again = gather(weight_of(hidden, "embeddings"), ids);
  const ReversibleEmbedding untied{40, 6, {.tie_weights = false, .name = "untied"}};
  return Model({ids}, {words.reverse(decoded + again), untied.reverse(decoded)});
}

// Options of normalizations and of the enlargement of images.
Model golden_options() {
  const Value x = input({4, 4, 2});
  const Value large = UpSampling2D{2, {.interpolation = Interpolation::bilinear}}(x);
  const Value normal = LayerNormalization{
      {.axis = {-2, -1}, .beta_initializer = Initializer::ones(), .gamma_initializer = Initializer::zeros()}}(large);
  const Value moving = BatchNormalization{{.moving_mean_initializer = Initializer::constant(0.5F),
                                           .moving_variance_initializer = Initializer::constant(2)}}(normal);
  return Model(x, GroupNormalization{1, {.gamma_initializer = Initializer::constant(0.25F)}}(moving));
}

Model golden_pooling() {
  return Sequential{Input{9, 6}, UnitNormalization{{.axes = {0, -1}}}, AdaptiveAveragePooling{{5}},
                    AdaptiveMaxPooling{{2}},
                    EinsumDense{"abc,cde->abde", {-1, 2, 3}, {.activation = Activation::tanh, .bias_axes = "de"}}};
}

// Layers of sequences, with states, masks and several outputs.
Model golden_sequences() {
  const Value x = input({6, 4}, {.name = "x"});
  const Value kept = input({6}, {.dtype = DType::boolean, .name = "kept"});
  const Value y = x + PositionEmbedding{8}(x) + SinePositionEncoding{}(x);
  const LSTM encoder{3, {.return_state = true, .takes_mask = true}};
  const std::vector<Value> ends = encoder.call(std::vector<Value>{y, kept});
  const Value words = LSTM{3, {.unit_forget_bias = false, .return_sequences = true}}(x, ends[1], ends[2]);
  const Value decoded = GRU{2, {.return_sequences = true}}(words);
  const Value both = Bidirectional{GRU{2, {.activation = Activation::relu, .return_sequences = true}},
                                   {.merge_mode = MergeMode::ave}}(decoded);
  const Value last = SimpleRNN{3, {.use_bias = false, .go_backwards = true, .dropout = 0.25F}}(both);
  const Value heads = MultiHeadAttention{2, 3, {.value_dim = 2, .dropout = 0.5F, .takes_padding_mask = true}}(y, kept);
  const Value groups = GroupQueryAttention{2, 4, 2, {.use_causal_mask = true, .sliding_window = 3}}(heads);
  const Value plain = Attention{{.use_scale = true, .score_mode = ScoreMode::concat}}(groups, y);
  const Value products = einsum("qd,kd->qk", RotaryEmbedding{{.scaling_factor = 2}}(plain), flip(x, 0));
  return Model({x, kept}, {last, ends[0], AdditiveAttention{}(products, products)});
}

const std::map<std::string, Model>& described_models() {
  static const std::map<std::string, Model> models = {{"batch_normalization.json", golden_batch_normalization()},
                                                      {"adaptive_pooling.json", golden_pooling()},
                                                      {"chain.json", golden_chain()},
                                                      {"options.json", golden_options()},
                                                      {"residual.json", golden_residual()},
                                                      {"sequences.json", golden_sequences()},
                                                      {"tied_weights.json", golden_tied_weights()},
                                                      {"two_towers.json", golden_two_towers()}};
  return models;
}

void write_missing() {
  for (const auto& [name, model] : described_models()) {
    if (!fs::exists(folder() / name)) std::ofstream(folder() / name) << model.graph();
  }
}

TEST(GoldenGraphs, AreReadAndWrittenAgainToTheByte) {
  if (std::getenv("HOLDFAST_WRITE_GOLDEN") != nullptr) write_missing();
  std::size_t count = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    SCOPED_TRACE(entry.path().filename());
    const std::string text = read_file(entry.path());

    EXPECT_EQ(Model::from_graph(text).graph(), text);
    ++count;
  }
  EXPECT_GE(count, described_models().size());
}

TEST(GoldenGraphs, AreWhatTheirDescriptionsGive) {
  for (const auto& [name, model] : described_models()) {
    EXPECT_EQ(model.graph(), read_file(folder() / name)) << name;
  }
}

TEST(GoldenGraphs, HaveEveryKindOfLayer) {
  std::set<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder())) {
    const Json graph = Json::parse(read_file(entry.path()));
    for (const Json& layer : graph.at("layers")) found.insert(layer.at("kind").get<std::string>());
  }
  for (const std::string_view kind : own_layer_kinds()) EXPECT_TRUE(found.contains(std::string(kind))) << kind;
}

}  // namespace
}  // namespace holdfast
