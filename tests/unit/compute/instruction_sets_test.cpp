// Each of our loops gives the same bits on all instruction sets that the machine has. Lengths are random and lie around
// those of vectors and blocks; among the numbers are zeros, infinities, subnormal numbers and NaNs.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "compute/arithmetic/element_functions.h"
#include "compute/arithmetic/exponential.h"
#include "compute/arithmetic/lanes.h"
#include "compute/cpu/kernels/vector_kernels.h"
#include "holdfast/base/error.h"
#include "holdfast/core/random.h"

namespace holdfast::compute {
namespace {

using Floats = std::vector<float>;

// Scores as layers give them, with every special number in between.
Floats mixed_numbers(std::int64_t count, std::uint64_t number) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {0.0F, -0.0F, 1.0F, -1.0F, kInfinite, -kInfinite, NAN, 1e-40F, -1e-40F, 3e38F, -100.0F};
  Random random(number, Purpose::user, 0, 0);
  Floats numbers(static_cast<std::size_t>(count));
  for (float& value : numbers) {
    value = random.uniform() < 0.02F ? kSpecial[random.below(std::size(kSpecial))] : 4 * random.normal();
  }
  return numbers;
}

Floats normal_numbers(std::int64_t count, std::uint64_t number) {
  Random random(number, Purpose::user, 1, 0);
  Floats numbers(static_cast<std::size_t>(count));
  for (float& value : numbers) value = random.normal();
  return numbers;
}

// The bits, with one pattern for all NaNs: which of two NaNs a sum keeps depends on the order of its operands, which
// the compiler chooses.
std::vector<std::uint32_t> bits_of_all(const Floats& floats) {
  std::vector<std::uint32_t> bits;
  for (const float value : floats) bits.push_back(std::isnan(value) ? 0x7FC00000 : std::bit_cast<std::uint32_t>(value));
  return bits;
}

void append(Floats& floats, double value) {
  // Both halves, so that each bit of the double counts.
  const auto high = static_cast<float>(value);
  floats.push_back(high);
  floats.push_back(std::isfinite(high) ? static_cast<float>(value - high) : 0.0F);
}

std::vector<std::int64_t> lengths() {
  std::vector<std::int64_t> found = {1, 3, 7, 8, 15, 16, 17, 31, 64, 95, 96, 97, 128, 192, 255, 256, 257, 511, 1000};
  Random random(3, Purpose::user, 0, 0);
  for (int i = 0; i < 10; ++i) found.push_back(static_cast<std::int64_t>(random.below(5000)) + 1);
  return found;
}

class InstructionSets : public testing::Test {
 protected:
  ~InstructionSets() override { force_instruction_set(std::nullopt); }

  // `run` returns all that a kernel computes for one length.
  static void expect_same_bits(const std::function<Floats(const VectorKernels&, std::int64_t length)>& run) {
    for (const std::int64_t length : lengths()) {
      force_instruction_set(InstructionSet::baseline);
      const auto expected = bits_of_all(run(vector_kernels(), length));
      for (const InstructionSet set : supported_instruction_sets()) {
        force_instruction_set(set);
        ASSERT_EQ(vector_kernels().set, set);
        const auto actual = bits_of_all(run(vector_kernels(), length));
        ASSERT_EQ(actual.size(), expected.size());
        const auto differing = std::mismatch(actual.begin(), actual.end(), expected.begin()).first;
        EXPECT_EQ(differing - actual.begin(), std::ssize(actual)) << name_of(set) << ", length " << length;
      }
    }
  }
};

TEST_F(InstructionSets, GiveTheSameActivations) {
  for (const auto activation :
       {&VectorKernels::relu, &VectorKernels::tanh, &VectorKernels::sigmoid, &VectorKernels::gelu}) {
    expect_same_bits([&](const VectorKernels& kernels, std::int64_t length) {
      const Floats input = mixed_numbers(length, 1), gradient = normal_numbers(length, 2);
      Floats output(input.size()), result(input.size());
      (kernels.*activation).forward(input.data(), output.data(), length);
      (kernels.*activation).backward(input.data(), gradient.data(), result.data(), length);
      Floats in_place = input;
      (kernels.*activation).forward(in_place.data(), in_place.data(), length);
      EXPECT_EQ(bits_of_all(in_place), bits_of_all(output));
      result.insert(result.end(), output.begin(), output.end());
      return result;
    });
  }
}

// A function that loops compute in other forms than its formula.
struct FunctionAndFormula {
  ElementFunction function;
  float (*formula)(float, float, float);
};
template <ElementFunction kFunction>
constexpr FunctionAndFormula kWithFormula = {kFunction, element<kFunction>};

constexpr FunctionAndFormula kFormulas[] = {
    kWithFormula<ElementFunction::tanh>,      kWithFormula<ElementFunction::sigmoid>,
    kWithFormula<ElementFunction::silu>,      kWithFormula<ElementFunction::silu_slope>,
    kWithFormula<ElementFunction::gelu>,      kWithFormula<ElementFunction::gelu_slope>,
    kWithFormula<ElementFunction::gelu_tanh>, kWithFormula<ElementFunction::gelu_tanh_slope>,
};

// Loops that compute a part of a formula ahead, for a block of elements, give what the formula gives for each element.
TEST_F(InstructionSets, GiveTheBitsOfTheFormulasOfFunctions) {
  for (const auto& [function, formula] : kFormulas) {
    for (const std::int64_t length : lengths()) {
      const Floats input = mixed_numbers(length, 1);
      Floats expected(input.size()), result(input.size());
      std::ranges::transform(input, expected.begin(), [one = formula](float x) { return one(x, 0, 0); });
      const ElementLane operands[] = {{.values = input.data()}, {}, {}};
      for (const InstructionSet set : supported_instruction_sets()) {
        force_instruction_set(set);
        vector_kernels().run_instruction(function, operands, length, result.data());
        EXPECT_TRUE(bits_of_all(result) == bits_of_all(expected))
            << name_of(function) << " on " << name_of(set) << ", length " << length;
      }
    }
  }
}

// AVX-512 has forms of its own for these functions. Floats of all signs and sizes are compared, hundreds of each
// exponent, and those around the bounds at which formulas change.
TEST_F(InstructionSets, GiveTheBitsOfTheFormulasForFloatsOfAllSizes) {
  constexpr std::uint32_t kStep = 16001;  // odd, so that low bits differ
  Floats input;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += kStep) {
    input.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const float bound :
       {0.625F, 0.8325546F, 0.92F, 1.3010764F, 4.0F, 5.656854F, 40.0F, 80.0F, 87.3F, 89.0F, 104.0F}) {
    for (std::uint32_t bits = std::bit_cast<std::uint32_t>(bound) - 2000, end = bits + 4000; bits < end; ++bits) {
      input.push_back(std::bit_cast<float>(bits));
      input.push_back(-input.back());
    }
  }
  const auto count = std::ssize(input);
  Floats expected(input.size()), result(input.size());
  for (const auto& [function, formula] : kFormulas) {
    std::ranges::transform(input, expected.begin(), [one = formula](float x) { return one(x, 0, 0); });
    const auto bits = bits_of_all(expected);
    const ElementLane operands[] = {{.values = input.data()}, {}, {}};
    for (const InstructionSet set : supported_instruction_sets()) {
      force_instruction_set(set);
      vector_kernels().run_instruction(function, operands, count, result.data());
      const auto actual = bits_of_all(result);
      const auto differing = std::ranges::mismatch(actual, bits).in1 - actual.begin();
      EXPECT_EQ(differing, count) << name_of(function) << " on " << name_of(set) << " of "
                                  << input[static_cast<std::size_t>(std::min(differing, count - 1))];
    }
  }
}

// Scores whose exponentials are normal, subnormal and zero, and rows of few numbers and of masked ones.
TEST_F(InstructionSets, GiveTheSameSoftmaxOfScoresFarApart) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    Random random(static_cast<std::uint64_t>(length), Purpose::user, 0, 0);
    const std::int64_t rows = 7;
    Floats scores(static_cast<std::size_t>(rows * length));
    for (float& score : scores) score = random.uniform() < 0.1F ? -kInfinite : -110 * random.uniform();
    std::fill_n(scores.begin(), length, -kInfinite);
    scores[static_cast<std::size_t>(length)] = kInfinite;
    Floats output(scores.size());
    kernels.softmax(scores.data(), rows, length, output.data());
    return output;
  });
}

TEST_F(InstructionSets, GiveTheSameSoftmax) {
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    // A row of special numbers and two without, also in place.
    Floats input = normal_numbers(3 * length, 1);
    std::ranges::copy(mixed_numbers(length, 2), input.begin());
    const Floats gradient = normal_numbers(3 * length, 3);
    Floats output(input.size()), result(input.size());
    kernels.softmax(input.data(), 3, length, output.data());
    kernels.softmax_backward(output.data(), gradient.data(), 3, length, result.data());
    kernels.softmax(input.data(), 3, length, input.data());
    EXPECT_EQ(bits_of_all(input), bits_of_all(output));
    result.insert(result.end(), output.begin(), output.end());
    return result;
  });
}

TEST_F(InstructionSets, GiveTheSameLosses) {
  for (const auto losses : {&VectorKernels::binary_loss_of_logits, &VectorKernels::binary_loss_of_probabilities,
                            &VectorKernels::squared_error}) {
    expect_same_bits([&](const VectorKernels& kernels, std::int64_t length) {
      const Floats outputs = normal_numbers(length, 1), targets = normal_numbers(length, 2);
      Floats result(outputs.size());
      const double sum = (kernels.*losses)(outputs.data(), targets.data(), length, 0.5F, result.data());
      append(result, sum);
      append(result, (kernels.*losses)(outputs.data(), targets.data(), length, 0.5F, nullptr));
      return result;
    });
  }
}

TEST_F(InstructionSets, GiveTheSamePartsOfLossesOverClasses) {
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    const Floats scores = normal_numbers(length, 1), targets = normal_numbers(length, 2);
    Floats result(scores.size());
    const SoftmaxSums sums = kernels.softmax_row(scores.data(), length, result.data());
    result.push_back(sums.shift);
    append(result, sums.sum);
    append(result, kernels.categorical_loss(scores.data(), targets.data(), length, sums.shift, 3.25));
    append(result, kernels.sum(targets.data(), length));
    kernels.scale_and_subtract(result.data(), targets.data(), length, 0.3F, 0.7F);
    kernels.scale(result.data(), length, 1.1F);
    return result;
  });
}

// Few columns and many, also more than one tile of them, and numbers of rows that no block divides.
TEST_F(InstructionSets, GiveTheSameColumns) {
  for (const std::int64_t columns : {1, 3, 6, 31, 32, 64, 257, 1100}) {
    expect_same_bits([&](const VectorKernels& kernels, std::int64_t length) {
      const std::int64_t rows = length % 200 + 1;
      const ColumnRange all = {.begin = 0, .end = columns};
      const Floats input = normal_numbers(rows * columns, 1), gradient = normal_numbers(rows * columns, 2);
      const Floats gamma = normal_numbers(columns, 3), beta = normal_numbers(columns, 4);
      const auto places = static_cast<std::size_t>(columns);
      Floats sums(places), mean(places), variance(places), of_gamma(places), of_beta(places);
      Floats output(input.size()), input_gradient(input.size());
      kernels.column_sums(input.data(), rows, columns, all, sums.data());
      kernels.column_moments(input.data(), rows, columns, all, mean.data(), variance.data());
      const NormalizationRows arrays = {input.data(), rows, columns, mean.data(), gamma.data(), beta.data()};
      kernels.normalize(arrays, beta.data(), output.data());
      kernels.normalization_sums(arrays, gradient.data(), all, of_gamma.data(), of_beta.data());
      kernels.normalize_backward(arrays, gradient.data(), of_gamma.data(), of_beta.data(), 7, input_gradient.data());
      for (const Floats& part : {mean, variance, of_gamma, of_beta, output, input_gradient}) {
        sums.insert(sums.end(), part.begin(), part.end());
      }
      return sums;
    });
  }
}

// With arrays and single numbers in each place. A single number is the same as an array of it, and operands that a
// function does not take are not read.
TEST_F(InstructionSets, GiveTheSameFunctionsOfElements) {
  for (int number = 0; number <= static_cast<int>(ElementFunction::select); ++number) {
    const auto function = static_cast<ElementFunction>(number);
    const std::size_t taken = operand_count(function);
    SCOPED_TRACE(name_of(function));
    expect_same_bits([&](const VectorKernels& kernels, std::int64_t length) {
      const Floats numbers[] = {mixed_numbers(length, 1), mixed_numbers(length, 2), normal_numbers(length, 3)};
      Floats all;
      for (unsigned mask = 0; mask < 8; ++mask) {
        Floats repeated[3];
        ElementLane operands[3], arrays[3];
        for (std::size_t i = 0; i < 3; ++i) {
          const bool is_scalar = (mask >> i & 1) != 0;
          repeated[i] = is_scalar ? Floats(numbers[i].size(), numbers[i][0]) : numbers[i];
          operands[i] = {i < taken ? numbers[i].data() : nullptr, is_scalar};
          arrays[i] = {i < taken ? repeated[i].data() : nullptr, false};
        }
        Floats result(numbers[0].size()), of_arrays(numbers[0].size());
        kernels.run_instruction(function, operands, length, result.data());
        kernels.run_instruction(function, arrays, length, of_arrays.data());
        EXPECT_EQ(bits_of_all(result), bits_of_all(of_arrays)) << "scalars " << mask;
        all.insert(all.end(), result.begin(), result.end());
      }
      return all;
    });
  }
}

// Lanes that end with memory which may not be read. A build without optimisation reads each of them that it names.
class LanesAtTheEnd {
 public:
  LanesAtTheEnd() : bytes_(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))) {
    pages_ = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (pages_ == MAP_FAILED || ::mprotect(pages_ + bytes_, bytes_, PROT_NONE) != 0) throw std::bad_alloc();
  }
  ~LanesAtTheEnd() { ::munmap(pages_, 2 * bytes_); }
  LanesAtTheEnd(const LanesAtTheEnd&) = delete;
  LanesAtTheEnd& operator=(const LanesAtTheEnd&) = delete;

  const ElementLane* put(std::span<const ElementLane> lanes) {
    std::byte* const begin = pages_ + bytes_ - lanes.size_bytes();
    std::memcpy(begin, lanes.data(), lanes.size_bytes());
    return reinterpret_cast<const ElementLane*>(begin);
  }

 private:
  const std::size_t bytes_;
  std::byte* pages_ = nullptr;
};

// A selection with one condition for all elements read lanes beyond its three.
TEST_F(InstructionSets, ReadNoLaneBeyondThoseOfASelection) {
  LanesAtTheEnd memory;
  for (const float condition : {0.0F, 1.0F}) {
    expect_same_bits([&](const VectorKernels& kernels, std::int64_t length) {
      const Floats chosen = mixed_numbers(length, 1), other = mixed_numbers(length, 2);
      const ElementLane lanes[] = {{&condition, true}, {chosen.data(), false}, {other.data(), false}};
      Floats result(chosen.size());
      kernels.run_instruction(ElementFunction::select, memory.put(lanes), length, result.data());
      EXPECT_EQ(bits_of_all(result), bits_of_all(condition != 0 ? chosen : other));
      return result;
    });
  }
}

TEST_F(InstructionSets, GiveTheSameReductions) {
  for (const ReductionKind kind : {ReductionKind::sum, ReductionKind::mean, ReductionKind::maximum}) {
    for (const std::int64_t inner : {1, 2, 5, 40, 300}) {
      expect_same_bits([&](const VectorKernels& kernels, std::int64_t length) {
        const RowReduction reduction = {.kind = kind, .outer = 2, .reduced = length % 300 + 1, .inner = inner};
        const Floats from = normal_numbers(2 * reduction.reduced * inner, 1);
        Floats to(static_cast<std::size_t>(2 * inner));
        kernels.reduce(reduction, from.data(), to.data());
        return to;
      });
    }
  }
}

TEST_F(InstructionSets, GiveTheSameStepsOfOptimizers) {
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    const Floats gradients = normal_numbers(length, 1);
    Floats all;
    for (int rule = 0; rule < 4; ++rule) {
      Floats parameters = normal_numbers(length, 2), m = normal_numbers(length, 3), v = normal_numbers(length, 4);
      for (float& square : v) square = square * square;
      const SgdStep sgd = {.learning_rate = 0.1F, .momentum = rule == 1 ? 0.0F : 0.9F, .nesterov = rule == 3};
      const AdamStep adam = {.beta_1_rest = 0.1F, .beta_2_rest = 0.001F, .rate = 0.01F, .epsilon = 1e-7F, .kept = 0.9F};
      if (rule == 0) kernels.adam(adam, length, gradients.data(), parameters.data(), m.data(), v.data());
      if (rule > 0) kernels.sgd(sgd, length, gradients.data(), parameters.data(), rule == 1 ? nullptr : m.data());
      for (const Floats& part : {parameters, m, v}) all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  });
}

TEST_F(InstructionSets, GiveTheSameStepsOfLamb) {
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    const Floats gradients = normal_numbers(length, 1);
    Floats parameters = normal_numbers(length, 2), m = normal_numbers(length, 3), v = normal_numbers(length, 4);
    for (float& square : v) square = square * square;
    const LambStep step = {.beta_1_rest = 0.1F,
                           .beta_2_rest = 0.001F,
                           .momentum_correction = 3,
                           .velocity_correction = 7,
                           .epsilon = 1e-7F,
                           .kept = 0.9F};
    const double squares = sum_of_row(length, [&](std::int64_t i) {
      const auto decayed = static_cast<double>(parameters[static_cast<std::size_t>(i)] * step.kept);
      return decayed * decayed;
    });
    const LambSums sums = kernels.lamb_slots(step, length, gradients.data(), parameters.data(), m.data(), v.data());
    EXPECT_EQ(sums.parameters, squares);
    kernels.lamb_parameters(step, 0.3F, length, m.data(), v.data(), parameters.data());
    for (const Floats& part : {m, v}) parameters.insert(parameters.end(), part.begin(), part.end());
    append(parameters, sums.directions);
    return parameters;
  });
}

TEST_F(InstructionSets, GiveTheSameStepsOfRules) {
  for (int rule = 0; rule < kUpdateRules; ++rule) {
    expect_same_bits([rule](const VectorKernels& kernels, std::int64_t length) {
      const Floats gradients = mixed_numbers(length, 1);
      Floats parameters = normal_numbers(length, 2);
      Floats slots[kMostRuleSlots] = {normal_numbers(length, 3), normal_numbers(length, 4), normal_numbers(length, 5)};
      float* addresses[kMostRuleSlots] = {};
      for (int slot = 0; slot < kMostRuleSlots; ++slot) {
        for (float& square : slots[slot]) square = square * square;
        addresses[slot] = slots[slot].data();
      }
      const float numbers[kMostRuleNumbers] = {0.875F, 0.125F, 0.0625F, 0.25F, 0.5F, 1.5F};
      kernels.rules[rule](numbers, 0.75F, length, gradients.data(), parameters.data(), addresses);
      for (const Floats& slot : slots) parameters.insert(parameters.end(), slot.begin(), slot.end());
      return parameters;
    });
  }
}

TEST_F(InstructionSets, GiveTheSameClippedGradients) {
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    const Floats gradients = mixed_numbers(length, 1);
    Floats clipped(gradients.size()), scaled(gradients.size());
    kernels.clip_values(gradients.data(), length, 0.5F, clipped.data());
    kernels.scaled(gradients.data(), length, 0.3F, scaled.data());
    append(clipped,
           kernels.squares_of_chunk(normal_numbers(length, 2).data(), std::min<std::size_t>(4096, gradients.size())));
    clipped.insert(clipped.end(), scaled.begin(), scaled.end());
    return clipped;
  });
}

TEST_F(InstructionSets, GiveTheSameSumsPastTheCache) {
  expect_same_bits([](const VectorKernels& kernels, std::int64_t length) {
    const Floats a = mixed_numbers(length, 1), b = mixed_numbers(length, 2);
    // Past the caches from the beginning of a line alone.
    std::vector<float> aligned(a.size() + 16);
    float* const line = aligned.data() + (64 - reinterpret_cast<std::uintptr_t>(aligned.data()) % 64) % 64 / 4;
    Floats sums(a.size());
    const bool is_finite = kernels.add_past_cache(a.data(), b.data(), length, line);
    EXPECT_EQ(kernels.add_past_cache(a.data(), b.data(), length, sums.data()), is_finite);
    EXPECT_EQ(bits_of_all(Floats(line, line + length)), bits_of_all(sums));
    sums.push_back(is_finite ? 1 : 0);
    return sums;
  });
}

TEST_F(InstructionSets, FindWhatIsNotFinitePastTheCache) {
  for (const InstructionSet set : supported_instruction_sets()) {
    force_instruction_set(set);
    const auto add = [](const std::vector<float>& numbers) {
      const std::vector<float> zeros(numbers.size());
      alignas(64) float sums[48];
      return vector_kernels().add_past_cache(numbers.data(), zeros.data(), std::ssize(numbers), sums);
    };
    const std::vector<float> largest(45, std::numeric_limits<float>::max());
    EXPECT_TRUE(add(largest));
    for (std::size_t place = 0; place < largest.size(); ++place) {
      for (const float number : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()}) {
        std::vector<float> numbers = largest;
        numbers[place] = number;
        EXPECT_FALSE(add(numbers)) << place;
      }
    }
  }
  force_instruction_set(std::nullopt);
}

// As Random gives them, draw by draw, also at rates between two draws, and over the input.
TEST_F(InstructionSets, DropWhatTheDrawsSay) {
  for (const float rate : {0.3F, 0.0F, 0.5F, 0x1p-24F, 0x1.8p-24F, 1e-3F, 1.0F - 0x1p-24F}) {
    expect_same_bits([rate](const VectorKernels& kernels, std::int64_t length) {
      const PhiloxSequence sequence = philox_sequence(7, static_cast<std::uint32_t>(Purpose::dropout), 5, 11);
      Floats input = normal_numbers(length, 1);
      Floats output(input.size());
      kernels.dropout(sequence, input.data(), length, rate, 2, output.data());
      Random random(7, Purpose::dropout, 5, 11);
      for (std::size_t i = 0; i < input.size(); ++i) {
        EXPECT_EQ(output[i], input[i] * (random.uniform() < rate ? 0.0F : 2.0F));
      }
      kernels.dropout(sequence, input.data(), length, rate, 2, input.data());
      EXPECT_EQ(input, output);
      return output;
    });
  }
}

// A short row is one group of lanes, a longer one several; the order of the sum is that of lanes.h for both.
TEST_F(InstructionSets, GiveTheSoftmaxOfItsFormula) {
  for (const std::int64_t length : lengths()) {
    const Floats row = normal_numbers(length, 4);
    Floats output(row.size());
    const float largest = *std::ranges::max_element(row);
    const auto exponential_at = [&](std::int64_t i) { return exponential(row[static_cast<std::size_t>(i)] - largest); };
    const double sum = sum_of_row(length, exponential_at);
    vector_kernels().softmax(row.data(), 1, length, output.data());
    for (std::int64_t i = 0; i < length; ++i) {
      ASSERT_EQ(output[static_cast<std::size_t>(i)], exponential_at(i) / static_cast<float>(sum)) << length;
    }
  }
}

TEST_F(InstructionSets, AreForcedByNameOrRefused) {
  const auto all = supported_instruction_sets();

  EXPECT_EQ(all.front(), InstructionSet::baseline);
  EXPECT_EQ(vector_kernels().set, all.back());
  force_instruction_set(InstructionSet::baseline);
  EXPECT_EQ(vector_kernels().set, InstructionSet::baseline);
  force_instruction_set(std::nullopt);
  EXPECT_EQ(vector_kernels().set, all.back());
  if (all.back() == InstructionSet::avx512) return;
  EXPECT_THROW(force_instruction_set(InstructionSet::avx512), Error);
}

}  // namespace
}  // namespace holdfast::compute
