// Wraps the descriptors of cuDNN's graph API, whose attributes are untyped arrays. While an engine is looked for, a
// descriptor that the library cannot finalize is not an error: the next engine is tried. A lack of memory is an error,
// because it may pass, and the choice would depend on the moment. See docs/decisions/convolution.md.

#include "compute/cuda/products/cudnn_descriptor.h"

#include <fmt/format.h>
#include <algorithm>

#include "holdfast/base/log.h"

namespace holdfast::compute {

CudnnDescriptor::CudnnDescriptor(cudnnBackendDescriptorType_t type, const std::string& what) : what_(what) {
  cudnnBackendDescriptor_t made = nullptr;
  check_cudnn(cudnnBackendCreateDescriptor(type, &made), "cudnnBackendCreateDescriptor for " + what);
  descriptor_.reset(made);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                          const void* values) {
  const cudnnStatus_t status = cudnnBackendSetAttribute(descriptor_.get(), name, type, count, values);
  // The text of the error is only made if there is one: attributes are set in each run.
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_cudnn(status, fmt::format("cudnnBackendSetAttribute {} of {}", static_cast<int>(name), what_));
}

std::int64_t CudnnDescriptor::read(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                   std::int64_t limit, void* values) const {
  std::int64_t count = 0;
  check_cudnn(cudnnBackendGetAttribute(descriptor_.get(), name, type, limit, &count, values),
              fmt::format("cudnnBackendGetAttribute {} of {}", static_cast<int>(name), what_));
  // `count` is what the library has, which may be more than it wrote.
  return std::min(count, limit);
}

CudnnDescriptor& CudnnDescriptor::integers(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
  set(name, CUDNN_TYPE_INT64, static_cast<std::int64_t>(values.size()), values.data());
  return *this;
}

CudnnDescriptor& CudnnDescriptor::number(cudnnBackendAttributeName_t name, float value) {
  set(name, CUDNN_TYPE_FLOAT, 1, &value);
  return *this;
}

CudnnDescriptor& CudnnDescriptor::handle(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  set(name, CUDNN_TYPE_HANDLE, 1, &value);
  return *this;
}

CudnnDescriptor& CudnnDescriptor::text(cudnnBackendAttributeName_t name, std::string_view value) {
  set(name, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(value.size()), value.data());
  return *this;
}

CudnnDescriptor& CudnnDescriptor::pointers(cudnnBackendAttributeName_t name, std::span<void* const> values) {
  set(name, CUDNN_TYPE_VOID_PTR, static_cast<std::int64_t>(values.size()), values.data());
  return *this;
}

CudnnDescriptor& CudnnDescriptor::descriptor(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
  const cudnnBackendDescriptor_t inner = value.get();
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &inner);
  return *this;
}

void CudnnDescriptor::finalize() {
  check_cudnn(cudnnBackendFinalize(descriptor_.get()), "cudnnBackendFinalize of " + what_);
}

bool CudnnDescriptor::finalize_if_possible() {
  const cudnnStatus_t status = cudnnBackendFinalize(descriptor_.get());
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED) {
    check_cudnn(status, "cudnnBackendFinalize of " + what_);
  }
  // An engine that does not support a case is an answer. Any other failure is told, since the engine that replaces this
  // one may have other bits.
  if (status != CUDNN_STATUS_SUCCESS && CUDNN_STATUS_CATEGORY(static_cast<int>(status)) != CUDNN_STATUS_NOT_SUPPORTED) {
    log(LogLevel::warning,
        fmt::format(
            "cuDNN failed with status {} in {}, so another engine of it, or none, is used; on a machine where this "
            "does not fail, the bits may differ",
            static_cast<int>(status), what_));
  }
  return status == CUDNN_STATUS_SUCCESS;
}

std::int64_t CudnnDescriptor::integer_of(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  read(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

template <class Note>
std::vector<Note> CudnnDescriptor::notes(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                         std::int64_t kinds) const {
  std::vector<Note> notes(static_cast<std::size_t>(kinds));
  // The library tells how many there are only after the call.
  notes.resize(static_cast<std::size_t>(read(name, type, kinds, notes.data())));
  return notes;
}

std::vector<cudnnBackendNumericalNote_t> CudnnDescriptor::numerical_notes() const {
  return notes<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

bool CudnnDescriptor::is_compiled_at_run_time() const {
  const auto all = notes<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                                     CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return std::find(all.begin(), all.end(), CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != all.end();
}

std::vector<CudnnDescriptor> CudnnDescriptor::descriptors_of(cudnnBackendAttributeName_t name,
                                                             cudnnBackendDescriptorType_t type,
                                                             std::int64_t limit) const {
  // The library fills in descriptors that the caller has made.
  std::vector<CudnnDescriptor> inner;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < limit; ++i) {
    raw.push_back(inner.emplace_back(type, fmt::format("a part of {}", what_)).get());
  }
  const std::int64_t count = read(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, limit, raw.data());
  // There may be fewer than the limit, and the rest were never filled in.
  inner.erase(inner.begin() + count, inner.end());
  return inner;
}

}  // namespace holdfast::compute
