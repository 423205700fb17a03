// A tile has the bits of the same rows of the whole where oneDNN computes both with one kernel that adds up all samples
// in one go, in their order: its AVX-512 kernel does, those for AVX2 do not (docs/measurements.md, two shards).

#include "compute/cpu/products/tile_product.h"

#include <fmt/format.h>

#include <algorithm>

#include "compute/cpu/thread_count.h"

namespace holdfast::compute {
namespace {

// The factors of a tile, [rows, samples] and [samples, outputs], and its result.
struct Descriptions {
  MemoryDesc left;
  MemoryDesc right;
  MemoryDesc result;
};

Descriptions descriptions_of(std::int64_t samples, std::int64_t rows, std::int64_t outputs) {
  return {.left = float_desc({rows, samples}, Tag::ba),
          .right = float_desc({samples, outputs}, Tag::ab),
          .result = float_desc({rows, outputs}, Tag::ab)};
}

dnnl::matmul::primitive_desc describe(const dnnl::engine& engine, const Descriptions& arrays) {
  return {{arrays.left, arrays.right, arrays.result}, scratch_attributes(), engine};
}

}  // namespace

bool have_tiles_its_bits(std::int64_t samples, std::int64_t inputs, std::int64_t outputs, int threads) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto is_by_that_kernel = [&](std::int64_t rows) {
    // Other kernels may cut the sum over the samples in other places for a tile.
    return std::string_view(describe(engine, descriptions_of(samples, rows, outputs)).impl_info_str()) ==
           "brg:avx512_core";
  };
  bool are_same = true;
  with_named_errors("a look for kernels of products", [&] {
    const std::int64_t rest = inputs % DeferredProduct::kTileRows;
    {
      const ThreadCount of_the_whole(threads);
      are_same = is_by_that_kernel(inputs);
    }
    const ThreadCount of_a_tile(1);
    are_same = are_same && is_by_that_kernel(std::min(DeferredProduct::kTileRows, inputs)) &&
               (rest == 0 || is_by_that_kernel(rest));
  });
  return are_same;
}

Primitive& TileProduct::primitive_of(std::int64_t samples, std::int64_t rows, std::int64_t outputs) {
  const auto found = std::ranges::find_if(
      made_, [&](const Made& made) { return made.samples == samples && made.rows == rows && made.outputs == outputs; });
  if (found != made_.end()) {
    made_.splice(made_.begin(), made_, found);
    return made_.front().primitive;
  }
  // Batches of a run have few sizes, and each size few shapes.
  constexpr std::size_t kMostKept = 64;
  if (made_.size() == kMostKept) made_.pop_back();
  const std::string operation =
      fmt::format("{} rows of the gradient of a kernel, [{}, {}] x [{}, {}]", rows, rows, samples, samples, outputs);
  with_named_errors(operation, [&] {
    const ThreadCount threads(context_.threads());
    const Descriptions arrays = descriptions_of(samples, rows, outputs);
    made_.push_front({.samples = samples,
                      .rows = rows,
                      .outputs = outputs,
                      .primitive = Primitive::make<dnnl::matmul>(
                          context_, operation, describe(context_.engine(), arrays),
                          {{DNNL_ARG_SRC, arrays.left, arrays.left},
                           {DNNL_ARG_WEIGHTS, arrays.right, arrays.right},
                           {DNNL_ARG_DST, arrays.result, arrays.result, Operand::Role::output}})});
  });
  return made_.front().primitive;
}

void TileProduct::run(const DeferredProduct& product, std::int64_t tile, float* to) {
  const float* const input = product.input_tiles.data() + tile * DeferredProduct::kTileRows * product.samples;
  primitive_of(product.samples, product.rows_of(tile), product.outputs)
      .run({{DNNL_ARG_SRC, input}, {DNNL_ARG_WEIGHTS, product.output_gradient.data()}, {DNNL_ARG_DST, to}});
}

}  // namespace holdfast::compute
