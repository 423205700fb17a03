// Tiles of a kernel's gradient have the bits of the whole, on the processors where they are used.

#include "compute/cpu/products/tile_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "unit/compute/arithmetic/support/values.h"

namespace holdfast::compute {
namespace {

// A dense layer on a back end that may leave its kernel's gradient.
struct DeferringLayer {
  DeferringLayer(const DenseShape& dense_shape, int threads, std::uint64_t seed)
      : shape(dense_shape),
        backend(make_cpu_backend(threads)),
        operation(backend->dense(shape, {.training = true})),
        input(random_values(shape.rows * shape.inputs, seed)),
        output_gradient(random_values(shape.rows * shape.outputs, seed + 1)),
        gradient(static_cast<std::size_t>(shape.inputs * shape.outputs)) {}

  void run_backward(DeferredProducts* deferred) {
    backend->defer_products(deferred);
    std::vector<float> bias(static_cast<std::size_t>(shape.outputs));
    operation->backward_weights(input.data(), output_gradient.data(), gradient.data(), bias.data());
  }

  const DenseShape shape;
  const std::unique_ptr<Backend> backend;
  const std::unique_ptr<DenseOperation> operation;
  const std::vector<float> input;
  const std::vector<float> output_gradient;
  std::vector<float> gradient;
};

class TileProducts : public testing::TestWithParam<int> {};

TEST_P(TileProducts, HaveTheBitsOfTheWhole) {
  const std::vector<std::size_t> kernels = {0};
  TileProduct product;
  int shapes = 0;
  // All numbers of samples that are left for vectors, and inputs and outputs that end within a tile or a vector.
  for (const DenseShape& shape :
       {DenseShape{1, 1024, 1024}, DenseShape{2, 1025, 1024}, DenseShape{3, 1087, 1000}, DenseShape{17, 4000, 300},
        DenseShape{33, 2048, 512}, DenseShape{64, 8000, 700}, DenseShape{100, 1030, 1021}, DenseShape{128, 3001, 999},
        DenseShape{200, 2100, 2047}, DenseShape{255, 1100, 1100}, DenseShape{256, 1536, 1030}}) {
    DeferringLayer layer(shape, GetParam(), static_cast<std::uint64_t>(shape.rows));
    layer.run_backward(nullptr);
    DeferredProducts deferred;
    deferred.reset({.least_samples = shape.rows, .most_samples = shape.rows, .all_samples = shape.rows});
    const std::vector<float> whole = layer.gradient;
    deferred.begin(layer.gradient, kernels);
    std::ranges::fill(layer.gradient, -1.0F);
    layer.run_backward(&deferred);
    if (deferred.products().empty()) continue;
    ++shapes;
    EXPECT_TRUE(std::ranges::all_of(layer.gradient, [](float number) { return number == -1; }));

    const DeferredProduct& left = *deferred.products()[0];
    for (std::int64_t tile = 0; tile < left.tiles(); ++tile)
      product.run(left, tile, layer.gradient.data() + tile * DeferredProduct::kTileRows * shape.outputs);

    EXPECT_EQ(std::memcmp(layer.gradient.data(), whole.data(), whole.size() * sizeof(float)), 0)
        << shape.rows << " samples, " << shape.inputs << " x " << shape.outputs;
  }
  if (shapes == 0) GTEST_SKIP() << "oneDNN has other products on this processor";
  EXPECT_EQ(shapes, 11);
}

INSTANTIATE_TEST_SUITE_P(Threads, TileProducts, testing::Values(1, 2));

}  // namespace
}  // namespace holdfast::compute
