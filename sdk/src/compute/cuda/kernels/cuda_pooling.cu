// Pooling on CUDA devices, by kernels of ours: ties of a maximum go to the first element, and averages leave
// padding out. A backward pass gathers, for each input, the windows that contain it. So sums have one order,
// and no atomics are needed. docs/decisions/device-arithmetic.md

#include <algorithm>

#include "compute/arithmetic/pooling.h"
#include "compute/cuda/kernels/cuda_operations.h"
#include "compute/cuda/runtime/array_alignment.h"
#include "compute/cuda/runtime/cuda_elements.cuh"

namespace holdfast::compute {
namespace {

// A thread computes a vector of channels, which share their place. Finding the place takes longer than moving the
// values.
template <int kCount>
struct alignas(kCount * sizeof(std::int32_t)) Positions {
  std::int32_t at[kCount];
};

// `positions` is null if there is no backward pass.
template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    pool_maximum(PoolingPlan plan, std::int64_t outputs, const float* input, float* output, std::int32_t* positions) {
  const std::int64_t index = first_element<kCount>();
  if (index >= outputs) return;
  const ImageElement element = plan.output(index);
  const float* const image = input + plan.begin_of_inputs(element);
  // The first of equal elements stays, in the order of the window.
  Maximum found[kCount];
  for_each_of_window(plan, element, [&](std::int32_t position) {
    const auto values = load<kCount>(image, position * plan.channels);
    for (int i = 0; i < kCount; ++i) found[i].take(values.at[i], position);
  });
  FloatVector<kCount> values;
  Positions<kCount> places;
  for (int i = 0; i < kCount; ++i) {
    values.at[i] = found[i].value;
    places.at[i] = found[i].position;
  }
  store(output, index, values);
  if (positions != nullptr) *reinterpret_cast<Positions<kCount>*>(positions + index) = places;
}

// The gradient of an input is the sum over the windows whose maximum it is, in the order of the windows.
template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    pool_maximum_backward(PoolingPlan plan, std::int64_t inputs, const float* output_gradient,
                          const std::int32_t* positions, float* input_gradient) {
  const std::int64_t index = first_element<kCount>();
  if (index >= inputs) return;
  const ImageElement element = plan.input(index);
  const std::int64_t begin = plan.begin_of_outputs(element);
  // In the form in which the forward pass has stored the places of maxima.
  const std::int32_t position = element.row * plan.columns.extent + element.column;
  FloatVector<kCount> sums = {};
  for_each_window_over(plan, element, [&](std::int32_t row, std::int32_t column) {
    const std::int64_t output = begin + (row * plan.columns.count + column) * plan.channels;
    const auto places = *reinterpret_cast<const Positions<kCount>*>(positions + output);
    const auto gradients = load<kCount>(output_gradient, output);
    for (int i = 0; i < kCount; ++i) {
      // Windows overlap, so one input may be the maximum of several. Others of its windows have their maximum
      // elsewhere.
      if (places.at[i] == position) sums.at[i] += gradients.at[i];
    }
  });
  store(input_gradient, index, sums);
}

template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    pool_average(PoolingPlan plan, std::int64_t outputs, const float* input, float* output) {
  const std::int64_t index = first_element<kCount>();
  if (index >= outputs) return;
  const ImageElement element = plan.output(index);
  const float* const image = input + plan.begin_of_inputs(element);
  FloatVector<kCount> sums = {};
  for_each_of_window(plan, element, [&](std::int32_t position) {
    const auto values = load<kCount>(image, position * plan.channels);
    for (int i = 0; i < kCount; ++i) sums.at[i] += values.at[i];
  });
  // Without the padding, as in Keras: a border is not darkened by zeros.
  const float count = elements_of_window(plan, element.row, element.column);
  for (int i = 0; i < kCount; ++i) sums.at[i] /= count;
  store(output, index, sums);
}

template <int kCount>
__global__ void __launch_bounds__(kElementThreads)
    pool_average_backward(PoolingPlan plan, std::int64_t inputs, const float* output_gradient, float* input_gradient) {
  const std::int64_t index = first_element<kCount>();
  if (index >= inputs) return;
  const ImageElement element = plan.input(index);
  const std::int64_t begin = plan.begin_of_outputs(element);
  FloatVector<kCount> sums = {};
  for_each_window_over(plan, element, [&](std::int32_t row, std::int32_t column) {
    // A window at the border has fewer elements, so each has a larger share.
    const float count = elements_of_window(plan, row, column);
    const auto gradients = load<kCount>(output_gradient, begin + (row * plan.columns.count + column) * plan.channels);
    for (int i = 0; i < kCount; ++i) sums.at[i] += gradients.at[i] / count;
  });
  store(input_gradient, index, sums);
}

std::string describe(const PoolingShape& shape) {
  return std::string(shape.kind == PoolingKind::maximum ? "maximum" : "average") + " pooling of [" +
         std::to_string(shape.samples) + ", " + std::to_string(shape.height) + ", " + std::to_string(shape.width) +
         ", " + std::to_string(shape.channels) + "], windows [" + std::to_string(shape.pool_height) + ", " +
         std::to_string(shape.pool_width) + "]";
}

class CudaPooling final : public PoolingOperation {
 public:
  CudaPooling(CudaContext& context, const PoolingShape& shape, Use use)
      : context_(context), kind_(shape.kind), plan_(shape), operation_(describe(shape)) {
    // An average needs no places: each element of a window has the same share.
    if (use.input_gradient && kind_ == PoolingKind::maximum) {
      position_memory_ = context.allocate(static_cast<std::size_t>(plan_.output_elements()) * sizeof(std::int32_t));
    }
  }

  void forward(const float* input, float* output) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    with_count({input, output}, [&]<int kCount>() {
      const std::int64_t outputs = plan_.output_elements();
      if (kind_ == PoolingKind::maximum) {
        start(pool_maximum<kCount>, outputs / kCount, plan_, outputs, input, output, positions());
      } else {
        start(pool_average<kCount>, outputs / kCount, plan_, outputs, input, output);
      }
    });
  }

  void backward(const float* output_gradient, float* input_gradient) override {
    const CudaContext::StreamLock lock = context_.lock_stream();
    with_count({output_gradient, input_gradient}, [&]<int kCount>() {
      const std::int64_t inputs = plan_.input_elements();
      if (kind_ == PoolingKind::maximum) {
        start(pool_maximum_backward<kCount>, inputs / kCount, plan_, inputs, output_gradient, positions(),
              input_gradient);
      } else {
        start(pool_average_backward<kCount>, inputs / kCount, plan_, inputs, output_gradient, input_gradient);
      }
    });
  }

 private:
  template <class Action>
  void with_count(std::initializer_list<const float*> arrays, const Action& action) const {
    // The widest access that channels and addresses allow. The bits are the same with each.
    if (can_take<4>(arrays)) return action.template operator()<4>();
    if (can_take<2>(arrays)) return action.template operator()<2>();
    action.template operator()<1>();
  }
  template <int kCount>
  bool can_take(std::initializer_list<const float*> arrays) const {
    return plan_.channels % kCount == 0 && std::all_of(arrays.begin(), arrays.end(), [](const float* array) {
             return is_aligned(array, kCount * sizeof(float));
           });
  }

  template <class Kernel, class... Arguments>
  void start(Kernel kernel, std::int64_t threads, const Arguments&... arguments) const {
    launch(kernel, block_count(threads, kElementThreads), kElementThreads, context_.stream(), arguments...);
    check_launch(operation_.c_str(), {{"threads", threads}});
  }

  std::int32_t* positions() const { return reinterpret_cast<std::int32_t*>(position_memory_.get()); }

  CudaContext& context_;
  const PoolingKind kind_;
  const PoolingPlan plan_;
  const std::string operation_;
  std::shared_ptr<std::byte[]> position_memory_;  // [sample, row, column, channel], i32: where each maximum was found
};

}  // namespace

std::unique_ptr<PoolingOperation> make_cuda_pooling(CudaContext& context, const PoolingShape& shape, Use use) {
  return std::make_unique<CudaPooling>(context, shape, use);
}

}  // namespace holdfast::compute
