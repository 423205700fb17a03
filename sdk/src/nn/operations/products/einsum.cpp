// An equation becomes products of matrices, one for each sample and each axis that all three terms have. Axes that both
// operands and the result place as they like need no copies, since kernels take strides. Operands in which the axes of
// a matrix do not lie next to each other are permuted first. A gradient is another equation. docs/decisions/layers.md

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/nn/functions.h"
#include "nn/graph/config.h"
#include "nn/operations/elements.h"
#include "nn/operations/operation_registry.h"
#include "nn/operations/strides.h"

namespace holdfast {

namespace {

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

struct EinsumTerms {
  std::string a;
  std::string b;
  std::string result;

  std::string text() const { return fmt::format("{},{}->{}", a, b, result); }
};

// Letters by what the product does with their axes, each in the order of the result, and those that are summed over in
// the order of the first operand.
struct EinsumGroups {
  explicit EinsumGroups(const EinsumTerms& of) {
    for (const char letter : of.result) {
      const bool is_in_both = has(of.a, letter) && has(of.b, letter);
      (is_in_both ? batch : has(of.a, letter) ? rows : columns) += letter;
    }
    for (const char letter : of.a) {
      if (!has(of.result, letter)) inner += letter;
    }
  }

  std::string batch, rows, columns, inner;
};

[[noreturn]] void refuse_product(const std::string& equation, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("einsum() cannot compute {}: {}", quoted_text(equation, 100), why));
}

EinsumTerms terms_of(const std::string& equation) {
  const std::size_t comma = equation.find(',');
  const std::size_t arrow = equation.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) {
    refuse_product(equation, "write it as \"thd,shd->hts\", without the axis of samples");
  }
  EinsumTerms of = {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1),
                    equation.substr(arrow + 2)};
  for (const std::string* const term : {&of.a, &of.b, &of.result}) {
    for (const char letter : *term) {
      const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
      if (!is_letter) refuse_product(equation, "axes are letters");
      if (std::count(term->begin(), term->end(), letter) > 1) {
        refuse_product(equation, fmt::format("the axis {} stands twice in one term", letter));
      }
      if (has(of.a, letter) + has(of.b, letter) + has(of.result, letter) < 2) {
        refuse_product(equation, fmt::format("the axis {} stands in one term alone; sum() over it first", letter));
      }
    }
  }
  return of;
}

// Whether kernels can walk through an array of these axes as matrices [first, second]: each group of axes is one axis
// then, with one stride.
bool is_walkable(std::string_view letters, std::string_view first, std::string_view second) {
  const bool are_together =
      letters.find(first) != std::string_view::npos && letters.find(second) != std::string_view::npos;
  // The elements of a matrix lie side by side along one of its axes.
  const bool has_matrix_last =
      (first.empty() && second.empty()) || has(first, letters.back()) || has(second, letters.back());
  return are_together && has_matrix_last;
}

bool is_walkable(const EinsumTerms& of, const EinsumGroups& groups) {
  return is_walkable(of.a, groups.rows, groups.inner) && is_walkable(of.b, groups.inner, groups.columns) &&
         is_walkable(of.result, groups.rows, groups.columns);
}

// The axes of one array: extents and strides by letter.
class LetteredArray {
 public:
  LetteredArray(std::string letters, const ValueSpec& spec)
      : letters_(std::move(letters)), spec_(spec), strides_(row_major_strides(spec.shape)) {}

  std::int64_t sample_stride() const { return spec_.has_samples ? spec_.shape.element_count() : 0; }
  std::int64_t stride(char letter) const { return strides_[letters_.find(letter)]; }
  std::int64_t extent(char letter) const { return spec_.shape[letters_.find(letter)]; }
  std::int64_t extent(std::string_view group) const {
    std::int64_t product = 1;
    for (const char letter : group) product *= extent(letter);
    return product;
  }
  // Matrices [first, second]. The letters of a group lie next to each other, so the last one has its stride.
  compute::MatrixPlaces places(std::string_view first, std::string_view second) const {
    compute::MatrixPlaces places;
    places.column = second.empty() ? 1 : stride(second.back());
    // A matrix without rows has one, whose stride is never used; this one is that of a matrix without gaps.
    places.row = first.empty() ? extent(second) * places.column : stride(first.back());
    return places;
  }

 private:
  const std::string letters_;
  const ValueSpec spec_;
  const std::vector<std::int64_t> strides_;
};

class EinsumOperation final : public Operation {
 public:
  explicit EinsumOperation(EinsumTerms terms) : terms_(std::move(terms)), groups_(terms_) {}

  std::string name() const override { return "einsum"; }
  bool takes_inputs(std::size_t count) const override { return count == 2; }
  std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const override;
  std::vector<MaybeValue> gradient(const GradientRequest& request) const override;
  void write_config(ConfigWriter& config) const override { config.text("equation", terms_.text()); }
  std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const override;

 private:
  const EinsumTerms terms_;
  const EinsumGroups groups_;
};

std::vector<ValueSpec> EinsumOperation::outputs(std::span<const std::optional<ValueSpec>> inputs) const {
  std::map<char, std::int64_t> extents;
  for (const auto& [letters, spec] : {std::pair{&terms_.a, &*inputs[0]}, {&terms_.b, &*inputs[1]}}) {
    const Shape& shape = spec->shape;
    if (shape.rank() != letters->size()) {
      refuse_product(terms_.text(),
                     fmt::format("its term {} does not fit a value of shape {}, without the axis of samples", *letters,
                                 shape.to_string()));
    }
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
      const auto [known, is_new] = extents.emplace((*letters)[axis], shape[axis]);
      if (is_new || known->second == shape[axis]) continue;
      refuse_product(terms_.text(), fmt::format("the axis {} has {} elements in one operand and {} in the other",
                                                known->first, known->second, shape[axis]));
    }
  }
  // einsum() permutes until it does. An operation of a file may be any.
  if (!is_walkable(terms_, groups_)) refuse_product(terms_.text(), "the axes of its matrices do not lie side by side");
  std::vector<std::int64_t> result;
  for (const char letter : terms_.result) result.push_back(extents.at(letter));
  return {{.shape = Shape(std::move(result)),
           .dtype = DType::f32,
           .has_samples = inputs[0]->has_samples || inputs[1]->has_samples}};
}

std::vector<MaybeValue> EinsumOperation::gradient(const GradientRequest& request) const {
  const Value& a = *request.inputs[0];
  const Value& b = *request.inputs[1];
  const Value& g = *request.output_gradients[0];
  std::vector<MaybeValue> gradients(2);
  // An operand without samples, such as a weight, is one for all of them, so their gradients are added.
  const auto added_up = [](const Value& gradient, const Value& operand) {
    return gradient.has_samples() && !operand.has_samples() ? sum_over_samples(gradient) : gradient;
  };
  if (request.needed[0]) {
    gradients[0] = added_up(einsum(fmt::format("{},{}->{}", terms_.result, terms_.b, terms_.a), g, b), a);
  }
  if (request.needed[1]) {
    gradients[1] = added_up(einsum(fmt::format("{},{}->{}", terms_.a, terms_.result, terms_.b), a, g), b);
  }
  return gradients;
}

std::unique_ptr<Kernel> EinsumOperation::make_kernel(const KernelMaker& maker) const {
  const LetteredArray a(terms_.a, *maker.inputs[0]);
  const LetteredArray b(terms_.b, *maker.inputs[1]);
  const LetteredArray result(terms_.result, *maker.outputs[0]);
  compute::BatchedProductShape shape;
  // The same in b: outputs() has compared the extents.
  shape.inner = a.extent(groups_.inner);
  // Kernels write columns side by side. Where rows lie so, the transposed product has them as columns:
  // transpose(a b) = transpose(b) transpose(a).
  const bool swaps = !terms_.result.empty() && has(groups_.rows, terms_.result.back());
  const std::string& rows = swaps ? groups_.columns : groups_.rows;
  const std::string& columns = swaps ? groups_.rows : groups_.columns;
  const LetteredArray& left = swaps ? b : a;
  const LetteredArray& right = swaps ? a : b;
  shape.rows = result.extent(rows);
  shape.columns = result.extent(columns);
  shape.left = left.places(rows, groups_.inner);
  shape.right = right.places(groups_.inner, columns);
  shape.result = result.places(rows, columns);

  const auto add_batch = [&](std::int64_t extent, std::int64_t of_left, std::int64_t of_right, std::int64_t of_result) {
    // An axis of one element needs no loop, and takes no place among the few that kernels have.
    if (extent == 1) return;
    const std::size_t last = shape.batch_axes - 1;
    const auto joins = [&](const compute::MatrixPlaces& places, std::int64_t inner_stride) {
      return places.batch[last] == inner_stride * extent;
    };
    // Axes come from the first to the last: this one is joined with the one before it where all arrays allow. Then the
    // axis of samples and that of heads take one place in many attentions.
    if (shape.batch_axes > 0 && joins(shape.left, of_left) && joins(shape.right, of_right) &&
        joins(shape.result, of_result)) {
      shape.batch[last] *= extent;
      shape.left.batch[last] = of_left;
      shape.right.batch[last] = of_right;
      shape.result.batch[last] = of_result;
      return;
    }
    if (shape.batch_axes == compute::kMaximumBatchAxes) {
      refuse_product(terms_.text(), fmt::format("more than {} axes stand in all three terms, with that of samples",
                                                compute::kMaximumBatchAxes));
    }
    shape.batch[shape.batch_axes] = extent;
    shape.left.batch[shape.batch_axes] = of_left;
    shape.right.batch[shape.batch_axes] = of_right;
    shape.result.batch[shape.batch_axes] = of_result;
    ++shape.batch_axes;
  };
  if (maker.outputs[0]->has_samples) {
    add_batch(maker.samples, left.sample_stride(), right.sample_stride(), result.sample_stride());
  }
  for (const char letter : groups_.batch) {
    add_batch(result.extent(letter), left.stride(letter), right.stride(letter), result.stride(letter));
  }
  std::shared_ptr<compute::BatchedProductOperation> product = maker.backend.batched_product(shape);
  return make_function_kernel([product, swaps](const KernelArrays& arrays) {
    product->run(arrays.input(swaps ? 1 : 0), arrays.input(swaps ? 0 : 1), arrays.output(0));
  });
}

// `x` with axes `from` in the order `to`.
Value ordered(const Value& x, std::string_view from, std::string_view to) {
  AxisList order;
  for (const char letter : to) order.push_back(static_cast<std::int64_t>(from.find(letter)));
  return from == to ? x : permute(x, order);
}

// With the shape of einsum()'s first check: a permutation needs as many axes as letters.
void check_rank(const EinsumTerms& of, const std::string& letters, const Value& x) {
  if (x.shape().rank() == letters.size()) return;
  refuse_product(of.text(), fmt::format("its term {} does not fit a value of shape {}, without the axis of samples",
                                        letters, x.shape().to_string()));
}

}  // namespace

std::shared_ptr<const Operation> read_einsum(ConfigReader& config) {
  return std::make_shared<const EinsumOperation>(terms_of(config.text("equation")));
}

Value einsum(const std::string& equation, const Value& a, const Value& b) {
  EinsumTerms of = terms_of(equation);
  const EinsumGroups groups(of);
  check_rank(of, of.a, a);
  check_rank(of, of.b, b);
  const std::string result = of.result;
  std::string a_letters = of.a;
  std::string b_letters = of.b;
  // Only the terms that kernels cannot walk through are copied into another order, and the result back into that of the
  // caller.
  if (!is_walkable(of.a, groups.rows, groups.inner)) of.a = groups.batch + groups.rows + groups.inner;
  if (!is_walkable(of.b, groups.inner, groups.columns)) of.b = groups.batch + groups.inner + groups.columns;
  if (!is_walkable(of.result, groups.rows, groups.columns)) of.result = groups.batch + groups.rows + groups.columns;
  const Value product = apply_one(std::make_shared<const EinsumOperation>(of),
                                  {ordered(a, a_letters, of.a), ordered(b, b_letters, of.b)});
  return ordered(product, of.result, result);
}

// Axes before the last two are those of several matrices. As in NumPy, missing ones and those of extent 1 are repeated.
Value batched_matmul(const Value& a, const Value& b) {
  const auto refuse_shapes = [&] {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("matmul() multiplies values [..., n, k] by [..., k, m] with equal axes before the last two, "
                    "or by a matrix [k, m] without samples, not {} by {}; permute() or reshape() one of them",
                    a.shape().to_string(), b.shape().to_string()));
  };
  const auto fits = [](const Value& x) { return x.shape().rank() >= 2; };
  if (!fits(a) || !fits(b)) refuse_shapes();
  const std::size_t a_batch = a.shape().rank() - 2;
  const std::size_t b_batch = b.shape().rank() - 2;
  const std::size_t axes = std::max(a_batch, b_batch);
  constexpr std::string_view kLetters = "abcdefghij";
  if (axes > kLetters.size()) refuse_shapes();
  EinsumTerms of;
  // The extents of an operand without those of extent 1 that are repeated.
  const auto take = [&](const Value& x, std::size_t batch, const Value& other, std::size_t other_batch,
                        std::string& letters) {
    std::vector<std::int64_t> extents;
    for (std::size_t axis = 0; axis < batch; ++axis) {
      const std::size_t from_last = batch - axis;
      const bool has_other = from_last <= other_batch;
      const std::int64_t extent = x.shape()[axis];
      // An axis that is repeated is left out of the term: then einsum() takes it for the other operand's alone.
      if (extent == 1 && has_other && other.shape()[other_batch - from_last] != 1) continue;
      if (has_other && other.shape()[other_batch - from_last] != extent && other.shape()[other_batch - from_last] != 1)
        refuse_shapes();
      extents.push_back(extent);
      letters += kLetters[axes - from_last];
    }
    extents.push_back(x.shape()[batch]);
    extents.push_back(x.shape()[batch + 1]);
    return extents.size() == x.shape().rank() ? x : reshape(x, extents);
  };
  const Value left = take(a, a_batch, b, b_batch, of.a);
  const Value right = take(b, b_batch, a, a_batch, of.b);
  // Here, since einsum() would name letters that the caller has never seen.
  if (a.shape()[a_batch + 1] != b.shape()[b_batch]) refuse_shapes();
  of.result = std::string(kLetters.substr(0, axes)) + "xz";
  of.a += "xy";
  of.b += "yz";
  return einsum(of.text(), left, right);
}

}  // namespace holdfast
