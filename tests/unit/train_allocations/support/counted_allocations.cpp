#include "unit/train_allocations/support/counted_allocations.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace holdfast {
namespace {

constexpr int kStacks = 12;
constexpr int kDepth = 12;

struct Stack {
  std::array<void*, kDepth> callers{};
  int depth = 0;
};

std::atomic<bool> is_counting = false;
std::atomic<int> running_functions_of_onednn = 0;
std::atomic<std::int64_t> own_allocations = 0;
std::atomic<std::int64_t> allocations_of_onednn = 0;
std::array<Stack, kStacks> first_stacks;

void count_allocation() {
  if (!is_counting) return;
  // oneDNN works with threads of OpenMP, so the mark cannot be one of the thread.
  if (running_functions_of_onednn > 0) {
    ++allocations_of_onednn;
    return;
  }
  const std::int64_t number = own_allocations++;
  if (number >= kStacks) return;
  Stack& stack = first_stacks[static_cast<std::size_t>(number)];
  stack.depth = backtrace(stack.callers.data(), kDepth);
}

void* counted_or_null(std::size_t bytes) {
  count_allocation();
  return std::malloc(std::max<std::size_t>(bytes, 1));
}

void* counted_or_null(std::size_t bytes, std::align_val_t alignment) {
  count_allocation();
  const auto step = static_cast<std::size_t>(alignment);
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + step - 1) / step * step;
  return std::aligned_alloc(step, whole);
}

template <class... Alignment>
void* counted(std::size_t bytes, Alignment... alignment) {
  if (void* const memory = counted_or_null(bytes, alignment...)) return memory;
  throw std::bad_alloc();
}

// Calls oneDNN's own function of this name.
template <class Function, class... Arguments>
dnnl_status_t call_onednn(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  ++running_functions_of_onednn;
  const dnnl_status_t status = function(arguments...);
  --running_functions_of_onednn;
  return status;
}

}  // namespace

CountedAllocations::CountedAllocations() {
  // The first call loads a library, which allocates.
  std::array<void*, 1> caller{};
  backtrace(caller.data(), 1);
  first_stacks = {};
  own_allocations = 0;
  allocations_of_onednn = 0;
  is_counting = true;
}

AllocationCounts CountedAllocations::stop() {
  is_counting = false;
  return {.own = own_allocations, .onednn = allocations_of_onednn};
}

std::string CountedAllocations::callers() {
  std::string text;
  for (const Stack& stack : first_stacks) {
    if (stack.depth == 0) continue;
    const std::unique_ptr<char*, decltype(&std::free)> names(backtrace_symbols(stack.callers.data(), stack.depth),
                                                             std::free);
    text += "an allocation, called from\n";
    for (int i = 0; i < stack.depth; ++i) text.append("  ").append(names.get()[i]).append("\n");
  }
  return text;
}

}  // namespace holdfast

void* operator new(std::size_t bytes) {
  return holdfast::counted(bytes);
}
void* operator new[](std::size_t bytes) {
  return holdfast::counted(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return holdfast::counted(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return holdfast::counted(bytes, alignment);
}
// std::stable_sort asks for its buffer with these.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return holdfast::counted_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return holdfast::counted_or_null(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return holdfast::counted_or_null(bytes, alignment);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return holdfast::counted_or_null(bytes, alignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

extern "C" dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream, int count,
                                                const dnnl_exec_arg_t* arguments) {
  return holdfast::call_onednn<decltype(&dnnl_primitive_execute)>("dnnl_primitive_execute", primitive, stream, count,
                                                                  arguments);
}

extern "C" dnnl_status_t dnnl_memory_set_data_handle_v2(dnnl_memory_t memory, void* handle, dnnl_stream_t stream) {
  return holdfast::call_onednn<decltype(&dnnl_memory_set_data_handle_v2)>("dnnl_memory_set_data_handle_v2", memory,
                                                                          handle, stream);
}

extern "C" dnnl_status_t dnnl_stream_wait(dnnl_stream_t stream) {
  return holdfast::call_onednn<decltype(&dnnl_stream_wait)>("dnnl_stream_wait", stream);
}
