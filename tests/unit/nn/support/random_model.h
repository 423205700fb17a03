#pragma once

// Random models, and one training pass of them, for tests that two ways to run a model give the same bits.

#include <cstdint>
#include <cstring>
#include <vector>

#include "holdfast/holdfast.h"

namespace holdfast::random_models {

// Whether segments of a random model are recomputed. Either way the model is the same.
enum class Segments { kept, recomputed };

// Whether a random model has products of matrices, which are a library's. Without them all of its loops are our own.
enum class Products { of_a_library, none };

// A model of 5 to 30 random operations on values of shapes [6], [2, 3] and [3, 2], with shared layers, one to three
// inputs and two outputs. With products, models from number 100 on also have convolutions, pooling, an Embedding, Dot,
// largest() and a nested model, and an input of ids.
Model random_model(std::uint64_t number, Segments segments = Segments::kept,
                   Products products = Products::of_a_library);

struct Result {
  std::vector<std::vector<float>> outputs;
  std::vector<float> gradients;
  std::vector<float> contributions;

  // As bits, since a NaN is not equal to itself.
  friend bool operator==(const Result& a, const Result& b) {
    const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
      return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
    };
    bool equal = a.outputs.size() == b.outputs.size();
    for (std::size_t i = 0; equal && i < a.outputs.size(); ++i) equal = same(a.outputs[i], b.outputs[i]);
    return equal && same(a.gradients, b.gradients) && same(a.contributions, b.contributions);
  }
};

struct TrainingOptions {
  bool shares_memory = true;
  bool fuses_elements = true;
  std::size_t tile_bytes = 0;
  std::int64_t least_row = 0;  // of fuse_rows(); 0: each operation on rows has a kernel of its own
  int threads = 1;
};
inline constexpr TrainingOptions kApart = {.shares_memory = false, .fuses_elements = true};

// One training pass in memory that holds NaN at first. The model is one of random_model(), or takes and gives six
// numbers a sample, too.
Result train(const Model& model, std::int64_t samples, const TrainingOptions& options = {});

}  // namespace holdfast::random_models
