// How a oneDNN primitive is made once and then runs on the callers' arrays. All that takes time or may fail
// (memory objects, reorders, places in scratch memory) is settled when it is made. A run binds pointers
// and computes, so a step allocates nothing.

#include "compute/cpu/primitive.h"

#include <fmt/format.h>
#include <algorithm>

#include "compute/cpu/thread_count.h"
#include "holdfast/base/error.h"

namespace holdfast::compute {

MemoryDesc float_desc(const Dims& dims, Tag tag) {
  return MemoryDesc(dims, dnnl::memory::data_type::f32, tag);
}

dnnl::primitive_attr scratch_attributes() {
  dnnl::primitive_attr attributes;
  // Otherwise each primitive would own scratch memory, though only one of them runs at a time.
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

static ErrorCode code_of(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return ErrorCode::out_of_memory;
    case dnnl_invalid_arguments:
      return ErrorCode::invalid_argument;
    case dnnl_unimplemented:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::unavailable;
  }
}

void with_named_errors(const std::string& operation, const std::function<void()>& action) {
  try {
    action();
  } catch (const dnnl::error& error) {
    throw Error(code_of(error.status), fmt::format("oneDNN failed in {}: {}", operation, error.what()));
  }
}

// Binding clears the padding of a blocked layout, which takes time. Scratch memory seldom moves, so it seldom happens.
static void bind_if_moved(dnnl::memory& memory, std::byte* place, dnnl::stream& stream) {
  if (memory.get_data_handle() != place) memory.set_data_handle(place, stream);
}

Primitive::Step::Step(const dnnl::engine& engine, dnnl::primitive step_primitive, const MemoryDesc& scratchpad_desc,
                      std::vector<dnnl_exec_arg_t> step_arguments)
    : primitive(std::move(step_primitive)),
      scratchpad(scratchpad_desc, engine, DNNL_MEMORY_NONE),
      arguments(std::move(step_arguments)) {
  if (scratchpad_desc.get_size() > 0) arguments.push_back({DNNL_ARG_SCRATCHPAD, scratchpad.get()});
}

void Primitive::Step::execute(CpuContext& context) {
  bind_if_moved(scratchpad, context.scratch(), context.stream());
  dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive.get(), context.stream().get(),
                                                 static_cast<int>(arguments.size()), arguments.data()),
                          "could not execute a primitive");
}

Primitive::Primitive(CpuContext& context, const std::string& operation, const dnnl::primitive& primitive,
                     const MemoryDesc& scratchpad, const std::vector<Operand>& operands)
    : context_(&context), operation_(operation) {
  std::vector<dnnl_exec_arg_t> arguments;
  for (const Operand& operand : operands) {
    slots_.push_back(make_slot(operand));
    arguments.push_back({operand.argument, slots_.back().primitives.get()});
  }
  step_ = Step(context.engine(), primitive, scratchpad, std::move(arguments));
  place_in_scratch();
}

Primitive::Slot Primitive::make_slot(const Operand& operand) {
  const dnnl::engine& engine = context_->engine();
  Slot slot;
  slot.argument = operand.argument;
  slot.role = operand.role;
  slot.primitives = dnnl::memory(operand.primitives, engine, DNNL_MEMORY_NONE);
  // One memory object under two names, unless a reorder stands between them.
  slot.callers = slot.primitives;
  if (operand.role == Operand::Role::discarded_output || operand.callers == operand.primitives) return slot;
  slot.callers = dnnl::memory(operand.callers, engine, DNNL_MEMORY_NONE);
  slot.reorder = operand.role == Operand::Role::input ? make_reorder(slot.callers, slot.primitives)
                                                      : make_reorder(slot.primitives, slot.callers);
  return slot;
}

Primitive::Step Primitive::make_reorder(const dnnl::memory& from, const dnnl::memory& to) const {
  const dnnl::engine& engine = context_->engine();
  const dnnl::reorder::primitive_desc desc(engine, from.get_desc(), engine, to.get_desc(), scratch_attributes());
  return Step(engine, dnnl::reorder(desc), desc.scratchpad_desc(),
              {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}});
}

// All scratchpads share the start of the memory, because steps run one after another. Reordered and discarded arrays
// follow, each in its own place.
void Primitive::place_in_scratch() {
  const auto round_up = [](std::size_t bytes) {
    constexpr std::size_t kAlignment = AlignedFloats::kAlignmentBytes;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::size_t end = step_.scratchpad.get_desc().get_size();
  for (const Slot& slot : slots_) {
    if (slot.reorder) end = std::max(end, slot.reorder->scratchpad.get_desc().get_size());
  }
  for (Slot& slot : slots_) {
    if (!slot.reorder && slot.role != Operand::Role::discarded_output) continue;
    slot.scratch_offset = round_up(end);
    end = slot.scratch_offset + slot.primitives.get_desc().get_size();
  }
  // The block is as large as the largest primitive needs: they all use it.
  context_->reserve_scratch(end);
}

void Primitive::bind(Slot& slot, std::initializer_list<Binding> bindings) {
  std::byte* const place = context_->scratch() + slot.scratch_offset;
  if (slot.role == Operand::Role::discarded_output) return bind_if_moved(slot.primitives, place, context_->stream());
  const auto binding =
      std::find_if(bindings.begin(), bindings.end(), [&](const Binding& b) { return b.argument == slot.argument; });
  // A run that leaves out an array would compute with that of the run before.
  HOLDFAST_ASSERT(binding != bindings.end() && binding->data != nullptr);
  // oneDNN has no handle of constants. The role of an operand says whether the primitive writes to it.
  slot.callers.set_data_handle(const_cast<void*>(binding->data), context_->stream());
  if (slot.reorder) bind_if_moved(slot.primitives, place, context_->stream());
}

void Primitive::run_reorders(Operand::Role role) {
  for (Slot& slot : slots_) {
    if (slot.reorder && slot.role == role) slot.reorder->execute(*context_);
  }
}

void Primitive::run(std::initializer_list<Binding> bindings) {
  // oneDNN divides sums by the number of threads that OpenMP has now, so it must be that of the back end.
  const ThreadCount threads(context_->threads());
  with_named_errors(operation_, [&] {
    for (Slot& slot : slots_) bind(slot, bindings);
    run_reorders(Operand::Role::input);
    step_.execute(*context_);
    run_reorders(Operand::Role::output);
    // The caller's arrays may change as soon as this returns, so no work may be left in the stream.
    context_->stream().wait();
  });
}

}  // namespace holdfast::compute
