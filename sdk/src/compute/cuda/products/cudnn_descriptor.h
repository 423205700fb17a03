#pragma once

// A descriptor of cuDNN's graph API: made, given its attributes, finalized, and given back with its owner. What it
// describes is said by the attributes' names, as the library's documentation has them.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compute/cuda/runtime/cuda_error.h"

namespace holdfast::compute {

class CudnnDescriptor {
 public:
  // `what` names it in errors: "the output of OPERATION".
  CudnnDescriptor(cudnnBackendDescriptorType_t type, const std::string& what);

  CudnnDescriptor& integers(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  CudnnDescriptor& integer(cudnnBackendAttributeName_t name, std::int64_t value) { return integers(name, {&value, 1}); }
  CudnnDescriptor& number(cudnnBackendAttributeName_t name, float value);
  CudnnDescriptor& handle(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  CudnnDescriptor& text(cudnnBackendAttributeName_t name, std::string_view value);
  CudnnDescriptor& pointers(cudnnBackendAttributeName_t name, std::span<void* const> values);
  // The other one is finalized, and kept by its owner.
  CudnnDescriptor& descriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  // Of one of the library's own enumerations, whose type is named too.
  template <class Enumeration>
  CudnnDescriptor& choice(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Enumeration value) {
    set(name, type, 1, &value);
    return *this;
  }

  void finalize();
  // False where the library cannot do what is described, or fails in making it ready; a lack of memory is thrown.
  bool finalize_if_possible();

  // Of a finalized one.
  std::int64_t integer_of(cudnnBackendAttributeName_t name) const;
  // Of an engine.
  std::vector<cudnnBackendNumericalNote_t> numerical_notes() const;
  bool is_compiled_at_run_time() const;
  // Descriptors inside this one, at most `limit`.
  std::vector<CudnnDescriptor> descriptors_of(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                              std::int64_t limit) const;

  cudnnBackendDescriptor_t get() const { return descriptor_.get(); }

 private:
  struct Release {
    using pointer = cudnnBackendDescriptor_t;
    void operator()(cudnnBackendDescriptor_t descriptor) const {
      static_cast<void>(cudnnBackendDestroyDescriptor(descriptor));
    }
  };

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  // How many values there are, of which `values` takes no more than `limit`.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t limit,
                    void* values) const;

  // Of an engine; as many kinds as the library has.
  template <class Note>
  std::vector<Note> notes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t kinds) const;

  std::string what_;
  std::unique_ptr<void, Release> descriptor_;
};

}  // namespace holdfast::compute
