// Arrays of recurrent layers and attentions are checked element by element against the packing that PyTorch's
// documentation gives. tests/interop/pytorch_test.py compares what both compute.

#include "pytorch/pytorch_sequences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "holdfast/format/exchange/pytorch.h"
#include "unit/exchange/support/pytorch_sets.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;
using testing::thrown_by;
using namespace pytorch_sets;

constexpr std::uint64_t kCellUnits = 3;
constexpr std::uint64_t kCellInputs = 2;
constexpr std::uint64_t kWidth = 6;

// A savepoint of one layer with options.
ArraySet one_layer(const Shape& input, const LayerOf& layer, const char* config, std::vector<NamedArray> arrays) {
  ArraySet set = savepoint_of(input, {layer}, std::move(arrays));
  nlohmann::json metadata = nlohmann::json::parse(set.metadata);
  metadata["graph"]["layers"][0]["config"] = nlohmann::json::parse(config);
  set.metadata = metadata.dump();
  return set;
}

std::vector<NamedArray> cell(const std::string& part, std::uint64_t gates, const Shape& bias) {
  return {numbered(part + "/kernel", {kCellInputs, gates * kCellUnits}),
          numbered(part + "/recurrent_kernel", {kCellUnits, gates * kCellUnits}), numbered(part + "/bias", bias)};
}

TEST(PyTorchSequences, NameTheWeightsOfASimpleRnn) {
  const ArraySet set = one_layer({5, kCellInputs}, {"SimpleRNN", "rnn"}, "{}", cell("model/rnn/cell", 1, {kCellUnits}));

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state),
            (std::vector<std::string>{"rnn.bias_hh_l0", "rnn.bias_ih_l0", "rnn.weight_hh_l0", "rnn.weight_ih_l0"}));
  EXPECT_EQ(get(state, "rnn.weight_ih_l0").shape, (Shape{kCellUnits, kCellInputs}));
  EXPECT_EQ(at(get(state, "rnn.weight_ih_l0"), {2, 1}), at(get(set, "model/rnn/cell/kernel"), {1, 2}));
  EXPECT_EQ(get(state, "rnn.bias_hh_l0").bytes, array_of("", {3}, {0, 0, 0}).bytes);
  expect_round_trip(set);
}

TEST(PyTorchSequences, NameTheBackwardWeightsReverse) {
  std::vector<NamedArray> arrays = cell("model/rnn/forward_layer/cell", 3, {2, 3 * kCellUnits});
  for (NamedArray& array : cell("model/rnn/backward_layer/cell", 3, {2, 3 * kCellUnits}))
    arrays.push_back(std::move(array));
  const ArraySet set =
      one_layer({5, kCellInputs}, {"Bidirectional", "rnn"}, R"({"layer": "GRU", "merge_mode": "concat"})", arrays);

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(state.arrays.size(), 8U);
  // The reset gate comes first in PyTorch.
  EXPECT_EQ(at(get(state, "rnn.weight_ih_l0"), {0, 1}),
            at(get(set, "model/rnn/forward_layer/cell/kernel"), {1, kCellUnits}));
  EXPECT_EQ(at(get(state, "rnn.weight_hh_l0_reverse"), {kCellUnits, 1}),
            at(get(set, "model/rnn/backward_layer/cell/recurrent_kernel"), {1, 0}));
  EXPECT_EQ(at(get(state, "rnn.bias_hh_l0_reverse"), {2 * kCellUnits}),
            at(get(set, "model/rnn/backward_layer/cell/bias"), {1, 2 * kCellUnits}));
  expect_round_trip(set);
}

// Two LSTMs, one on top of the other.
ArraySet stack_of_two(const std::string& first, const std::string& second) {
  std::vector<NamedArray> arrays = cell("model/" + first + "/cell", 4, {4 * kCellUnits});
  for (NamedArray& array : cell("model/" + second + "/cell", 4, {4 * kCellUnits})) {
    // It takes what the first one gives.
    if (array.name.ends_with("/kernel")) array = numbered(array.name, {kCellUnits, 4 * kCellUnits});
    arrays.push_back(std::move(array));
  }
  return savepoint_of({5, kCellInputs}, {{"LSTM", first}, {"LSTM", second}}, std::move(arrays));
}

TEST(PyTorchSequences, NameLayersThatAreNumberedAsPyTorchDoesAsOneModule) {
  const ArraySet set = stack_of_two("rnn_l0", "rnn_l1");

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state),
            (std::vector<std::string>{"rnn.bias_hh_l0", "rnn.bias_hh_l1", "rnn.bias_ih_l0", "rnn.bias_ih_l1",
                                      "rnn.weight_hh_l0", "rnn.weight_hh_l1", "rnn.weight_ih_l0", "rnn.weight_ih_l1"}));
  EXPECT_EQ(get(state, "rnn.weight_ih_l1").shape, (Shape{4 * kCellUnits, kCellUnits}));
  EXPECT_EQ(at(get(state, "rnn.weight_ih_l1"), {2, 1}), at(get(set, "model/rnn_l1/cell/kernel"), {1, 2}));
  expect_round_trip(set);
}

TEST(PyTorchSequences, ReadAModuleOfSeveralLayersWithNumbersOfAnyKind) {
  const ArraySet stacked = stack_of_two("rnn_l0", "rnn_l1");
  const ArraySet state = to_pytorch(stacked);
  for (const auto& [first, second] : {std::pair("rnn", "rnn_1"), std::pair("rnn.0", "rnn.1")}) {
    const ArraySet set = stack_of_two(first, second);
    const ArraySet read = from_pytorch(state, set);

    EXPECT_EQ(get(read, std::string("model/") + second + "/cell/kernel").bytes,
              get(stacked, "model/rnn_l1/cell/kernel").bytes);
    // Each of them is a module when they are written.
    EXPECT_EQ(to_pytorch(set).arrays.size(), 8U);
    expect_round_trip(set);
  }
}

TEST(PyTorchSequences, RefuseAModuleOfMoreLayersThanThereAre) {
  const ArraySet state = to_pytorch(stack_of_two("rnn_l0", "rnn_l1"));
  const ArraySet one = one_layer({5, kCellInputs}, {"LSTM", "rnn"}, "{}", cell("model/rnn/cell", 4, {4 * kCellUnits}));

  EXPECT_THAT(thrown_by([&] { from_pytorch(state, one); }).sentence, HasSubstr("for which the savepoint has no array"));
}

TEST(PyTorchSequences, RefuseFormulaeThatPyTorchLacks) {
  const auto refusal = [](const char* kind, const char* config, std::uint64_t gates, const Shape& bias) {
    return thrown_by([&] {
             to_pytorch(one_layer({5, kCellInputs}, {kind, "rnn"}, config, cell("model/rnn/cell", gates, bias)));
           })
        .sentence;
  };

  EXPECT_THAT(refusal("LSTM", R"({"activation": "relu"})", 4, {4 * kCellUnits}), HasSubstr("has an activation"));
  EXPECT_THAT(refusal("LSTM", R"({"go_backwards": true})", 4, {4 * kCellUnits}), HasSubstr("goes backwards"));
  EXPECT_THAT(refusal("GRU", R"({"recurrent_activation": "tanh"})", 3, {2, 3 * kCellUnits}),
              HasSubstr("has an activation"));
  EXPECT_THAT(refusal("SimpleRNN", R"({"activation": "linear"})", 1, {kCellUnits}), HasSubstr("has an activation"));
  EXPECT_THAT(refusal("GRU", R"({"reset_after": false})", 3, {3 * kCellUnits}), HasSubstr("has reset_after = false"));
  EXPECT_THAT(refusal("Bidirectional", R"({"layer": "Dense"})", 1, {kCellUnits}),
              HasSubstr("does not say which layer"));
}

// The outputs of a Conv1D have their channels first in PyTorch, those of a recurrent layer their steps.
TEST(PyTorchSequences, FlattenStepByStep) {
  std::vector<NamedArray> arrays = cell("model/rnn/cell", 4, {4 * kCellUnits});
  arrays.push_back(numbered("model/conv/kernel", {1, 4, kCellInputs}));
  arrays.push_back(numbered("model/fc/kernel", {5 * kCellUnits, 2}));
  ArraySet set = savepoint_of({5, 4}, {{"Conv1D", "conv"}, {"LSTM", "rnn"}, {"Flatten", "flat"}, {"Dense", "fc"}},
                              std::move(arrays));
  nlohmann::json metadata = nlohmann::json::parse(set.metadata);
  metadata["graph"]["layers"][1]["config"] = {{"return_sequences", true}};
  set.metadata = metadata.dump();

  const NamedArray weight = get(to_pytorch(set), "fc.weight");

  for (std::uint64_t in = 0; in < 5 * kCellUnits; ++in) {
    EXPECT_EQ(at(weight, {1, in}), at(get(set, "model/fc/kernel"), {in, 1})) << in;
  }
  expect_round_trip(set);
}

// Two heads of three.
std::vector<NamedArray> heads(std::uint64_t key_width, std::uint64_t key_heads = 2) {
  std::vector<NamedArray> arrays;
  for (const char* part : {"query", "key", "value"}) {
    const bool is_query = std::string(part) == "query";
    const std::string name = std::string("model/a/") + part + "_dense/";
    arrays.push_back(numbered(name + "kernel", {is_query ? kWidth : key_width, is_query ? 2 : key_heads, 3}));
    arrays.push_back(numbered(name + "bias", {is_query ? 2 : key_heads, 3}));
  }
  arrays.push_back(numbered("model/a/output_dense/kernel", {2, 3, kWidth}));
  arrays.push_back(numbered("model/a/output_dense/bias", {kWidth}));
  return arrays;
}

TEST(PyTorchSequences, PackTheProjectionsOfAnAttention) {
  const ArraySet set = one_layer({5, kWidth}, {"MultiHeadAttention", "a"}, "{}", heads(kWidth));

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state),
            (std::vector<std::string>{"a.in_proj_bias", "a.in_proj_weight", "a.out_proj.bias", "a.out_proj.weight"}));
  const NamedArray& packed = get(state, "a.in_proj_weight");
  EXPECT_EQ(packed.shape, (Shape{3 * kWidth, kWidth}));
  EXPECT_EQ(get(state, "a.in_proj_bias").shape, (Shape{3 * kWidth}));
  const char* parts[] = {"query", "key", "value"};
  for (std::uint64_t part = 0; part < 3; ++part) {
    const std::string name = std::string("model/a/") + parts[part] + "_dense/";
    for (std::uint64_t head = 0; head < 2; ++head) {
      for (std::uint64_t place = 0; place < 3; ++place) {
        const std::uint64_t row = part * kWidth + 3 * head + place;
        EXPECT_EQ(at(packed, {row, 4}), at(get(set, name + "kernel"), {4, head, place}));
        EXPECT_EQ(at(get(state, "a.in_proj_bias"), {row}), at(get(set, name + "bias"), {head, place}));
      }
    }
  }
  EXPECT_EQ(at(get(state, "a.out_proj.weight"), {4, 3 + 2}), at(get(set, "model/a/output_dense/kernel"), {1, 2, 4}));
  expect_round_trip(set);
}

TEST(PyTorchSequences, KeepProjectionsOfAnotherWidthApart) {
  const ArraySet set = one_layer({5, kWidth}, {"MultiHeadAttention", "a"}, "{}", heads(4));

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state), (std::vector<std::string>{"a.in_proj_bias", "a.k_proj_weight", "a.out_proj.bias",
                                                       "a.out_proj.weight", "a.q_proj_weight", "a.v_proj_weight"}));
  EXPECT_EQ(get(state, "a.k_proj_weight").shape, (Shape{kWidth, 4}));
  expect_round_trip(set);
}

TEST(PyTorchSequences, NameGroupsOfQueriesAsLinearModules) {
  const ArraySet set = one_layer({5, kWidth}, {"GroupQueryAttention", "a"}, "{}", heads(kWidth, 1));

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(get(state, "a.q_proj.weight").shape, (Shape{6, kWidth}));
  EXPECT_EQ(get(state, "a.k_proj.weight").shape, (Shape{3, kWidth}));
  EXPECT_EQ(get(state, "a.v_proj.bias").shape, (Shape{3}));
  EXPECT_EQ(at(get(state, "a.o_proj.weight"), {4, 5}), at(get(set, "model/a/output_dense/kernel"), {1, 2, 4}));
  expect_round_trip(set);
}

TEST(PyTorchSequences, KeepTheAnglesOfAnAttentionToThemselves) {
  std::vector<NamedArray> arrays;
  for (const auto& [part, shape] :
       {std::pair("query", Shape{kWidth, 3, 2}), std::pair("key", Shape{kWidth, 1, 2}),
        std::pair("value", Shape{kWidth, 1, 2}), std::pair("output", Shape{3, 2, kWidth})}) {
    arrays.push_back(numbered("model/attn/" + std::string(part) + "_dense/kernel", shape));
  }
  for (const char* table : {"cosine", "sine"})
    arrays.push_back(numbered("model/attn/rotary/" + std::string(table), {5, 1}));
  std::ranges::sort(arrays, {}, &NamedArray::name);
  const ArraySet grouped = savepoint_of({5, kWidth}, {{"GroupQueryAttention", "attn"}}, arrays);
  const ArraySet alone = savepoint_of({5, kWidth}, {{"MultiHeadAttention", "attn"}}, arrays);

  EXPECT_EQ(names_of(to_pytorch(grouped)), (std::vector<std::string>{"attn.k_proj.weight", "attn.o_proj.weight",
                                                                     "attn.q_proj.weight", "attn.v_proj.weight"}));
  testing::expect_equal(from_pytorch(to_pytorch(grouped), grouped).arrays, grouped.arrays);
  EXPECT_THAT(thrown_by([&] { to_pytorch(alone); }).sentence, HasSubstr("turns queries and keys by their position"));
}

TEST(PyTorchSequences, RefuseHeadsThatDoNotShareTheWidth) {
  const ArraySet set = one_layer({5, kWidth}, {"MultiHeadAttention", "a"}, "{}", heads(kWidth, 1));

  EXPECT_THAT(thrown_by([&] { to_pytorch(set); }).sentence,
              HasSubstr("has 1 heads of 3, and PyTorch's heads share the width 6 of the queries"));
}

TEST(PyTorchSequences, RefuseProjectionsOfTwoTypesInOneArray) {
  std::vector<NamedArray> arrays = heads(kWidth);
  arrays[2] = {arrays[2].name, DType::f64, arrays[2].shape, std::vector<std::byte>(36 * sizeof(double))};
  const ArraySet set = one_layer({5, kWidth}, {"MultiHeadAttention", "a"}, "{}", arrays);

  EXPECT_THAT(thrown_by([&] { to_pytorch(set); }).sentence, HasSubstr("is of another type"));
}

// An attention, a Dense and the words of GPT-2.
ArraySet gpt2() {
  std::vector<NamedArray> arrays = heads(kWidth);
  for (NamedArray& array : arrays) array.name.replace(0, 8, "model/h/0/attn/");
  for (NamedArray array :
       {numbered("model/wpe/embeddings", {9, kWidth}), numbered("model/h/0/mlp/c_fc/kernel", {kWidth, 4}),
        numbered("model/h/0/mlp/c_fc/bias", {4}), numbered("model/lm_head/kernel", {4, 7})}) {
    arrays.push_back(std::move(array));
  }
  return savepoint_of({5, kWidth},
                      {{"PositionEmbedding", "wpe"},
                       {"MultiHeadAttention", "h/0/attn"},
                       {"Dense", "h/0/mlp/c_fc"},
                       {"Dense", "lm_head"}},
                      std::move(arrays));
}

TEST(PyTorchSequences, NameAndPackLayersAsGpt2Does) {
  const ArraySet set = gpt2();

  const ArraySet state = to_pytorch(set, PyTorchStyle::gpt2);

  EXPECT_EQ(names_of(state),
            (std::vector<std::string>{"h.0.attn.c_attn.bias", "h.0.attn.c_attn.weight", "h.0.attn.c_proj.bias",
                                      "h.0.attn.c_proj.weight", "h.0.mlp.c_fc.bias", "h.0.mlp.c_fc.weight",
                                      "lm_head.weight", "wpe.weight"}));
  const NamedArray& packed = get(state, "h.0.attn.c_attn.weight");
  EXPECT_EQ(packed.shape, (Shape{kWidth, 3 * kWidth}));
  // Head 1, place 2 of the keys.
  EXPECT_EQ(at(packed, {4, kWidth + 3 + 2}), at(get(set, "model/h/0/attn/key_dense/kernel"), {4, 1, 2}));
  EXPECT_EQ(at(get(state, "h.0.attn.c_proj.weight"), {3 + 2, 4}),
            at(get(set, "model/h/0/attn/output_dense/kernel"), {1, 2, 4}));
  EXPECT_EQ(get(state, "h.0.mlp.c_fc.weight").bytes, get(set, "model/h/0/mlp/c_fc/kernel").bytes);
  EXPECT_EQ(get(state, "lm_head.weight").shape, (Shape{7, 4}));
}

TEST(PyTorchSequences, ReadTheFileOfAGpt2WithItsHeadAndMasks) {
  const ArraySet set = gpt2();
  ArraySet state = to_pytorch(set, PyTorchStyle::gpt2);
  for (NamedArray& array : state.arrays) {
    if (array.name != "lm_head.weight") array.name = "transformer." + array.name;
  }
  state.arrays.push_back({"transformer.h.0.attn.bias", DType::u8, {1, 1, 9, 9}, std::vector<std::byte>(81)});
  state.arrays.push_back({"transformer.h.0.attn.masked_bias", DType::f32, {}, std::vector<std::byte>(4)});
  ArraySet like = set;
  for (NamedArray& array : like.arrays) std::fill(array.bytes.begin(), array.bytes.end(), std::byte{0});

  const ArraySet back = from_pytorch(state, like);

  testing::expect_equal(back.arrays, set.arrays);
}

// A savepoint of such a model has the table of words once, and no layer for the head.
TEST(PyTorchSequences, ReadTheTiedHeadOfAGpt2IfItIsTheTable) {
  std::vector<NamedArray> arrays = heads(kWidth);
  for (NamedArray& array : arrays) array.name.replace(0, 8, "model/h/0/attn/");
  arrays.push_back(numbered("model/wte/embeddings", {7, kWidth}));
  std::ranges::sort(arrays, {}, &NamedArray::name);
  const ArraySet set = savepoint_of({5}, {{"Embedding", "wte"}, {"MultiHeadAttention", "h/0/attn"}}, std::move(arrays));
  ArraySet state = to_pytorch(set, PyTorchStyle::gpt2);
  NamedArray head = get(state, "wte.weight");
  head.name = "lm_head.weight";
  state.arrays.push_back(head);

  testing::expect_equal(from_pytorch(state, set).arrays, set.arrays);
  state.arrays.back().bytes[0] ^= std::byte{1};
  EXPECT_THAT(thrown_by([&] { from_pytorch(state, set); }).sentence,
              HasSubstr("\"lm_head.weight\" of the state dict is not \"wte.weight\""));
}

TEST(PyTorchSequences, NameTheTypeThatAStateDictHasInstead) {
  const ArraySet set = gpt2();
  ArraySet state = to_pytorch(set, PyTorchStyle::gpt2);
  for (NamedArray& array : state.arrays) {
    array.dtype = DType::f16;
    array.bytes.resize(array.bytes.size() / 2);
  }

  EXPECT_THAT(thrown_by([&] { from_pytorch(state, set); }).sentence, HasSubstr("convert the state dict to that type"));
}

TEST(PyTorchSequences, RefuseAnAttentionThatGpt2DoesNotHave) {
  const auto refusal = [](const std::vector<NamedArray>& arrays) {
    const ArraySet set = one_layer({5, kWidth}, {"MultiHeadAttention", "a"}, "{}", arrays);
    return thrown_by([&] { to_pytorch(set, PyTorchStyle::gpt2); }).sentence;
  };
  std::vector<NamedArray> without_bias = heads(kWidth);
  std::erase_if(without_bias, [](const NamedArray& array) { return array.name.ends_with("bias"); });

  EXPECT_THAT(refusal(heads(4)), HasSubstr("has keys or values of another width"));
  EXPECT_THAT(refusal(without_bias), HasSubstr("has no bias"));
}

// Kernels of its other layers would not have been transposed, which no module of PyTorch takes.
TEST(PyTorchSequences, RefuseAModelThatIsNoGpt2) {
  const ArraySet set = one_layer({5, kCellInputs}, {"LSTM", "rnn"}, "{}", cell("model/rnn/cell", 4, {4 * kCellUnits}));

  EXPECT_THAT(thrown_by([&] { to_pytorch(set, PyTorchStyle::gpt2); }).sentence, HasSubstr("no attention of GPT-2"));
  EXPECT_FALSE(to_pytorch(set).arrays.empty());
}

TEST(PyTorchSequences, NameTheWordsThatAHeadShares) {
  const LayerOf words{"ReversibleEmbedding", "w"};
  const ArraySet set = savepoint_of({5}, {words}, {numbered("model/w/embeddings", {7, 5})});

  EXPECT_EQ(get(to_pytorch(set), "w.weight").shape, (Shape{7, 5}));
  expect_round_trip(set);
  const ArraySet apart = savepoint_of(
      {5}, {words}, {numbered("model/w/embeddings", {7, 5}), numbered("model/w/reverse_embeddings", {5, 7})});
  EXPECT_THAT(thrown_by([&] { to_pytorch(apart); }).sentence,
              HasSubstr("\"model/w/reverse_embeddings\" has no counterpart"));
}

TEST(PyTorchSequences, NameTrainedPositionsAndKeepWavesToThemselves) {
  const ArraySet set =
      savepoint_of({5, 4}, {{"PositionEmbedding", "p"}, {"SinePositionEncoding", "w"}, {"RotaryEmbedding", "r"}},
                   {numbered("model/p/embeddings", {9, 4}), numbered("model/w/encoding", {5, 4}),
                    numbered("model/r/cosine", {5, 2}), numbered("model/r/sine", {5, 2})});

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state), (std::vector<std::string>{"p.weight"}));
  EXPECT_EQ(from_pytorch(state, set).arrays.size(), 4U);
  testing::expect_equal(from_pytorch(state, set).arrays, set.arrays);
}

}  // namespace
}  // namespace holdfast::format
