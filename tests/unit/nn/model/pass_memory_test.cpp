// Compares the stated memory with what is allocated. Large arrays are aligned, so the functions that allocate aligned
// memory are replaced by ones that count, in the whole test program.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>

#include "compute/growing_floats.h"
#include "holdfast/holdfast.h"
#include "nn/model/description.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/refusal.h"

namespace {

std::atomic<std::size_t> aligned_bytes{0};  // allocated now

}  // namespace

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  void* const memory = std::aligned_alloc(step, (std::max<std::size_t>(size, 1) + step - 1) / step * step);
  if (memory == nullptr) throw std::bad_alloc();
  aligned_bytes += malloc_usable_size(memory);
  return memory;
}

void operator delete(void* memory, std::align_val_t) noexcept {
  if (memory != nullptr) aligned_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t alignment) noexcept {
  ::operator delete(memory, alignment);
}

namespace holdfast {
namespace {

std::shared_ptr<float[]> floats(std::size_t count) {
  return host_memory().allocate(count);
}

// All that is allocated when a pass has run. A plan frees nothing while it runs, so this is its peak.
std::size_t measured(const Model& model, std::int64_t samples, bool is_training) {
  const ModelDescription& description = *model.description();
  const std::size_t before = aligned_bytes;
  const std::size_t parameter_floats = description.parameters.float_count();
  const auto parameters = floats(parameter_floats);
  const std::span<const float> weights(parameters.get(), parameter_floats);
  const auto buffers = floats(description.buffers.float_count());
  std::vector<std::shared_ptr<float[]>> arrays;
  const auto batch_of = [&](const ModelArray& array) {
    arrays.push_back(floats(static_cast<std::size_t>(samples * array.spec.shape.element_count())));
    return arrays.back().get();
  };
  ModelProgram::Inputs inputs;
  for (const ModelArray& input : model.inputs()) inputs.push_back(reinterpret_cast<const std::byte*>(batch_of(input)));
  ModelProgram program(model, 1);
  if (!is_training) {
    program.run_inference(inputs, samples, weights, {buffers.get(), description.buffers.float_count()});
    return aligned_bytes - before;
  }
  const auto gradients = floats(parameter_floats);
  const auto contributions = floats(description.contribution_count());
  std::vector<const float*> output_gradients;
  for (const ModelArray& output : model.outputs()) output_gradients.push_back(batch_of(output));
  program.prepare_training(samples, {.seed = 1, .step = 0, .first_sample = 0});
  program.run_training(inputs, samples, weights);
  for (const BackwardPart& part : program.backward_parts(samples, 1)) {
    program.backward_part(part, samples,
                          {.inputs = inputs,
                           .output_gradients = output_gradients,
                           .parameters = weights,
                           .gradients = {gradients.get(), parameter_floats},
                           .contributions = {contributions.get(), description.contribution_count()}});
  }
  return aligned_bytes - before;
}

void expect_near(std::size_t stated, std::size_t allocated, const char* what) {
  EXPECT_NEAR(static_cast<double>(stated), static_cast<double>(allocated), 0.1 * static_cast<double>(allocated))
      << what;
}

void expect_stated_as_measured(const Model& model, std::int64_t samples) {
  expect_near(model.training_memory(samples).total(), measured(model, samples, true), "training");
  expect_near(model.prediction_memory(samples).total(), measured(model, samples, false), "prediction");
}

TEST(PassMemory, IsWithinATenthOfWhatAGraphAllocates) {
  const Value x = input({64});
  Value y = x;
  for (int layer = 0; layer < 6; ++layer) {
    y = y + Dropout{0.1F}(gelu(Dense{64}(LayerNormalization{}(y))));
  }
  expect_stated_as_measured(Model(x, Dense{10}(BatchNormalization{}(y))), 50);
  expect_stated_as_measured(Model(x, Dense{10}(BatchNormalization{}(y))), 1);
}

TEST(PassMemory, IsWithinATenthOfWhatSeveralInputsAndOutputsAllocate) {
  const Value a = input({300}), b = input({200});
  const Value joined = Dense{100, {.activation = Activation::relu}}(concatenate({a, b}));
  expect_stated_as_measured(Model({a, b}, {Dense{5}(joined), Dense{700}(joined)}), 33);
}

TEST(PassMemory, IsWithinATenthOfWhatAChainWithPoolingAllocates) {
  const Sequential model{Input{32, 32, 8}, MaxPooling2D{2}, BatchNormalization{}, Flatten{}, Dense{300}, Dense{10}};
  expect_stated_as_measured(model, 16);
}

TEST(PassMemory, IsWithinATenthOfWhatNormalizationsWithoutParametersAllocate) {
  const Sequential model{Input{4096}, BatchNormalization{{.has_scale = false, .has_center = false}}};
  EXPECT_GE(model.training_memory(1).workspace, 2 * 4096 * sizeof(float));
  expect_stated_as_measured(model, 1);
}

TEST(PassMemory, IsWithinATenthOfWhatConvolutionsAllocate) {
  const Sequential model{Input{28, 28, 3}, Conv2D{16, 5, {.activation = Activation::relu}},
                         MaxPooling2D{2},  Conv2D{32, 3},
                         Flatten{},        Dense{10}};
  EXPECT_GT(model.training_memory(64).workspace, 0U);
  expect_stated_as_measured(model, 64);
}

TEST(PassMemory, GrowsWithTheSamplesAndKeepsTheWeights) {
  const Sequential model{Input{8}, Dense{4}, BatchNormalization{}};

  EXPECT_EQ(model.training_memory(64).samples, 2 * model.training_memory(32).samples);
  EXPECT_EQ(model.training_memory(64).weights, model.training_memory(32).weights);
  EXPECT_GT(model.training_memory(64).arrays, model.training_memory(32).arrays);
  EXPECT_GT(model.training_memory(64).total(), model.prediction_memory(64).total());
  EXPECT_EQ(model.prediction_memory(64).gradients, 0U);
}

TEST(PassMemory, IsRefusedForNoSamplesAndForMoreThanAnyMemoryHolds) {
  const Sequential model{Input{8}, Dense{4}};

  EXPECT_NE(refusal([&] { model.training_memory(0); }), "");
  EXPECT_NE(refusal([&] { model.prediction_memory(std::int64_t{1} << 60); }), "");
}

}  // namespace
}  // namespace holdfast
