// Every mapping is checked element by element against the index that PyTorch's documentation gives.

#include "holdfast/format/exchange/pytorch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "holdfast/base/error.h"
#include "unit/exchange/support/pytorch_sets.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::HasSubstr;
using testing::Thrown;
using testing::thrown_by;
using namespace pytorch_sets;

TEST(PyTorch, TransposesDense) {
  const ArraySet set =
      savepoint_of({2}, {{"Dense", "fc"}}, {numbered("model/fc/kernel", {2, 3}), numbered("model/fc/bias", {3})});

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state), (std::vector<std::string>{"fc.bias", "fc.weight"}));
  EXPECT_EQ(state.metadata, R"({"format":"pt"})");
  EXPECT_EQ(get(state, "fc.weight").shape, (Shape{3, 2}));
  for (std::uint64_t in = 0; in < 2; ++in) {
    for (std::uint64_t out = 0; out < 3; ++out) {
      EXPECT_EQ(at(get(state, "fc.weight"), {out, in}), at(get(set, "model/fc/kernel"), {in, out}));
    }
  }
  EXPECT_EQ(get(state, "fc.bias").bytes, get(set, "model/fc/bias").bytes);
  expect_round_trip(set);
}

TEST(PyTorch, PutsTheChannelsOfConvolutionsFirst) {
  const ArraySet set = savepoint_of({8, 8, 4}, {{"Conv2D", "conv"}},
                                    {numbered("model/conv/kernel", {2, 3, 4, 5}), numbered("model/conv/bias", {5})});

  const NamedArray weight = get(to_pytorch(set), "conv.weight");

  EXPECT_EQ(weight.shape, (Shape{5, 4, 2, 3}));
  for (std::uint64_t h = 0; h < 2; ++h) {
    for (std::uint64_t w = 0; w < 3; ++w) {
      for (std::uint64_t in = 0; in < 4; ++in) {
        for (std::uint64_t out = 0; out < 5; ++out) {
          EXPECT_EQ(at(weight, {out, in, h, w}), at(get(set, "model/conv/kernel"), {h, w, in, out}));
        }
      }
    }
  }
  expect_round_trip(set);
}

TEST(PyTorch, MakesGroupsOfDepthwiseConvolutions) {
  for (const char* entry : {"kernel", "depthwise_kernel"}) {
    const std::string name = std::string("model/conv/") + entry;
    const ArraySet set = savepoint_of({8, 8, 4}, {{"DepthwiseConv2D", "conv"}}, {numbered(name, {2, 3, 4, 5})});

    const NamedArray weight = get(to_pytorch(set), "conv.weight");

    EXPECT_EQ(weight.shape, (Shape{20, 1, 2, 3}));
    for (std::uint64_t h = 0; h < 2; ++h) {
      for (std::uint64_t w = 0; w < 3; ++w) {
        for (std::uint64_t c = 0; c < 4; ++c) {
          for (std::uint64_t m = 0; m < 5; ++m)
            EXPECT_EQ(at(weight, {c * 5 + m, 0, h, w}), at(get(set, name), {h, w, c, m}));
        }
      }
    }
    expect_round_trip(set);
  }
}

TEST(PyTorch, RenamesNormalizationsAndEmbeddings) {
  const ArraySet set =
      savepoint_of({7}, {{"Embedding", "words"}, {"LayerNormalization", "ln"}, {"BatchNormalization", "bn"}},
                   {numbered("model/words/embeddings", {10, 3}), numbered("model/ln/gamma", {3}),
                    numbered("model/ln/beta", {3}), numbered("model/bn/gamma", {3}), numbered("model/bn/beta", {3}),
                    numbered("model/bn/moving_mean", {3}), numbered("model/bn/moving_variance", {3})});

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state),
            (std::vector<std::string>{"bn.bias", "bn.num_batches_tracked", "bn.running_mean", "bn.running_var",
                                      "bn.weight", "ln.bias", "ln.weight", "words.weight"}));
  EXPECT_EQ(get(state, "words.weight").bytes, get(set, "model/words/embeddings").bytes);
  EXPECT_EQ(get(state, "ln.weight").bytes, get(set, "model/ln/gamma").bytes);
  EXPECT_EQ(get(state, "ln.bias").bytes, get(set, "model/ln/beta").bytes);
  EXPECT_EQ(get(state, "bn.weight").bytes, get(set, "model/bn/gamma").bytes);
  EXPECT_EQ(get(state, "bn.bias").bytes, get(set, "model/bn/beta").bytes);
  EXPECT_EQ(get(state, "bn.running_mean").bytes, get(set, "model/bn/moving_mean").bytes);
  EXPECT_EQ(get(state, "bn.running_var").bytes, get(set, "model/bn/moving_variance").bytes);
  EXPECT_EQ(get(state, "bn.num_batches_tracked").dtype, DType::i64);
  EXPECT_EQ(get(state, "bn.num_batches_tracked").shape, Shape{});
  EXPECT_EQ(get(state, "bn.num_batches_tracked").bytes, std::vector<std::byte>(8));
  expect_round_trip(set);
}

ArraySet batch_normalization_of(const nlohmann::json& config, std::vector<NamedArray> arrays) {
  arrays.push_back(numbered("model/bn/moving_mean", {3}));
  arrays.push_back(numbered("model/bn/moving_variance", {3}));
  ArraySet set = savepoint_of({3}, {{"BatchNormalization", "bn"}}, std::move(arrays));
  nlohmann::json metadata = nlohmann::json::parse(set.metadata);
  metadata["graph"]["layers"][0]["config"] = config;
  set.metadata = metadata.dump();
  return set;
}

TEST(PyTorch, WritesOnesOrZerosForTheArrayThatABatchNormalizationLacks) {
  const ArraySet offsets = batch_normalization_of({{"scale", false}}, {numbered("model/bn/beta", {3})});
  const ArraySet factors = batch_normalization_of({{"center", false}}, {numbered("model/bn/gamma", {3})});

  const ArraySet with_ones = to_pytorch(offsets), with_zeros = to_pytorch(factors);

  for (const ArraySet* state : {&with_ones, &with_zeros}) {
    EXPECT_EQ(names_of(*state), (std::vector<std::string>{"bn.bias", "bn.num_batches_tracked", "bn.running_mean",
                                                          "bn.running_var", "bn.weight"}));
  }
  EXPECT_EQ(get(with_ones, "bn.weight").shape, Shape{3});
  EXPECT_EQ(get(with_ones, "bn.weight").bytes, array_of("", {3}, {1, 1, 1}).bytes);
  EXPECT_EQ(get(with_ones, "bn.bias").bytes, get(offsets, "model/bn/beta").bytes);
  EXPECT_EQ(get(with_zeros, "bn.bias").bytes, array_of("", {3}, {0, 0, 0}).bytes);
  EXPECT_EQ(get(with_zeros, "bn.weight").bytes, get(factors, "model/bn/gamma").bytes);
  expect_round_trip(offsets);
  expect_round_trip(factors);
}

TEST(PyTorch, WritesOnesInTheTypeOfTheOtherArray) {
  NamedArray beta{"model/bn/beta", DType::f64, {1}, std::vector<std::byte>(8)};
  const double one = 1;
  const auto ones = [&] {
    return get(to_pytorch(batch_normalization_of({{"scale", false}}, {beta})), "bn.weight").bytes;
  };
  EXPECT_EQ(std::memcmp(ones().data(), &one, sizeof(one)), 0);
  for (const auto& [dtype, expected] : {std::pair{DType::f16, std::uint16_t{0x3C00}}, {DType::bf16, 0x3F80}}) {
    beta = {"model/bn/beta", dtype, {1}, std::vector<std::byte>(2)};
    EXPECT_EQ(std::memcmp(ones().data(), &expected, sizeof(expected)), 0);
  }
}

TEST(PyTorch, HasNeitherArrayOfABatchNormalizationWithoutBoth) {
  const ArraySet set = batch_normalization_of({{"scale", false}, {"center", false}}, {});

  EXPECT_EQ(names_of(to_pytorch(set)),
            (std::vector<std::string>{"bn.num_batches_tracked", "bn.running_mean", "bn.running_var"}));
  expect_round_trip(set);
}

TEST(PyTorch, RefusesAFactorThatTheLayerOfTheSavepointCannotHave) {
  const ArraySet like = batch_normalization_of({{"scale", false}}, {numbered("model/bn/beta", {3})});
  ArraySet state = to_pytorch(like);
  for (NamedArray& array : state.arrays) {
    if (array.name == "bn.weight") array = array_of(array.name, {3}, {1, 1, 1.5F});
  }

  const Thrown thrown = thrown_by([&] { from_pytorch(state, like); });

  EXPECT_EQ(thrown.code, ErrorCode::incompatible);
  EXPECT_THAT(thrown.sentence, HasSubstr("\"bn.weight\" of the state dict must be all ones"));
}

constexpr std::uint64_t kUnits = 3;
constexpr std::uint64_t kInputs = 2;

ArraySet lstm() {
  return savepoint_of(
      {5, kInputs}, {{"LSTM", "rnn"}},
      {numbered("model/rnn/kernel", {kInputs, 4 * kUnits}),
       numbered("model/rnn/recurrent_kernel", {kUnits, 4 * kUnits}), numbered("model/rnn/bias", {4 * kUnits})});
}

// Gates in Keras: input, forget, cell, output. In PyTorch: input, forget, cell ("g"), output.
TEST(PyTorch, TransposesLstm) {
  const ArraySet set = lstm();

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(names_of(state),
            (std::vector<std::string>{"rnn.bias_hh_l0", "rnn.bias_ih_l0", "rnn.weight_hh_l0", "rnn.weight_ih_l0"}));
  EXPECT_EQ(get(state, "rnn.weight_ih_l0").shape, (Shape{4 * kUnits, kInputs}));
  EXPECT_EQ(get(state, "rnn.weight_hh_l0").shape, (Shape{4 * kUnits, kUnits}));
  for (std::uint64_t row = 0; row < 4 * kUnits; ++row) {
    for (std::uint64_t in = 0; in < kInputs; ++in) {
      EXPECT_EQ(at(get(state, "rnn.weight_ih_l0"), {row, in}), at(get(set, "model/rnn/kernel"), {in, row}));
    }
    for (std::uint64_t in = 0; in < kUnits; ++in) {
      EXPECT_EQ(at(get(state, "rnn.weight_hh_l0"), {row, in}), at(get(set, "model/rnn/recurrent_kernel"), {in, row}));
    }
    EXPECT_EQ(at(get(state, "rnn.bias_ih_l0"), {row}), at(get(set, "model/rnn/bias"), {row}));
    EXPECT_EQ(at(get(state, "rnn.bias_hh_l0"), {row}), 0.0F);
  }
  expect_round_trip(set);
}

TEST(PyTorch, AddsTheTwoBiasesOfAnLstm) {
  ArraySet state = to_pytorch(lstm());
  for (NamedArray& array : state.arrays) {
    if (array.name == "rnn.bias_hh_l0") array = array_of(array.name, array.shape, std::vector<float>(12, 0.5F));
  }

  const ArraySet back = from_pytorch(state, lstm());

  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(at(get(back, "model/rnn/bias"), {i}), at(get(lstm(), "model/rnn/bias"), {i}) + 0.5F);
  }
}

TEST(PyTorch, KeepsTheSignOfAZeroInABias) {
  ArraySet set = lstm();
  for (NamedArray& array : set.arrays) {
    if (array.name == "model/rnn/bias") array = array_of(array.name, array.shape, std::vector<float>(12, -0.0F));
  }

  expect_round_trip(set);
}

// Gates in Keras: update (z), reset (r), candidate (h). In PyTorch: reset, update, new.
TEST(PyTorch, ReordersTheGatesOfGru) {
  const ArraySet set = savepoint_of(
      {5, kInputs}, {{"GRU", "rnn"}},
      {numbered("model/rnn/kernel", {kInputs, 3 * kUnits}),
       numbered("model/rnn/recurrent_kernel", {kUnits, 3 * kUnits}), numbered("model/rnn/bias", {2, 3 * kUnits})});

  const ArraySet state = to_pytorch(set);

  const std::uint64_t keras_gate[] = {1, 0, 2};
  for (std::uint64_t gate = 0; gate < 3; ++gate) {
    for (std::uint64_t unit = 0; unit < kUnits; ++unit) {
      const std::uint64_t theirs = gate * kUnits + unit;
      const std::uint64_t ours = keras_gate[gate] * kUnits + unit;
      for (std::uint64_t in = 0; in < kInputs; ++in) {
        EXPECT_EQ(at(get(state, "rnn.weight_ih_l0"), {theirs, in}), at(get(set, "model/rnn/kernel"), {in, ours}));
      }
      for (std::uint64_t in = 0; in < kUnits; ++in) {
        EXPECT_EQ(at(get(state, "rnn.weight_hh_l0"), {theirs, in}),
                  at(get(set, "model/rnn/recurrent_kernel"), {in, ours}));
      }
      EXPECT_EQ(at(get(state, "rnn.bias_ih_l0"), {theirs}), at(get(set, "model/rnn/bias"), {0, ours}));
      EXPECT_EQ(at(get(state, "rnn.bias_hh_l0"), {theirs}), at(get(set, "model/rnn/bias"), {1, ours}));
    }
  }
  expect_round_trip(set);
}

// An image of 4 x 5 with 3 channels: our input (h, w, c) is PyTorch's (c, h, w).
ArraySet flattened_image() {
  return savepoint_of({4, 5, 2},
                      {{"Conv2D", "conv"},
                       {"MaxPooling2D", "pool"},
                       {"Flatten", "flat"},
                       {"Flatten", "flat_1"},
                       {"BatchNormalization", "bn"},
                       {"Dropout", "drop"},
                       {"Dense", "first"},
                       {"Activation", "relu"},
                       {"Dense", "second"}},
                      {numbered("model/conv/kernel", {1, 1, 2, 3}), numbered("model/bn/gamma", {60}),
                       numbered("model/first/kernel", {60, 6}), numbered("model/second/kernel", {6, 2})});
}

TEST(PyTorch, OrdersTheInputsAfterAFlattenedImageByChannels) {
  const ArraySet set = flattened_image();

  const ArraySet state = to_pytorch(set);

  for (std::uint64_t h = 0; h < 4; ++h) {
    for (std::uint64_t w = 0; w < 5; ++w) {
      for (std::uint64_t c = 0; c < 3; ++c) {
        const std::uint64_t ours = (h * 5 + w) * 3 + c;
        const std::uint64_t theirs = (c * 4 + h) * 5 + w;
        EXPECT_EQ(at(get(state, "bn.weight"), {theirs}), at(get(set, "model/bn/gamma"), {ours}));
        for (std::uint64_t out = 0; out < 6; ++out) {
          EXPECT_EQ(at(get(state, "first.weight"), {out, theirs}), at(get(set, "model/first/kernel"), {ours, out}));
        }
      }
    }
  }
  for (std::uint64_t in = 0; in < 6; ++in) {
    for (std::uint64_t out = 0; out < 2; ++out) {
      EXPECT_EQ(at(get(state, "second.weight"), {out, in}), at(get(set, "model/second/kernel"), {in, out}));
    }
  }
  expect_round_trip(set);
}

// The definition for whole layers: PyTorch computes from (c, h, w) with its weights what we compute from (h, w, c)
// with ours.
TEST(PyTorch, ComputesTheSameAfterAFlattenedImage) {
  const ArraySet set =
      savepoint_of({2, 3, 4}, {{"Flatten", "flat"}, {"Dense", "fc"}}, {numbered("model/fc/kernel", {24, 2})});
  const NamedArray weight = get(to_pytorch(set), "fc.weight");
  const auto pixel = [](std::uint64_t h, std::uint64_t w, std::uint64_t c) {
    return static_cast<float>(h + 10 * w + 100 * c);
  };

  for (std::uint64_t out = 0; out < 2; ++out) {
    float ours = 0;
    float theirs = 0;
    std::uint64_t row = 0;
    for (std::uint64_t h = 0; h < 2; ++h) {
      for (std::uint64_t w = 0; w < 3; ++w) {
        for (std::uint64_t c = 0; c < 4; ++c) ours += pixel(h, w, c) * at(get(set, "model/fc/kernel"), {row++, out});
      }
    }
    std::uint64_t column = 0;
    for (std::uint64_t c = 0; c < 4; ++c) {
      for (std::uint64_t h = 0; h < 2; ++h) {
        for (std::uint64_t w = 0; w < 3; ++w) theirs += pixel(h, w, c) * at(weight, {out, column++});
      }
    }
    // Both add the same 24 products, in different orders. Each rounding errs by at most 2^-24 of a sum below 2^28.
    EXPECT_NEAR(ours, theirs, 24 * 16);
    EXPECT_GT(std::abs(ours), 1e6F);
  }
}

TEST(PyTorch, KeepsTheInputsAfterAFlattenedSequence) {
  const ArraySet set =
      savepoint_of({3, 4}, {{"Flatten", "flat"}, {"Dense", "fc"}}, {numbered("model/fc/kernel", {12, 2})});

  const NamedArray weight = get(to_pytorch(set), "fc.weight");

  for (std::uint64_t in = 0; in < 12; ++in) EXPECT_EQ(at(weight, {1, in}), at(get(set, "model/fc/kernel"), {in, 1}));
}

TEST(PyTorch, LeavesTheOptimizersStateOut) {
  ArraySet set = savepoint_of({2}, {{"Dense", "fc"}}, {numbered("model/fc/kernel", {2, 3})});
  set.arrays.push_back(numbered("optimizer/m/fc/kernel", {2, 3}));

  EXPECT_EQ(names_of(to_pytorch(set)), std::vector<std::string>{"fc.weight"});
  EXPECT_EQ(names_of(from_pytorch(to_pytorch(set), set)), std::vector<std::string>{"model/fc/kernel"});
}

TEST(PyTorch, KeepsOtherTypesBitForBit) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f64}) {
    const testing::Array kernel = testing::make_array("model/rnn/kernel", dtype, {2, 8});
    const testing::Array recurrent = testing::make_array("model/rnn/recurrent_kernel", dtype, {2, 8});
    const testing::Array bias = testing::make_array("model/rnn/bias", dtype, {8});
    std::vector<NamedArray> arrays;
    for (const testing::Array& array : {kernel, recurrent, bias}) {
      arrays.push_back({array.name, array.dtype, array.shape, array.bytes});
    }

    expect_round_trip(savepoint_of({5, 2}, {{"LSTM", "rnn"}}, arrays));
  }
}

TEST(PyTorch, AcceptsTheNamesOfAReplicatedModel) {
  const ArraySet set = flattened_image();
  ArraySet state = to_pytorch(set);
  for (NamedArray& array : state.arrays) array.name = "module." + array.name;

  testing::expect_equal(from_pytorch(state, set).arrays, set.arrays);
}

Thrown refused_from(const std::function<void(ArraySet&)>& change) {
  const ArraySet set = flattened_image();
  ArraySet state = to_pytorch(set);
  change(state);
  return thrown_by([&] { from_pytorch(state, set); });
}

TEST(PyTorch, RefusesAStateDictOfAnotherModel) {
  const Thrown missing = refused_from([](ArraySet& state) { state.arrays.pop_back(); });
  EXPECT_EQ(missing.code, ErrorCode::incompatible);
  EXPECT_THAT(missing.sentence, HasSubstr("lacks \"second.weight\" for array \"model/second/kernel\""));

  const Thrown unknown = refused_from([](ArraySet& state) { state.arrays.push_back(numbered("third.weight", {1})); });
  EXPECT_EQ(unknown.code, ErrorCode::incompatible);
  EXPECT_THAT(unknown.sentence, HasSubstr("has \"third.weight\""));

  const Thrown shape = refused_from([](ArraySet& state) { state.arrays.back() = numbered("second.weight", {6, 2}); });
  EXPECT_EQ(shape.code, ErrorCode::incompatible);
  EXPECT_THAT(shape.sentence, HasSubstr("\"second.weight\" of the state dict is f32[6, 2]"));
  EXPECT_THAT(shape.sentence, HasSubstr("needs f32[2, 6]"));

  const Thrown type = refused_from([](ArraySet& state) { state.arrays.back().dtype = DType::i32; });
  EXPECT_EQ(type.code, ErrorCode::incompatible);
  EXPECT_THAT(type.sentence, HasSubstr("is i32, and array \"model/second/kernel\" of the savepoint is f32"));
}

TEST(PyTorch, RefusesASavepointThatDoesNotFitItsGraph) {
  const auto refused = [](const ArraySet& set) { return thrown_by([&] { to_pytorch(set); }); };
  const NamedArray kernel = numbered("model/fc/kernel", {2, 3});

  EXPECT_EQ(refused(savepoint_of({2}, {{"Dense", "fc"}}, {})).code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused(savepoint_of({2}, {{"Conv2D", "fc"}}, {kernel})).code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused(savepoint_of({2}, {{"Dense", "other"}}, {kernel})).code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused(savepoint_of({2}, {}, {kernel})).code, ErrorCode::unsupported);
  EXPECT_EQ(refused(savepoint_of({2}, {{"Lambda", "fc"}}, {kernel})).code, ErrorCode::unsupported);
  EXPECT_EQ(refused(savepoint_of({2}, {{"LSTM", "fc"}}, {kernel, numbered("model/fc/recurrent_kernel", {1, 4})})).code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(refused(savepoint_of({1, 1, 5}, {{"Flatten", "flat"}, {"Dense", "fc"}}, {kernel})).code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(refused(savepoint_of({2}, {{"Dense", "fc"}, {"Dense", "fc"}}, {kernel})).code, ErrorCode::invalid_argument);
  EXPECT_THAT(
      refused(savepoint_of({2}, {{"GRU", "fc"}},
                           {kernel, numbered("model/fc/recurrent_kernel", {1, 3}), numbered("model/fc/bias", {3})}))
          .sentence,
      HasSubstr("reset_after"));
}

TEST(PyTorch, PutsTheChannelsOfEachKindOfConvolutionFirst) {
  const ArraySet set = savepoint_of(
      {9, 4},
      {{"Conv1D", "a"},
       {"PReLU", "p"},
       {"Conv1DTranspose", "b"},
       {"DepthwiseConv1D", "c"},
       {"GroupNormalization", "g"}},
      {numbered("model/a/kernel", {2, 4, 5}), numbered("model/p/alpha", {1, 5}), numbered("model/b/kernel", {3, 6, 5}),
       numbered("model/c/kernel", {2, 6, 2}), numbered("model/g/gamma", {12})});

  const ArraySet state = to_pytorch(set);

  EXPECT_EQ(get(state, "a.weight").shape, (Shape{5, 4, 2}));
  EXPECT_EQ(get(state, "p.weight").shape, (Shape{5}));
  // PyTorch's transposed convolutions have [channels, filters, positions].
  EXPECT_EQ(get(state, "b.weight").shape, (Shape{5, 6, 3}));
  EXPECT_EQ(at(get(state, "b.weight"), {4, 2, 1}), at(get(set, "model/b/kernel"), {1, 2, 4}));
  EXPECT_EQ(get(state, "c.weight").shape, (Shape{12, 1, 2}));
  EXPECT_EQ(get(state, "g.weight").bytes, get(set, "model/g/gamma").bytes);
  expect_round_trip(set);
}

TEST(PyTorch, RefusesLayersWithoutAModuleByName) {
  for (const char* kind : {"SeparableConv2D", "Normalization", "Dot", "my_app.Scale"}) {
    const Thrown thrown = thrown_by([&] { to_pytorch(savepoint_of({4, 4, 3}, {{kind, "mine"}}, {})); });
    EXPECT_EQ(thrown.code, ErrorCode::unsupported);
    EXPECT_THAT(thrown.sentence, HasSubstr(std::string("layer \"mine\" is of kind \"") + kind));
  }
  EXPECT_THAT(thrown_by([] {
                to_pytorch(savepoint_of({4, 4, 3}, {{"Permute", "mine"}}, {}));
              }).sentence,
              HasSubstr("moves the elements of an image"));
  EXPECT_THAT(thrown_by([] {
                to_pytorch(savepoint_of({4, 3}, {{"PReLU", "mine"}}, {numbered("model/mine/alpha", {4, 3})}));
              }).sentence,
              HasSubstr("has slopes for positions"));
}

TEST(PyTorch, RefusesMetadataThatIsNestedTooDeeply) {
  const Thrown thrown = thrown_by([] { to_pytorch({.arrays = {}, .metadata = std::string(100'000, '[')}); });

  EXPECT_EQ(thrown.code, ErrorCode::invalid_argument);
  EXPECT_THAT(thrown.sentence, HasSubstr("nested deeper than"));
}

TEST(PyTorch, RefusesMetadataWithoutTheGraphOfASequential) {
  for (const char* metadata :
       {"{}", "[]", "{", "", R"({"graph": 5})", R"({"graph": {"format": "mine", "version": 1}})",
        R"({"graph": {"format": "holdfast.sequential", "version": 2, "input_shape": [], "layers": []}})",
        R"({"graph": {"format": "holdfast.sequential", "version": 1, "input_shape": [-1], "layers": []}})",
        R"({"graph": {"format": "holdfast.sequential", "version": 1, "input_shape": 5, "layers": []}})",
        R"({"graph": {"format": "holdfast.sequential", "version": 1, "input_shape": []}})",
        R"({"graph": {"format": "holdfast.sequential", "version": 1, "input_shape": [], "layers": [5]}})",
        R"({"graph": {"format": "holdfast.sequential", "version": 1, "input_shape": [], "layers": [{"kind": 5}]}})"}) {
    EXPECT_EQ(thrown_by([&] { to_pytorch({.arrays = {}, .metadata = metadata}); }).code, ErrorCode::invalid_argument)
        << metadata;
  }
}

}  // namespace
}  // namespace holdfast::format
