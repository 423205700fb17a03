#pragma once

// One oneDNN primitive, made for one shape, that runs on the callers' plain arrays.
//
// If the primitive needs another layout or type than the caller's, a reorder into or out of scratch memory runs before
// or after it. All memory objects, reorders and argument lists are made once. Running binds pointers and allocates
// nothing.

#include <dnnl.hpp>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "compute/cpu/cpu_context.h"

namespace holdfast::compute {

using MemoryDesc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;
using DataType = dnnl::memory::data_type;

MemoryDesc float_desc(const Dims& dims, Tag tag);
// Scratch memory is our own, because the library's would belong to the thread that made the primitive.
dnnl::primitive_attr scratch_attributes();

// Runs `action`. A failure of oneDNN in it becomes an Error, "oneDNN failed in OPERATION: ...".
void with_named_errors(const std::string& operation, const std::function<void()>& action);

struct Operand {
  enum class Role { input, output, discarded_output };

  int argument = 0;       // DNNL_ARG_SRC, ...
  MemoryDesc callers;     // layout and type that the caller's array has
  MemoryDesc primitives;  // layout and type that the primitive works on
  Role role = Role::input;
};

struct Binding {
  int argument = 0;
  const void* data = nullptr;  // writable if it is an output
};

class Primitive {
 public:
  // `operation` names the pass and its shape in errors.
  template <class Kind>
  static Primitive make(CpuContext& context, const std::string& operation, const typename Kind::primitive_desc& desc,
                        const std::vector<Operand>& operands) {
    return Primitive(context, operation, Kind(desc), desc.scratchpad_desc(), operands);
  }

  // One binding for each operand that is not discarded, in any order.
  void run(std::initializer_list<Binding> bindings);

 private:
  // A primitive with its argument list. Its scratchpad is at the start of the scratch memory.
  struct Step {
    Step() = default;
    Step(const dnnl::engine& engine, dnnl::primitive step_primitive, const MemoryDesc& scratchpad_desc,
         std::vector<dnnl_exec_arg_t> step_arguments);
    void execute(CpuContext& context);

    dnnl::primitive primitive;
    dnnl::memory scratchpad;
    std::vector<dnnl_exec_arg_t> arguments;
  };

  // An operand's memory in the layouts of the caller and of the primitive; the same memory if these are equal.
  struct Slot {
    int argument = 0;
    Operand::Role role = Operand::Role::input;
    dnnl::memory callers;
    dnnl::memory primitives;
    std::size_t scratch_offset = 0;
    std::optional<Step> reorder;
  };

  Primitive(CpuContext& context, const std::string& operation, const dnnl::primitive& primitive,
            const MemoryDesc& scratchpad, const std::vector<Operand>& operands);

  Slot make_slot(const Operand& operand);
  Step make_reorder(const dnnl::memory& from, const dnnl::memory& to) const;
  void place_in_scratch();
  void bind(Slot& slot, std::initializer_list<Binding> bindings);
  void run_reorders(Operand::Role role);

  CpuContext* context_;
  std::string operation_;
  std::vector<Slot> slots_;
  Step step_;
};

}  // namespace holdfast::compute
