#pragma once

// Our own loops on CPUs, compiled once for each instruction set. A table holds the functions of one set, and the
// machine decides which table is used.
//
// All sets give the same bits. They only do so because nothing is contracted into fused multiply-adds, sums have the
// fixed order of lanes.h, and no function of a C library is called. Adding a set therefore needs no new version of
// the arithmetic; changing a formula or an order does (kKernelsVersion in backend.h).
//
// The loops are in the *_loops.h headers. They and what they include must leave no inline function to the linker: it
// keeps one copy of each, and one with AVX2 instructions would end a program on a machine without them. So functions of
// the loops are in unnamed namespaces, and shared ones are always inlined (HOLDFAST_HOST_DEVICE).
//
// Arrays are f32 and need no alignment. Unless a comment says otherwise, outputs may be inputs but not overlap them
// otherwise. Functions run on the calling thread and allocate nothing. docs/decisions/processor-loops.md

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "compute/arithmetic/update_rules.h"
#include "compute/array_kernels.h"
#include "compute/device_kernels.h"
#include "core/philox.h"

namespace holdfast::compute {

enum class InstructionSet { baseline, avx2, avx512 };

// "baseline", "avx2" or "avx512"
std::string_view name_of(InstructionSet set);

// output[i] = f(input[i])
using ElementPass = void (*)(const float* input, float* output, std::int64_t count);
// input_gradient[i] = output_gradient[i] * f'(kept[i])
using DerivativePass = void (*)(const float* kept, const float* output_gradient, float* input_gradient,
                                std::int64_t count);

struct ActivationPasses {
  ElementPass forward;
  DerivativePass backward;
};

// The sum of the losses of `count` elements, before it is divided; gradient[i] = factor * derivative, unless `gradient`
// is null.
using ElementLosses = double (*)(const float* outputs, const float* targets, std::int64_t count, float factor,
                                 float* gradient);

// What the softmax of a row subtracts and divides by.
struct SoftmaxSums {
  float shift;
  double sum;
};

// Functions of columns take a range of them, so that threads can share the columns. A range of fewer than
// kColumnsOfPart columns must be all of them.
inline constexpr std::int64_t kColumnsOfPart = 32;
struct ColumnRange {
  std::int64_t begin;
  std::int64_t end;
};

// Rows that are normalized by column: [rows, columns]. `inverse` is 1 / sqrt(variance + epsilon).
struct NormalizationRows {
  const float* input;
  std::int64_t rows;
  std::int64_t columns;
  const float* mean;
  const float* inverse;
  const float* gamma;
};

// Numbers of a block of an element program: an array, or one number for all elements.
struct ElementLane {
  const float* values = nullptr;
  bool is_scalar = false;
};

// Where the numbers of some rows lie: as many as a row has elements, or one for all of them. With a stride of 0 each
// row has the same ones.
struct OperandRows {
  const float* values = nullptr;
  std::int64_t row_stride = 0;
  bool is_scalar = true;
};

// Functions of elements that follow one another: result 0 = f0(first, operand 0), result 1 = f1(result 0, operand 1),
// and so on. All are of [rows, width].
struct ElementChain {
  static constexpr int kMaximumLength = 3;
  static constexpr int kMaximumAhead = 2;

  std::int64_t rows = 0;
  std::int64_t width = 0;
  OperandRows first{};
  OperandRows operands[kMaximumLength]{};
  float* results[kMaximumLength]{};  // null: not wanted
  OperandRows factor{};              // of ChainSum::products; not one number for a row
  // The sum of each row, in the order of lanes.h, divided as a double; null for ChainSum::none.
  float* sums = nullptr;
  double divisor = 1;
  // Where rows lie that are used next, or null. The second-level cache is asked for as many as these are, meanwhile.
  const float* ahead[kMaximumAhead]{};
};

// What is added up of the last result.
enum class ChainSum : std::uint8_t { none, values, squares, products, negatives };

// A result may be written over an array of which no later function, and no factor, reads the same element.
using ChainLoop = void (*)(const ElementChain& chain);

// Sums of squares, whose roots are the norms of LAMB.
struct LambSums {
  double parameters = 0;
  double directions = 0;
};

using UpdateRuleLoop = void (*)(const float* numbers, float kept, std::int64_t count, const float* gradients,
                                float* parameters, float* const* slots);

struct VectorKernels {
  InstructionSet set;

  ActivationPasses relu;
  ActivationPasses tanh;
  ActivationPasses sigmoid;
  ActivationPasses gelu;

  // For each row of [rows, channels].
  void (*softmax)(const float* input, std::int64_t rows, std::int64_t channels, float* output);
  // input_gradient = output * (output_gradient - sum of output * output_gradient)
  void (*softmax_backward)(const float* output, const float* output_gradient, std::int64_t rows, std::int64_t channels,
                           float* input_gradient);
  // exponentials[c] = exp(row[c] - shift), unless `exponentials` is null.
  SoftmaxSums (*softmax_row)(const float* row, std::int64_t count, float* exponentials);

  ElementLosses binary_loss_of_logits;
  ElementLosses binary_loss_of_probabilities;
  ElementLosses squared_error;
  // The cross-entropy of a row of scores whose targets are shares: the sum of target * (log_sum - (score - shift)).
  double (*categorical_loss)(const float* scores, const float* targets, std::int64_t count, float shift,
                             double log_sum);

  double (*sum)(const float* values, std::int64_t count);
  // array[c] = array[c] * factor
  void (*scale)(float* array, std::int64_t count, float factor);
  // array[c] = array[c] * factor - other[c] * other_factor
  void (*scale_and_subtract)(float* array, const float* other, std::int64_t count, float factor, float other_factor);

  // For each column of [rows, columns] in the range; `sums`, `mean` and so on have a place for every column.
  void (*column_sums)(const float* values, std::int64_t rows, std::int64_t columns, ColumnRange range, float* sums);
  // The mean and the biased variance, in one pass over memory.
  void (*column_moments)(const float* values, std::int64_t rows, std::int64_t columns, ColumnRange range, float* mean,
                         float* variance);
  // The sums over rows of output_gradient * normalized input, and of output_gradient.
  void (*normalization_sums)(const NormalizationRows& arrays, const float* output_gradient, ColumnRange range,
                             float* gamma_gradient, float* beta_gradient);
  void (*normalize)(const NormalizationRows& arrays, const float* beta, float* output);
  // `statistics_rows` is how many rows the statistics and both sums are of.
  void (*normalize_backward)(const NormalizationRows& arrays, const float* output_gradient, const float* gamma_gradient,
                             const float* beta_gradient, float statistics_rows, float* input_gradient);

  // result[i] = function of the three operands at i, of which it reads those that it takes.
  void (*run_instruction)(ElementFunction function, const ElementLane* operands, std::int64_t count, float* result);
  void (*reduce)(const RowReduction& reduction, const float* from, float* to);
  // As reduce() of the array a[i] * b[i], whose rows are neighbours (inner is 1).
  void (*reduce_products)(const RowReduction& reduction, const float* a, const float* b, float* to);
  // sums[c] += a[r, c] * b[r, c] for each row, in order; a[r, c] alone where b is null. Meanwhile the second-level
  // cache is asked for as many rows that follow, if they are read next.
  void (*add_rows)(const float* a, const float* b, std::int64_t rows, std::int64_t columns, bool are_more_read,
                   double* sums);

  // The loop of so many functions, each add, subtract or multiply. Three of them have no sum.
  ChainLoop (*find_chain)(const ElementFunction* functions, int length, ChainSum sum);

  // One step of an optimizer. The arrays do not overlap. `velocity` is null without momentum.
  void (*adam)(const AdamStep& step, std::int64_t count, const float* gradients, float* parameters, float* m, float* v);
  void (*sgd)(const SgdStep& step, std::int64_t count, const float* gradients, float* parameters, float* velocity);

  // LAMB in two passes: the slots are moved, and the squares of the decayed parameters and of the directions are added
  // in the order of lanes.h. Then the parameters decay and make a step of `scale` times the directions.
  LambSums (*lamb_slots)(const LambStep& step, std::int64_t count, const float* gradients, const float* parameters,
                         float* momenta, float* velocities);
  void (*lamb_parameters)(const LambStep& step, float scale, std::int64_t count, const float* momenta,
                          const float* velocities, float* parameters);

  // A step of each rule of update_rules.h, by its number. It has as many slots as its formula.
  UpdateRuleLoop rules[kUpdateRules];

  // The parts of gradient clipping, in the order of arithmetic/gradient_clipping.h.
  double (*squares_of_chunk)(const float* values, std::size_t count);
  void (*clip_values)(const float* gradients, std::int64_t count, float limit, float* clipped);
  // result[i] = array[i] * factor
  void (*scaled)(const float* array, std::int64_t count, float factor, float* result);

  // to[i] = a[i] + b[i]. Returns whether all sums are finite. `to` goes past the caches where it begins at a cache
  // line.
  bool (*add_past_cache)(const float* a, const float* b, std::int64_t count, float* to);

  // output[i] = 0 where draw i of the sequence is below the rate, and input[i] * kept elsewhere.
  void (*dropout)(const PhiloxSequence& sequence, const float* input, std::int64_t count, float rate, float kept,
                  float* output);
};

// The table of the best set that the machine has, or of the one that was forced.
const VectorKernels& vector_kernels();

// The sets that this machine has, from baseline on.
std::span<const InstructionSet> supported_instruction_sets();

// For tests and benchmarks: vector_kernels() gives this set from now on, in all threads; without one, the best. Throws
// Error{unavailable} where the machine does not have it.
void force_instruction_set(std::optional<InstructionSet> set);

}  // namespace holdfast::compute
