#pragma once

// A descriptor of cuDNN's graph API. It is made, gets its attributes, is finalized, and is destroyed with this object.
// The names of attributes are those of the library's documentation.

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
  // The other descriptor must be finalized, and must outlive this one.
  CudnnDescriptor& descriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& value);
  // Sets an attribute of one of the library's enumerations, whose type must be named too.
  template <class Enumeration>
  CudnnDescriptor& choice(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, Enumeration value) {
    set(name, type, 1, &value);
    return *this;
  }

  void finalize();
  // Returns false if the library does not support the description, or fails to prepare it. Throws if memory is missing.
  bool finalize_if_possible();

  // Reads an attribute of a finalized descriptor.
  std::int64_t integer_of(cudnnBackendAttributeName_t name) const;
  // Reads the notes of an engine.
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
  // Reads up to `limit` values and returns how many there are.
  std::int64_t read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t limit,
                    void* values) const;

  // The notes of an engine. `kinds` is how many kinds of notes the library has.
  template <class Note>
  std::vector<Note> notes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t kinds) const;

  std::string what_;
  std::unique_ptr<void, Release> descriptor_;
};

}  // namespace holdfast::compute
