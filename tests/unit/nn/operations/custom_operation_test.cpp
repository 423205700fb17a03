#include "holdfast/nn/custom_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <thread>

#include "holdfast/base/error.h"
#include "holdfast/nn/dense.h"
#include "holdfast/nn/layer_builder.h"
#include "holdfast/nn/layer_config.h"
#include "holdfast/nn/sequential.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/reference_check.h"
#include "unit/nn/support/refusal.h"
#include "unit/nn/support/running_sum.h"

namespace holdfast {
namespace {

using reference::Values;
using testing::HasSubstr;
using Gradients = std::vector<std::optional<Value>>;

// An operation whose functions a test writes. By default y = x.
struct Functions {
  std::function<std::vector<ValueSpec>(std::span<const ValueSpec>)> infer = [](std::span<const ValueSpec> inputs) {
    return std::vector<ValueSpec>{inputs[0]};
  };
  std::function<void(const OperationArrays&)> run = [](const OperationArrays& arrays) {
    std::ranges::copy(arrays.inputs[0].floats(), arrays.outputs[0].floats().begin());
  };
  std::function<Gradients(const OperationGradient&)> gradient{};
  std::size_t scratch_bytes_per_sample = 0;
};

class WrittenOperation final : public CustomOperation {
 public:
  explicit WrittenOperation(Functions functions) : functions_(std::move(functions)) {}
  std::string name() const override { return "test.written"; }
  std::vector<ValueSpec> infer(std::span<const ValueSpec> inputs) const override { return functions_.infer(inputs); }
  void run(const OperationArrays& arrays) const override { functions_.run(arrays); }
  Gradients gradient(const OperationGradient& at) const override {
    return functions_.gradient ? functions_.gradient(at) : CustomOperation::gradient(at);
  }
  std::size_t scratch_bytes(std::span<const ValueSpec> inputs, std::int64_t samples) const override {
    return functions_.scratch_bytes_per_sample == 0
               ? CustomOperation::scratch_bytes(inputs, samples)
               : functions_.scratch_bytes_per_sample * static_cast<std::size_t>(samples);
  }

 private:
  const Functions functions_;
};

Value written(const Functions& functions, const std::vector<Value>& inputs) {
  return apply_custom(std::make_shared<const WrittenOperation>(functions), inputs)[0];
}

// A model whose operation comes after a parameter, so that it needs a gradient.
Sequential trained(const Functions& functions) {
  return Sequential{Input{4}, FunctionLayer([=](const Value& x) { return written(functions, {x}); })};
}

struct OperationPass {
  std::vector<float> outputs;
  std::vector<float> gradients;

  friend bool operator==(const OperationPass&, const OperationPass&) = default;
};

OperationPass pass_of(const Model& model, std::span<const float> x, std::int64_t samples) {
  std::vector<float> parameters(model.parameters().float_count()), gradients(parameters.size());
  std::vector<float> buffers(model.buffers().float_count());
  model.initialize(3, parameters, buffers);
  ModelProgram program(model, 1);
  const auto outputs = program.forward_training(x, samples, parameters, {});
  OperationPass pass = {.outputs = {outputs.begin(), outputs.end()}, .gradients = {}};
  program.backward(pass.outputs, parameters, gradients, {});
  pass.gradients = gradients;
  return pass;
}

std::string refusal_of_pass(const Functions& functions, std::int64_t samples = 2) {
  Functions with_gradient = functions;
  with_gradient.gradient = [](const OperationGradient& at) { return Gradients{*at.output_gradients[0]}; };
  const Sequential model = trained(with_gradient);
  const std::vector<float> x(static_cast<std::size_t>(samples) * 4, 1.0F);
  return refusal([&] { pass_of(model, x, samples); });
}

TEST(CustomOperation, MatchesTheReferenceAndItsFiniteDifferences) {
  const Sequential model{Input{3, 4}, FunctionLayer([](const Value& x) { return square(running_sum(x)); })};

  reference::expect_training_matches(model, 2,
                                     [](const Values& x, const std::vector<Values>& parameters) {
                                       Values y;
                                       double sum = 0;
                                       for (std::size_t i = 0; i < x.size(); ++i) {
                                         sum = (i % 4 == 0 ? 0 : sum) + x[i] + parameters[0][i % 12];
                                         y.push_back(sum * sum);
                                       }
                                       return y;
                                     },
                                     {.paths = 8, .roundings = 16, .largest_path = 32});
}

// x w, whose gradient to w is x g for each sample.
TEST(CustomOperation, GetsTheGradientOfAWeightAddedUpOverSamples) {
  Functions product;
  product.run = [](const OperationArrays& arrays) {
    const std::span<const float> x = arrays.inputs[0].floats(), w = arrays.inputs[1].floats();
    for (std::size_t i = 0; i < x.size(); ++i) arrays.outputs[0].floats()[i] = x[i] * w[i % w.size()];
  };
  product.gradient = [](const OperationGradient& at) {
    const Value& g = *at.output_gradients[0];
    return Gradients{g * at.inputs[1], g * at.inputs[0]};
  };
  class Scale final : public LayerOf<Scale> {
   public:
    explicit Scale(std::function<Value(const Value&, const Value&)> multiply) : LayerOf(""), multiply_(multiply) {}
    std::string_view kind() const override { return "test.Scale"; }
    std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
      return {multiply_(inputs[0], builder.parameter("scale", {4}, Initializer::normal(1)))};
    }
    void write_config(ConfigWriter&) const override {}

   private:
    const std::function<Value(const Value&, const Value&)> multiply_;
  };
  const std::vector<float> x = reference::random_values(12, 1);

  const OperationPass own = pass_of(Sequential{Input{4}, Scale([&](const Value& a, const Value& w) {
                                                 return written(product, {a, w});
                                               })},
                                    x, 3);
  const OperationPass composed =
      pass_of(Sequential{Input{4}, Scale([](const Value& a, const Value& w) { return a * w; })}, x, 3);

  EXPECT_EQ(own, composed);
}

TEST(CustomOperation, GivesASampleTheSameBitsInShardsOfAnySize) {
  // Without matrix products, whose bits depend on the number of rows.
  const Sequential model{Input{5}, FunctionLayer([](const Value& x) { return running_sum(tanh(running_sum(x))); })};
  const std::vector<float> x = reference::random_values(8 * 5, 7);
  const std::vector<float> whole = pass_of(model, x, 8).outputs;
  for (const std::size_t shards : {2, 4, 8}) {
    const std::size_t samples = 8 / shards;
    std::vector<float> outputs;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const auto rows = std::span(x).subspan(shard * samples * 5, samples * 5);
      const std::vector<float> part = pass_of(model, rows, static_cast<std::int64_t>(samples)).outputs;
      outputs.insert(outputs.end(), part.begin(), part.end());
    }
    EXPECT_EQ(outputs, whole) << shards;
  }
}

TEST(CustomOperation, GivesTheSameBitsOnSeveralThreadsThatShareIt) {
  const Sequential model{Input{5}, Dense{8}, FunctionLayer(running_sum), Dense{3}};
  const std::vector<float> x = reference::random_values(4 * 2 * 5, 8);
  const auto shard = [&](std::size_t index) { return pass_of(model, std::span(x).subspan(index * 10, 10), 2); };
  std::vector<OperationPass> passes(4);

  std::vector<std::thread> threads;
  for (std::size_t index = 0; index < 4; ++index) threads.emplace_back([&, index] { passes[index] = shard(index); });
  for (std::thread& thread : threads) thread.join();

  for (std::size_t index = 0; index < 4; ++index) EXPECT_EQ(passes[index], shard(index)) << index;
}

TEST(CustomOperation, GetsScratchMemoryForItsSamples) {
  Functions functions;
  functions.scratch_bytes_per_sample = 24;
  const auto copy = functions.run;
  std::vector<std::size_t> sizes;
  functions.run = [&](const OperationArrays& arrays) {
    sizes.push_back(arrays.scratch.size());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arrays.scratch.data()) % 64, 0U);
    std::ranges::fill(arrays.scratch, std::byte{1});
    copy(arrays);
  };

  EXPECT_EQ(refusal_of_pass(functions, 3), "");

  EXPECT_THAT(sizes, testing::ElementsAre(72));
}

// The layer of an application that the next test saves.
class Doubled final : public LayerOf<Doubled> {
 public:
  explicit Doubled(const std::string& name = {}) : LayerOf(name) {}
  static std::shared_ptr<const Layer> from_config(const std::string& name, ConfigReader&) {
    return std::make_shared<const Doubled>(name);
  }
  std::string_view kind() const override { return "custom_operation_test.Doubled"; }
  std::vector<Value> build(LayerBuilder&, std::span<const Value> inputs) const override {
    return {running_sum(inputs[0]) + running_sum(inputs[0])};
  }
  void write_config(ConfigWriter&) const override {}
};
const bool is_doubled_registered = register_layer<Doubled>("custom_operation_test.Doubled");

TEST(CustomOperation, IsSavedAsThePartOfARegisteredLayer) {
  ASSERT_TRUE(is_doubled_registered);
  const Sequential model{Input{4}, Dense{4}, Doubled{}};
  const std::vector<float> x = reference::random_values(8, 1);

  const Model read = Model::from_graph(model.graph());

  EXPECT_EQ(pass_of(read, x, 2), pass_of(model, x, 2));
}

TEST(CustomOperation, OutsideOfALayerHasNoPlaceInAFile) {
  const Value x = input({4});

  try {
    Model(x, running_sum(x)).graph();
    ADD_FAILURE() << "wrote a model that cannot be read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("\"test.running_sum\" cannot stand in a model by itself"));
  }
}

TEST(CustomOperation, ReadsAndWritesIntegers) {
  Functions functions;
  functions.infer = [](std::span<const ValueSpec> inputs) {
    EXPECT_EQ(inputs[0].dtype, DType::i32);
    return std::vector<ValueSpec>{{.shape = inputs[0].shape}, {.shape = {1}, .dtype = DType::i32}};
  };
  functions.run = [](const OperationArrays& arrays) {
    const std::span<const std::int32_t> ids = arrays.inputs[0].integers();
    for (std::size_t i = 0; i < ids.size(); ++i) arrays.outputs[0].floats()[i] = static_cast<float>(ids[i]) + 0.5F;
    std::ranges::fill(arrays.outputs[1].integers(), 7);
  };
  class OfIds final : public LayerOf<OfIds> {
   public:
    explicit OfIds(Functions functions) : LayerOf(""), functions_(std::move(functions)) {}
    std::string_view kind() const override { return "test.OfIds"; }
    std::vector<Value> build(LayerBuilder&, std::span<const Value> inputs) const override {
      const auto both = apply_custom(std::make_shared<const WrittenOperation>(functions_), {inputs[0]});
      return {both[0] + cast(both[1], DType::f32)};
    }
    void write_config(ConfigWriter&) const override {}

   private:
    const Functions functions_;
  };
  const Value ids = input({2}, {.dtype = DType::u8});
  const Model model(ids, OfIds(functions)(ids));
  const std::vector<std::int32_t> numbers = {1, 2, 3, 4};
  ModelProgram program(model, 1);
  program.prepare_inference(2);

  const auto outputs = program.run_inference({reinterpret_cast<const std::byte*>(numbers.data())}, 2, {}, {});

  const auto* const y = reinterpret_cast<const float*>(outputs[0]);
  EXPECT_THAT(std::vector<float>(y, y + 4), testing::ElementsAre(8.5F, 9.5F, 10.5F, 11.5F));
}

TEST(CustomOperation, IsRefusedByNameIfItsInferenceIsWrong) {
  const Value x = input({4});
  const auto refused = [&](const std::vector<ValueSpec>& specs) {
    Functions functions;
    functions.infer = [&](std::span<const ValueSpec>) { return specs; };
    return refusal([&] { written(functions, {x}); });
  };

  EXPECT_THAT(refused({}), HasSubstr("operation \"test.written\": infer() returned no output"));
  EXPECT_THAT(refused({{.shape = {4, 0}}}), HasSubstr("infer() returned an output [4, 0]; it needs 1 to 2^40"));
  EXPECT_THAT(refused({{.shape = {std::int64_t{1} << 41}}}), HasSubstr("it needs 1 to 2^40 elements"));
  EXPECT_THAT(refused({{.shape = {4}, .dtype = DType::u8}}), HasSubstr("an output of u8; a model has f32 and i32"));
  EXPECT_THAT(refusal([&] { apply_custom(nullptr, {x}); }), HasSubstr("needs an operation"));
  Functions functions;
  functions.infer = [](std::span<const ValueSpec>) -> std::vector<ValueSpec> {
    throw std::runtime_error("it needs two inputs");
  };
  EXPECT_THAT(refusal([&] { written(functions, {x}); }), HasSubstr("\"test.written\" failed: it needs two inputs"));
}

TEST(CustomOperation, WithoutAGradientIsRefusedWhereOneIsNeededAlone) {
  try {
    trained({});
    ADD_FAILURE() << "trains without a gradient";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("operation \"test.written\": it has no gradient"));
    EXPECT_THAT(error.what(), HasSubstr("stop_gradient()"));
  }
  // Nothing before it is trained.
  const Sequential model{Input{4}, FunctionLayer([](const Value& x) { return written({}, {stop_gradient(x)}) + x; })};
  EXPECT_EQ(pass_of(model, std::vector<float>(4, 1.0F), 1).outputs, std::vector<float>(4, 2.0F));
}

TEST(CustomOperation, WithAGradientOfAnotherShapeIsRefused) {
  const auto refused = [](const std::function<Gradients(const Value& g)>& gradient) {
    Functions functions;
    functions.gradient = [&](const OperationGradient& at) { return gradient(*at.output_gradients[0]); };
    return refusal([&] { trained(functions); });
  };

  EXPECT_THAT(refused([](const Value&) { return Gradients(); }), HasSubstr("returned 0 gradients for 1 inputs"));
  EXPECT_THAT(refused([](const Value& g) { return Gradients{sum(g)}; }),
              HasSubstr("gradient() returned [] of f32 for input 0, which is [4] of f32"));
  EXPECT_EQ(refused([](const Value& g) { return Gradients{g}; }), "");
}

TEST(CustomOperation, ThatThrowsEndsThePassWithItsName) {
  Functions functions;
  functions.run = [](const OperationArrays&) { throw std::runtime_error("a table is missing"); };

  EXPECT_THAT(refusal_of_pass(functions), HasSubstr("operation \"test.written\" failed: a table is missing"));
}

TEST(CustomOperation, ThatLeavesElementsUnwrittenIsFoundAtTheFirstPass) {
  Functions functions;
  functions.run = [](const OperationArrays& arrays) { std::ranges::fill(arrays.outputs[0].floats().first(5), 1.0F); };

  EXPECT_THAT(refusal_of_pass(functions), HasSubstr("left 3 of the 8 elements of output 0 unwritten, the first of them "
                                                    "element 5"));
}

TEST(CustomOperation, MayWriteTheBitsThatMarkUnwrittenElements) {
  Functions functions;
  functions.run = [](const OperationArrays& arrays) {
    std::ranges::fill(arrays.outputs[0].floats(), std::bit_cast<float>(std::uint32_t{0x7FA5C3E1}));
  };

  EXPECT_EQ(refusal_of_pass(functions), "");
}

TEST(CustomOperation, ThatAsksForMoreScratchThanThereIsAnywhereIsRefused) {
  Functions functions;
  functions.scratch_bytes_per_sample = static_cast<std::size_t>(-1);

  EXPECT_THAT(refusal_of_pass(functions), HasSubstr("which no machine has"));
}

TEST(CustomOperation, ThatTakesAnArrayForAnotherTypeIsRefused) {
  Functions functions;
  functions.run = [](const OperationArrays& arrays) { arrays.outputs[0].integers()[0] = 1; };

  EXPECT_THAT(refusal_of_pass(functions), HasSubstr("an array of f32 is used as one of i32"));
}

}  // namespace
}  // namespace holdfast
