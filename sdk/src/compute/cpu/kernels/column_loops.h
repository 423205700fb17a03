#pragma once

// See vector_kernels.h. Sums over the rows of each column, as the gradients of biases and batch normalization need
// them.
//
// The order is a function of the shape alone. Rows are taken in blocks of 32. A block is added in float, in the order
// of its rows; blocks are added in double, in order. Where there are few columns, several rows side by side are seen as
// one wide row, so that vectors are full; the sums of its columns that stand for one column are added in order at the
// end.

#include "compute/arithmetic/normalization.h"
#include "compute/cpu/kernels/vector_kernels.h"

namespace holdfast::compute {
namespace {

// The sums of a tile stay in the first-level cache, and a block of its rows in the second-level one. Shorter pieces of
// rows come more slowly from memory: with 128 columns, moments took 1.4 times as long on an Intel Xeon of 2026-11-27.
constexpr std::int64_t kTileColumns = 1024;
// Columns that few columns are widened to.
constexpr std::int64_t kWideColumns = 128;
constexpr std::int64_t kBlockRows = 32;

// Columns below this number are widened. At least as many are given to a thread (see kColumnsOfPart).
constexpr std::int64_t kFewColumns = kColumnsOfPart;

// An array as it is added up.
struct WideRows {
  std::int64_t columns;   // of a wide row
  std::int64_t rows;      // whole wide rows
  std::int64_t leftover;  // floats after the last whole one
};

[[gnu::always_inline]] inline WideRows wide_rows(std::int64_t rows, std::int64_t columns) {
  const std::int64_t folded = columns < kFewColumns ? kWideColumns / columns : 1;
  return {.columns = columns * folded, .rows = rows / folded, .leftover = rows % folded * columns};
}

// Calls block(offset, rows, columns) for blocks of up to kBlockRows rows that begin with the float at `offset`. They
// are those of the columns [begin, begin + columns), and rows lie wide.columns apart.
template <class Block>
[[gnu::always_inline]] inline void for_each_block(const WideRows& wide, std::int64_t begin, std::int64_t columns,
                                                  const Block& block) {
  for (std::int64_t row = 0; row < wide.rows; row += kBlockRows) {
    const std::int64_t rows = wide.rows - row < kBlockRows ? wide.rows - row : kBlockRows;
    block(row * wide.columns + begin, rows, columns);
  }
  if (wide.leftover > 0) block(wide.rows * wide.columns, std::int64_t{1}, wide.leftover);
}

// sums[column] = sum over rows of term(offset + row * stride + column), in order.
template <class Term>
[[gnu::always_inline]] inline void add_block(std::int64_t offset, std::int64_t stride, std::int64_t rows,
                                             std::int64_t columns, float* sums, const Term& term) {
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) sums[c] = 0;
  std::int64_t row = 0;
  // Four rows at once, which load and store the sums only once.
  for (; row + 4 <= rows; row += 4) {
    const std::int64_t at = offset + row * stride;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) {
      sums[c] = (((sums[c] + term(at + c, c)) + term(at + stride + c, c)) + term(at + 2 * stride + c, c)) +
                term(at + 3 * stride + c, c);
    }
  }
  for (; row < rows; ++row) {
    const std::int64_t at = offset + row * stride;
#pragma omp simd
    for (std::int64_t c = 0; c < columns; ++c) sums[c] = sums[c] + term(at + c, c);
  }
}

[[gnu::always_inline]] inline void add_to_totals(const float* sums, std::int64_t columns, double* totals) {
#pragma omp simd
  for (std::int64_t c = 0; c < columns; ++c) totals[c] = totals[c] + sums[c];
}

// The tiles of the columns [begin, end): tile(first, columns) of the wide row. The range is all columns where they are
// few.
template <class Tile>
[[gnu::always_inline]] inline void for_each_tile(const WideRows& wide, std::int64_t columns, ColumnRange range,
                                                 const Tile& tile) {
  if (wide.columns != columns) return tile(std::int64_t{0}, wide.columns);
  for (std::int64_t first = range.begin; first < range.end; first += kTileColumns) {
    tile(first, range.end - first < kTileColumns ? range.end - first : kTileColumns);
  }
}

void column_sums(const float* values, std::int64_t rows, std::int64_t columns, ColumnRange range, float* sums) {
  const WideRows wide = wide_rows(rows, columns);
  for_each_tile(wide, columns, range, [=](std::int64_t first, std::int64_t width) {
    alignas(64) float block_sums[kTileColumns];
    alignas(64) double totals[kTileColumns];
    for (std::int64_t c = 0; c < width; ++c) totals[c] = 0;
    for_each_block(wide, first, width, [&](std::int64_t offset, std::int64_t block_rows, std::int64_t block_columns) {
      add_block(offset, wide.columns, block_rows, block_columns, block_sums,
                [=](std::int64_t i, std::int64_t) { return values[i]; });
      add_to_totals(block_sums, block_columns, totals);
    });
    // A wide row has each column several times. The first place of a column gets the sum of all of them, in order.
    const std::int64_t own = width < columns ? width : columns;
    for (std::int64_t c = 0; c < own; ++c) {
      double sum = totals[c];
      for (std::int64_t copy = c + columns; copy < width; copy += columns) sum += totals[copy];
      sums[first + c] = static_cast<float>(sum);
    }
  });
}

// Mean, and the sum of squared deviations from it, of some rows of a column.
struct Moments {
  double count;
  double mean;
  double squares;
};

// The moments of both together (Chan, Golub and LeVeque: "Algorithms for Computing the Sample Variance", 1983).
[[gnu::always_inline]] inline Moments merged(const Moments& a, const Moments& b) {
  const double count = a.count + b.count;
  const double difference = b.mean - a.mean;
  return {count, a.mean + difference * (b.count / count),
          a.squares + b.squares + difference * difference * (a.count * b.count / count)};
}

void column_moments(const float* values, std::int64_t rows, std::int64_t columns, ColumnRange range, float* mean,
                    float* variance) {
  const WideRows wide = wide_rows(rows, columns);
  for_each_tile(wide, columns, range, [=](std::int64_t first, std::int64_t width) {
    alignas(64) float means[kTileColumns];
    alignas(64) float squares[kTileColumns];
    alignas(64) double total_means[kTileColumns];
    alignas(64) double total_squares[kTileColumns];
    for (std::int64_t c = 0; c < width; ++c) total_means[c] = total_squares[c] = 0;
    double counted = 0;
    for_each_block(wide, first, width, [&](std::int64_t offset, std::int64_t block_rows, std::int64_t block_columns) {
      const auto count = static_cast<float>(block_rows);
      add_block(offset, wide.columns, block_rows, block_columns, means,
                [=](std::int64_t i, std::int64_t) { return values[i]; });
#pragma omp simd
      for (std::int64_t c = 0; c < block_columns; ++c) means[c] = means[c] / count;
      // The block is in the cache. Deviations from its own mean keep their digits where the mean is large.
      add_block(offset, wide.columns, block_rows, block_columns, squares, [&](std::int64_t i, std::int64_t c) {
        const float deviation = values[i] - means[c];
        return deviation * deviation;
      });
      // As merged(), for all columns at once: this block is joined to all blocks before it.
      const double weight = count / (counted + count);
      const double both = counted * weight;
#pragma omp simd
      for (std::int64_t c = 0; c < block_columns; ++c) {
        const double difference = means[c] - total_means[c];
        total_means[c] = total_means[c] + difference * weight;
        total_squares[c] = total_squares[c] + squares[c] + difference * difference * both;
      }
      counted += count;
    });
    const std::int64_t own = width < columns ? width : columns;
    for (std::int64_t c = 0; c < own; ++c) {
      Moments moments = {0, 0, 0};
      for (std::int64_t copy = c; copy < width; copy += columns) {
        const double copy_rows = static_cast<double>(wide.rows + (copy < wide.leftover ? 1 : 0));
        if (copy_rows > 0) moments = merged(moments, {copy_rows, total_means[copy], total_squares[copy]});
      }
      mean[first + c] = static_cast<float>(moments.mean);
      variance[first + c] = static_cast<float>(moments.squares / moments.count);
    }
  });
}

void normalization_sums(const NormalizationRows& arrays, const float* output_gradient, ColumnRange range,
                        float* gamma_gradient, float* beta_gradient) {
  const float* const input = arrays.input;
  const std::int64_t columns = arrays.columns;
  const WideRows wide = wide_rows(arrays.rows, columns);
  for_each_tile(wide, columns, range, [=](std::int64_t first, std::int64_t width) {
    alignas(64) float mean[kTileColumns];
    alignas(64) float inverse[kTileColumns];
    for (std::int64_t c = 0; c < width; ++c) {
      mean[c] = arrays.mean[(first + c) % columns];
      inverse[c] = arrays.inverse[(first + c) % columns];
    }
    alignas(64) float sums[kTileColumns];
    alignas(64) double of_gamma[kTileColumns];
    alignas(64) double of_beta[kTileColumns];
    for (std::int64_t c = 0; c < width; ++c) of_gamma[c] = of_beta[c] = 0;
    for_each_block(wide, first, width, [&](std::int64_t offset, std::int64_t block_rows, std::int64_t block_columns) {
      add_block(offset, wide.columns, block_rows, block_columns, sums, [&](std::int64_t i, std::int64_t c) {
        return output_gradient[i] * normalized(input[i], mean[c], inverse[c]);
      });
      add_to_totals(sums, block_columns, of_gamma);
      add_block(offset, wide.columns, block_rows, block_columns, sums,
                [=](std::int64_t i, std::int64_t) { return output_gradient[i]; });
      add_to_totals(sums, block_columns, of_beta);
    });
    const std::int64_t own = width < columns ? width : columns;
    for (std::int64_t c = 0; c < own; ++c) {
      double gamma_sum = 0;
      double beta_sum = 0;
      for (std::int64_t copy = c; copy < width; copy += columns) {
        gamma_sum += of_gamma[copy];
        beta_sum += of_beta[copy];
      }
      gamma_gradient[first + c] = static_cast<float>(gamma_sum);
      beta_gradient[first + c] = static_cast<float>(beta_sum);
    }
  });
}

// Calls pass.run(offset, columns) for all rows, one after another. Rows of few columns are joined to wide ones.
template <class Pass>
[[gnu::always_inline]] inline void for_each_row(std::int64_t rows, std::int64_t columns, const Pass& pass) {
  const WideRows wide = wide_rows(rows, columns);
  for (std::int64_t row = 0; row < wide.rows; ++row) pass.run(row * wide.columns, wide.columns);
  if (wide.leftover > 0) pass.run(wide.rows * wide.columns, wide.leftover);
}

// Parameters of the columns; side by side as often as columns are in a wide row.
class WideParameters {
 public:
  [[gnu::always_inline]] inline WideParameters(const float* parameters, std::int64_t columns) : at(parameters) {
    if (columns >= kFewColumns) return;
    for (std::int64_t c = 0; c < kWideColumns; ++c) copies_[c] = parameters[c % columns];
    at = copies_;
  }
  WideParameters(const WideParameters&) = delete;
  WideParameters& operator=(const WideParameters&) = delete;

  const float* at;

 private:
  alignas(64) float copies_[kWideColumns];
};

struct NormalizeRows {
  const float* input;
  float* output;
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* beta;

  [[gnu::always_inline]] inline void run(std::int64_t offset, std::int64_t width) const {
    const float* const from = input + offset;
    float* const to = output + offset;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) to[c] = normalized(from[c], mean[c], inverse[c]) * gamma[c] + beta[c];
  }
};

void normalize(const NormalizationRows& arrays, const float* beta, float* output) {
  const WideParameters mean(arrays.mean, arrays.columns);
  const WideParameters inverse(arrays.inverse, arrays.columns);
  const WideParameters gamma(arrays.gamma, arrays.columns);
  const WideParameters wide_beta(beta, arrays.columns);
  const NormalizeRows pass = {arrays.input, output, mean.at, inverse.at, gamma.at, wide_beta.at};
  for_each_row(arrays.rows, arrays.columns, pass);
}

struct NormalizeRowsBackward {
  const float* input;
  const float* output_gradient;
  float* input_gradient;
  float rows;
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* gamma_gradient;
  const float* beta_gradient;

  [[gnu::always_inline]] inline void run(std::int64_t offset, std::int64_t width) const {
    const float* const from = input + offset;
    const float* const gradient = output_gradient + offset;
    float* const to = input_gradient + offset;
#pragma omp simd
    for (std::int64_t c = 0; c < width; ++c) {
      const NormalizationGradient of_column = {mean[c],           inverse[c],       gamma[c],
                                               gamma_gradient[c], beta_gradient[c], rows};
      to[c] = of_column.of(from[c], gradient[c]);
    }
  }
};

void normalize_backward(const NormalizationRows& arrays, const float* output_gradient, const float* gamma_gradient,
                        const float* beta_gradient, float statistics_rows, float* input_gradient) {
  const WideParameters mean(arrays.mean, arrays.columns);
  const WideParameters inverse(arrays.inverse, arrays.columns);
  const WideParameters gamma(arrays.gamma, arrays.columns);
  const WideParameters of_gamma(gamma_gradient, arrays.columns);
  const WideParameters of_beta(beta_gradient, arrays.columns);
  const NormalizeRowsBackward pass = {arrays.input, output_gradient, input_gradient, statistics_rows, mean.at,
                                      inverse.at,   gamma.at,        of_gamma.at,    of_beta.at};
  for_each_row(arrays.rows, arrays.columns, pass);
}

}  // namespace
}  // namespace holdfast::compute
