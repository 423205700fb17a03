#pragma once

// What layers are made of. An operation computes arrays from arrays, and describes its gradient with other operations.
// It holds its options, and never numbers. A plan makes a kernel of it for one number of samples.
// docs/decisions/models.md

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/graph/kernel.h"
#include "nn/graph/value_node.h"

namespace holdfast {

class ConfigWriter;

// What gradient() is asked for. Missing: an operand that is not there, or an output that the loss does not depend on.
struct GradientRequest {
  std::span<const MaybeValue> inputs;
  std::span<const Value> outputs;
  std::span<const MaybeValue> output_gradients;
  std::vector<bool> needed;  // for each input, whether its gradient is wanted
};

// The spec of an output that a backward operation was not asked for. It takes no memory.
inline const ValueSpec kNotComputed = {.shape = {0}, .dtype = DType::f32, .has_samples = false};

// What an operation computes that is a function of elements with broadcasting: an instruction of an element program.
struct ElementPart {
  compute::ElementFunction function = compute::ElementFunction::copy;
  std::vector<std::optional<float>> constants{};  // by argument; missing where the argument is the next input
};

// What an operation computes that is a reduction, or repeats numbers along axes.
struct RowPart {
  enum class Kind { reduction, sum_over_samples, broadcast };

  Kind kind = Kind::reduction;
  compute::ReductionKind reduction = compute::ReductionKind::sum;
  // The axes of a sample that a reduction goes over, from `begin` to before `end`.
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Operation {
 public:
  virtual ~Operation() = default;

  // In error messages and drawings: "dense".
  virtual std::string name() const = 0;
  // Throws Error{invalid_argument} that says what the operation needs if it cannot take the inputs. A missing input has
  // no spec.
  virtual std::vector<ValueSpec> outputs(std::span<const std::optional<ValueSpec>> inputs) const = 0;
  // The gradient of each input, missing where it was not asked for or is zero.
  virtual std::vector<MaybeValue> gradient(const GradientRequest& request) const = 0;
  // Null for a view: its output is its input's memory under another shape.
  virtual std::unique_ptr<Kernel> make_kernel(const KernelMaker& maker) const = 0;

  // Appends the options of an operation that may stand in a file of a model, where it is found by name(). The default
  // throws Error{unsupported}: most operations are parts of layers, and files hold layers.
  virtual void write_config(ConfigWriter& config) const;

  // Whether it takes so many inputs, for a call that comes from a file.
  virtual bool takes_inputs(std::size_t count) const { return count == 1; }

  // Whether inputs may be integers: it moves elements, or converts them. All others take f32 alone.
  virtual bool takes_integers() const { return false; }

  // What names its order of sums on this back end, once it gave other bits in an earlier version; empty until then. A
  // run refuses to resume with another text, as for Optimizer::arithmetic().
  virtual std::string arithmetic(const compute::Backend&) const { return {}; }

  virtual bool is_view() const { return false; }
  // Whether its kernel on a host computes each sample on its own, with the same bits for any number of samples, and
  // keeps nothing. A plan may run it on some samples at a time.
  virtual bool is_sample_wise() const { return false; }
  // Empty for all other operations. A plan may run several of them as one kernel.
  virtual std::optional<ElementPart> element_part() const { return std::nullopt; }
  // Empty for all other operations. A plan of the host may run several of them and functions of elements row by row.
  virtual std::optional<RowPart> row_part() const { return std::nullopt; }
  // False if no gradient ever reaches an input: what such an operation was made of then needs no backward pass.
  virtual bool passes_gradient() const { return true; }
  // The input in whose place output 0 may be written, if nothing reads the input afterwards.
  virtual std::optional<std::size_t> overwritable_input() const { return std::nullopt; }
};

}  // namespace holdfast
