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

// Where an element is: sample, channel, depth, row and column. Kernels have filters as samples.
using Place = std::array<std::int64_t, 5>;

// The channels are last in memory. Images have a depth of 1.
class Images {
 public:
  Images(const Descriptor& tensor, void* elements)
      : is_rounded_(tensor.integers.at(CUDNN_ATTR_TENSOR_DATA_TYPE).front() == CUDNN_DATA_BFLOAT16),
        elements_(elements) {
    const std::vector<std::int64_t>& extents = tensor.integers.at(CUDNN_ATTR_TENSOR_DIMENSIONS);
    std::copy_n(extents.begin(), 2, extents_.begin());
    std::copy_backward(extents.begin() + 2, extents.end(), extents_.end());
    const auto alignment = static_cast<std::uintptr_t>(tensor.integers.at(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT).front());
    library().was_misled |= reinterpret_cast<std::uintptr_t>(elements) % alignment != 0;
  }

  const Place& extents() const { return extents_; }
  std::size_t size() const {
    std::int64_t size = 1;
    for (const std::int64_t extent : extents_) size *= extent;
    return static_cast<std::size_t>(size);
  }
  std::size_t index_of(const Place& at) const {
    const std::int64_t line = (at[0] * extents_[2] + at[2]) * extents_[3] + at[3];
    return static_cast<std::size_t>((line * extents_[4] + at[4]) * extents_[1] + at[1]);
  }
  double at(const Place& place) const {
    const std::size_t index = index_of(place);
    if (!is_rounded_) return static_cast<const float*>(elements_)[index];
    return std::bit_cast<float>(compute::widen_bfloat16(static_cast<const std::uint16_t*>(elements_)[index]));
  }
  void set(std::size_t index, double value) const {
    const auto rounded = static_cast<float>(value);
    if (is_rounded_) {
      static_cast<std::uint16_t*>(elements_)[index] = compute::round_to_bfloat16(std::bit_cast<std::uint32_t>(rounded));
    } else {
      static_cast<float*>(elements_)[index] = rounded;
    }
  }

  // The places of one sample or filter.
  template <class Action>
  void for_each_of(std::int64_t sample, const Action& action) const {
    Place at = {sample};
    for (at[1] = 0; at[1] < extents_[1]; ++at[1]) {
      for (at[2] = 0; at[2] < extents_[2]; ++at[2]) {
        for (at[3] = 0; at[3] < extents_[3]; ++at[3]) {
          for (at[4] = 0; at[4] < extents_[4]; ++at[4]) action(at);
        }
      }
    }
  }

 private:
  Place extents_ = {1, 1, 1, 1, 1};
  bool is_rounded_;
  void* elements_;
};

// Each element of the result becomes the sum over all windows and elements of windows that belong to it. The groups are
// those of the channels: an image has all of them, and a kernel those of one group.
class Convolution {
 public:
  Convolution(const Descriptor& windows, const Images& images, const Images& kernel, const Images& outputs)
      : strides_(numbers_of(windows, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1)),
        padding_(numbers_of(windows, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0)),
        dilations_(numbers_of(windows, CUDNN_ATTR_CONVOLUTION_DILATIONS, 1)),
        group_filters_(kernel.extents()[0] * kernel.extents()[1] / images.extents()[1]),
        images_(images),
        kernel_(kernel),
        outputs_(outputs) {}

  void forward() const {
    sum_into(outputs_, [&](const Place& image, const Place& weight, const Place& output, Sums& sums) {
      sums[outputs_.index_of(output)] += images_.at(image) * kernel_.at(weight);
    });
  }

  void backward_data() const {
    sum_into(images_, [&](const Place& image, const Place& weight, const Place& output, Sums& sums) {
      sums[images_.index_of(image)] += kernel_.at(weight) * outputs_.at(output);
    });
  }

  void backward_filter() const {
    sum_into(kernel_, [&](const Place& image, const Place& weight, const Place& output, Sums& sums) {
      sums[kernel_.index_of(weight)] += images_.at(image) * outputs_.at(output);
    });
  }

 private:
  using Axes = std::array<std::int64_t, 3>;
  using Sums = std::vector<double>;

  static Axes numbers_of(const Descriptor& windows, cudnnBackendAttributeName_t name, std::int64_t missing) {
    const std::vector<std::int64_t>& numbers = windows.integers.at(name);
    Axes axes = {missing, missing, missing};
    std::copy_backward(numbers.begin(), numbers.end(), axes.end());
    return axes;
  }

  // Calls add(image, weight, output, sums) for the products of all windows, and writes the sums. Padding has no
  // products.
  template <class Action>
  void sum_into(const Images& result, const Action& add) const {
    Sums sums(result.size());
    for (std::int64_t sample = 0; sample < outputs_.extents()[0]; ++sample) {
      outputs_.for_each_of(sample, [&](const Place& output) {
        kernel_.for_each_of(output[1], [&](const Place& weight) {
          Place image = {sample, output[1] / group_filters_ * kernel_.extents()[1] + weight[1]};
          for (std::size_t axis = 0; axis < 3; ++axis) {
            const std::int64_t at =
                output[axis + 2] * strides_[axis] + weight[axis + 2] * dilations_[axis] - padding_[axis];
            if (at < 0 || at >= images_.extents()[axis + 2]) return;
            image[axis + 2] = at;
          }
          add(image, weight, output, sums);
        });
      });
    }
    for (std::size_t i = 0; i < sums.size(); ++i) result.set(i, sums[i]);
  }

  const Axes strides_;
  const Axes padding_;
  const Axes dilations_;
  const std::int64_t group_filters_;
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
