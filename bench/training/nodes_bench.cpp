// What a node of a plan costs besides its arithmetic: chains of 200 nodes on one sample of four numbers. The counter
// per_node is processor time. Nodes are not fused, as nodes of larger models that cannot be.

#include <benchmark/benchmark.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "compute/backend.h"
#include "holdfast/holdfast.h"
#include "nn/model/description.h"
#include "nn/plan/model_plan.h"

namespace holdfast {
namespace {

constexpr std::int64_t kNodes = 200;
constexpr std::int64_t kElements = 4;

Model chain_of(const std::function<Value(const Value&)>& node) {
  const Value x = input({kElements});
  Value y = x;
  for (std::int64_t i = 0; i < kNodes; ++i) y = node(y);
  return Model(x, y);
}

void run_chain(benchmark::State& state, const std::function<Value(const Value&)>& node) {
  const Model model = chain_of(node);
  const ModelDescription& description = *model.description();
  const auto backend = compute::make_cpu_backend(1);
  ModelPlan plan(description.inference,
                 {.samples = 1,
                  .inputs = 1,
                  .parameters = description.parameters,
                  .buffers = description.buffers,
                  .fuses_elements = false},
                 *backend, false);
  const auto bytes = [](std::vector<float>& floats) { return reinterpret_cast<std::byte*>(floats.data()); };
  std::vector<float> arena(plan.arena_bytes() / sizeof(float) + 1);
  std::vector<float> parameters(description.parameters.float_count() + 1, 0.1F);
  std::vector<float> x(kElements, 1.0F);
  ModelPlan::Bases bases(static_cast<std::size_t>(Base::first_external), nullptr);
  bases[static_cast<std::size_t>(Base::arena)] = bytes(arena);
  bases[static_cast<std::size_t>(Base::parameters)] = bytes(parameters);
  bases.push_back(bytes(x));
  const BeforeOperation before = [](const std::string&) {};
  for (auto _ : state) plan.forward(bases, before);
  state.counters["per_node"] =
      benchmark::Counter(kNodes, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(run_chain, additions, [](const Value& x) { return x + 1.0F; });
BENCHMARK_CAPTURE(run_chain, activations, [](const Value& x) { return relu(x); });
BENCHMARK_CAPTURE(run_chain, softmaxes, [](const Value& x) { return softmax(x); });
BENCHMARK_CAPTURE(run_chain, layer_normalizations, [](const Value& x) { return LayerNormalization{}(x); });
// oneDNN runs the product of each.
BENCHMARK_CAPTURE(run_chain, dense_layers, [](const Value& x) { return Dense{kElements}(x); });

}  // namespace
}  // namespace holdfast
