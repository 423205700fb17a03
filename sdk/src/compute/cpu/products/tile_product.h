#pragma once

// Tiles of deferred products (deferred_products.h) on CPUs, in f32.

#include <cstdint>
#include <list>

#include "compute/cpu/cpu_context.h"
#include "compute/cpu/primitive.h"
#include "compute/deferred_products.h"

namespace holdfast::compute {

// Whether tiles of the gradient of a dense layer's kernel have the bits of the whole, as a back end of so many threads
// computes it, for `samples` samples.
bool have_tiles_its_bits(std::int64_t samples, std::int64_t inputs, std::int64_t outputs, int threads);

// Computes tiles on the calling thread. One thread uses it at a time. It allocates for each shape that is new to it.
class TileProduct {
 public:
  TileProduct() : context_(1, Precision::f32) {}

  // Writes rows_of(tile) rows of the gradient, [rows, outputs]. Throws Error as oneDNN does.
  void run(const DeferredProduct& product, std::int64_t tile, float* to);

 private:
  struct Made {
    std::int64_t samples;
    std::int64_t rows;
    std::int64_t outputs;
    Primitive primitive;
  };
  Primitive& primitive_of(std::int64_t samples, std::int64_t rows, std::int64_t outputs);

  CpuContext context_;
  std::list<Made> made_;  // most recent first
};

}  // namespace holdfast::compute
