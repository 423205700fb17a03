#include "emulation/host_cudnn.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <string>

#include "compute/arithmetic/bfloat16.h"
#include "compute/cuda/runtime/cuda_context.h"

namespace holdfast::host_cudnn {
namespace {

struct Descriptor {
  cudnnBackendDescriptorType_t type{};
  std::map<int, std::vector<std::int64_t>> integers{};  // and enumerations
  std::map<int, std::vector<void*>> pointers{};         // and descriptors
  const Engine* engine = nullptr;                       // for descriptors that stand for an engine
};

Descriptor& own(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Descriptor*>(descriptor);
}

const Descriptor& inner(const Descriptor& descriptor, cudnnBackendAttributeName_t name) {
  return *static_cast<const Descriptor*>(descriptor.pointers.at(name).front());
}

bool is_of_pointers(cudnnBackendAttributeType_t type) {
  return type == CUDNN_TYPE_HANDLE || type == CUDNN_TYPE_VOID_PTR || type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
}

// Axes in the order sample, channel, row, column; the channels are last in memory.
class Images {
 public:
  Images(const Descriptor& tensor, void* elements)
      : extents_(tensor.integers.at(CUDNN_ATTR_TENSOR_DIMENSIONS)),
        is_rounded_(tensor.integers.at(CUDNN_ATTR_TENSOR_DATA_TYPE).front() == CUDNN_DATA_BFLOAT16),
        elements_(elements) {
    const auto alignment = static_cast<std::uintptr_t>(tensor.integers.at(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).front());
    library().was_misled |= reinterpret_cast<std::uintptr_t>(elements) % alignment != 0;
  }

  std::int64_t extent(std::size_t axis) const { return extents_[axis]; }
  double at(std::int64_t sample, std::int64_t channel, std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= extents_[2] || column < 0 || column >= extents_[3]) return 0;
    const std::size_t index = index_of(sample, channel, row, column);
    if (!is_rounded_) return static_cast<const float*>(elements_)[index];
    return std::bit_cast<float>(compute::widen_bfloat16(static_cast<const std::uint16_t*>(elements_)[index]));
  }
  void set(std::int64_t sample, std::int64_t channel, std::int64_t row, std::int64_t column, double value) const {
    const std::size_t index = index_of(sample, channel, row, column);
    const auto rounded = static_cast<float>(value);
    if (is_rounded_) {
      static_cast<std::uint16_t*>(elements_)[index] = compute::round_to_bfloat16(std::bit_cast<std::uint32_t>(rounded));
    } else {
      static_cast<float*>(elements_)[index] = rounded;
    }
  }

 private:
  std::size_t index_of(std::int64_t sample, std::int64_t channel, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(((sample * extents_[2] + row) * extents_[3] + column) * extents_[1] + channel);
  }

  std::vector<std::int64_t> extents_;
  bool is_rounded_;
  void* elements_;
};

// Each element of `to` becomes the sum of `term` over all windows and elements of windows that belong to it.
class Convolution {
 public:
  Convolution(const Descriptor& windows, const Images& images, const Images& kernel, const Images& outputs)
      : strides_(windows.integers.at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)),
        padding_(windows.integers.at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)),
        images_(images),
        kernel_(kernel),
        outputs_(outputs) {}

  void forward() const {
    for_each(outputs_, [&](std::int64_t n, std::int64_t k, std::int64_t y, std::int64_t x) {
      double sum = 0;
      for (std::int64_t c = 0; c < images_.extent(1); ++c) {
        for (std::int64_t r = 0; r < kernel_.extent(2); ++r) {
          for (std::int64_t s = 0; s < kernel_.extent(3); ++s) {
            sum += images_.at(n, c, row(y, r), column(x, s)) * kernel_.at(k, c, r, s);
          }
        }
      }
      outputs_.set(n, k, y, x, sum);
    });
  }

  void backward_data() const {
    std::map<std::array<std::int64_t, 4>, double> sums;
    for_each_product([&](std::int64_t n, std::int64_t k, std::int64_t y, std::int64_t x, std::int64_t c, std::int64_t r,
                         std::int64_t s) {
      sums[{n, c, row(y, r), column(x, s)}] += kernel_.at(k, c, r, s) * outputs_.at(n, k, y, x);
    });
    for_each(images_, [&](std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
      images_.set(n, c, h, w, sums[{n, c, h, w}]);
    });
  }

  void backward_filter() const {
    std::map<std::array<std::int64_t, 4>, double> sums;
    for_each_product([&](std::int64_t n, std::int64_t k, std::int64_t y, std::int64_t x, std::int64_t c, std::int64_t r,
                         std::int64_t s) {
      sums[{k, c, r, s}] += images_.at(n, c, row(y, r), column(x, s)) * outputs_.at(n, k, y, x);
    });
    for (const auto& [at, sum] : sums) kernel_.set(at[0], at[1], at[2], at[3], sum);
  }

 private:
  std::int64_t row(std::int64_t y, std::int64_t r) const { return y * strides_[0] + r - padding_[0]; }
  std::int64_t column(std::int64_t x, std::int64_t s) const { return x * strides_[1] + s - padding_[1]; }

  template <class Action>
  static void for_each(const Images& images, const Action& action) {
    for (std::int64_t n = 0; n < images.extent(0); ++n) {
      for (std::int64_t c = 0; c < images.extent(1); ++c) {
        for (std::int64_t y = 0; y < images.extent(2); ++y) {
          for (std::int64_t x = 0; x < images.extent(3); ++x) action(n, c, y, x);
        }
      }
    }
  }

  template <class Action>
  void for_each_product(const Action& action) const {
    for_each(outputs_, [&](std::int64_t n, std::int64_t k, std::int64_t y, std::int64_t x) {
      for (std::int64_t c = 0; c < images_.extent(1); ++c) {
        for (std::int64_t r = 0; r < kernel_.extent(2); ++r) {
          for (std::int64_t s = 0; s < kernel_.extent(3); ++s) action(n, k, y, x, c, r, s);
        }
      }
    });
  }

  const std::vector<std::int64_t> strides_;
  const std::vector<std::int64_t> padding_;
  const Images& images_;
  const Images& kernel_;
  const Images& outputs_;
};

// The array with the identity of the tensor.
void* array_of(const Descriptor& pack, const Descriptor& tensor) {
  const std::int64_t identity = tensor.integers.at(CUDNN_ATTR_TENSOR_UNIQUE_ID).front();
  const std::vector<std::int64_t>& identities = pack.integers.at(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto found = std::find(identities.begin(), identities.end(), identity);
  return pack.pointers.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)[static_cast<std::size_t>(found - identities.begin())];
}

void execute(const Descriptor& operation, const Descriptor& pack) {
  const auto run = [&](cudnnBackendAttributeName_t windows, cudnnBackendAttributeName_t images,
                       cudnnBackendAttributeName_t kernel, cudnnBackendAttributeName_t outputs,
                       void (Convolution::*pass)() const) {
    const auto bound = [&](cudnnBackendAttributeName_t name) {
      return Images(inner(operation, name), array_of(pack, inner(operation, name)));
    };
    const Images of_images = bound(images), of_kernel = bound(kernel), of_outputs = bound(outputs);
    (Convolution(inner(operation, windows), of_images, of_kernel, of_outputs).*pass)();
  };
  if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
    run(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, &Convolution::forward);
  } else if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
    run(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
        &Convolution::backward_data);
  } else {
    run(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
        &Convolution::backward_filter);
  }
}

// Reads descriptors inside another one into those that the caller has made.
std::int64_t fill(const Descriptor& descriptor, cudnnBackendAttributeName_t name, std::int64_t limit,
                  const cudnnBackendDescriptor_t* made) {
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE) {
    own(made[0]).engine = descriptor.engine;
    return 1;
  }
  const bool is_fallback = descriptor.integers.at(CUDNN_ATTR_ENGINEHEUR_MODE).front() != CUDNN_HEUR_MODE_A;
  const std::vector<Engine>& engines = is_fallback ? library().fallback : library().engines;
  const std::size_t count = std::min(engines.size(), static_cast<std::size_t>(limit));
  for (std::size_t i = 0; i < count; ++i) {
    own(made[i]).engine = &engines[i];
    own(made[i]).pointers = descriptor.pointers;
  }
  return static_cast<std::int64_t>(count);
}

template <class Note>
std::int64_t fill(const std::vector<Note>& notes, void* values) {
  std::copy(notes.begin(), notes.end(), static_cast<Note*>(values));
  return static_cast<std::int64_t>(notes.size());
}

}  // namespace

Library& library() {
  static Library library;
  return library;
}

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Descriptor{.type = type};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &own(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count, const void* values) {
  const auto elements = static_cast<std::size_t>(count);
  if (is_of_pointers(type)) {
    void* const* const pointers = static_cast<void* const*>(values);
    own(descriptor).pointers[name].assign(pointers, pointers + elements);
  } else if (type == CUDNN_TYPE_INT64) {
    const auto* const integers = static_cast<const std::int64_t*>(values);
    own(descriptor).integers[name].assign(integers, integers + elements);
  } else if (type != CUDNN_TYPE_FLOAT) {
    own(descriptor).integers[name] = {*static_cast<const int*>(values)};
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t limit, std::int64_t* count,
                                       void* values) {
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    *count = fill(own(descriptor), name, limit, static_cast<cudnnBackendDescriptor_t*>(values));
    return CUDNN_STATUS_SUCCESS;
  }
  const Engine& engine = *own(descriptor).engine;
  if (type == CUDNN_TYPE_NUMERICAL_NOTE) {
    *count = fill(engine.numerical_notes, values);
  } else if (type == CUDNN_TYPE_BEHAVIOR_NOTE) {
    *count = fill(engine.behavior_notes, values);
  } else {
    *count = 1;
    *static_cast<std::int64_t*>(values) =
        name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE ? engine.workspace_bytes : engine.index;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Descriptor& finalized = own(descriptor);
  if (finalized.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return CUDNN_STATUS_SUCCESS;
  finalized.engine = inner(finalized, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
  return finalized.engine->plan;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  const Descriptor& configuration = inner(own(plan), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Descriptor& graph = inner(configuration, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  const Engine& engine = *configuration.engine;
  std::memset(own(pack).pointers.at(CUDNN_ATTR_VARIANT_PACK_WORKSPACE).front(), 0xFF,
              static_cast<std::size_t>(engine.workspace_bytes));
  execute(inner(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS), own(pack));
  library().executions.push_back(engine.index);
  return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"

}  // namespace holdfast::host_cudnn

namespace holdfast::compute {

cudnnHandle_t CudaContext::cudnn() {
  return reinterpret_cast<cudnnHandle_t>(this);
}

void check_cudnn(cudnnStatus_t status, const std::string& call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw Error(ErrorCode::unavailable, call + " failed: " + std::to_string(static_cast<int>(status)));
}

}  // namespace holdfast::compute
