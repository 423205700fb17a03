#pragma once

// Which arrays a module has, and a module of a worker that reads them where Holdfast keeps them.
// docs/decisions/torch.md

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/arena.h"

namespace holdfast::torch {

// An array that training does not change and that no arena can hold, because its elements are not f32.
struct Constant {
  std::string name;
  std::string dtype;  // of safetensors: "I64"
  std::vector<std::int64_t> shape;
  std::string bytes;  // in hexadecimal digits
};

// Names have '/' where LibTorch has '.', as all names of Holdfast.
struct ModuleArrays {
  ArenaLayout parameters;  // trained
  ArenaLayout frozen;      // parameters without requires_grad
  ArenaLayout buffers;     // of f32
  std::vector<std::string> counters;
  std::vector<std::int64_t> counter_starts;  // of each, as the module was made
  std::vector<Constant> constants;
  std::vector<std::pair<std::string, std::string>> aliases;  // a second name, and the first one
  std::vector<std::string> order;  // all names of parameters and buffers, as LibTorch has them

  // Throws Error{unsupported} for a type that cannot be trained here, and for tensors that overlap in memory.
  explicit ModuleArrays(const ::torch::nn::Module& module);
};

// A module whose parameters are views of arenas, and whose buffers are its own.
class WorkerModule {
 public:
  // Throws Error{invalid_argument} if the module has other arrays than `arrays`, which must outlive this object.
  WorkerModule(std::shared_ptr<::torch::nn::Module> module, const ModuleArrays& arrays);

  // Moves all that the module holds to a device, whose arenas the functions below then get. Call it before view().
  void move_to(at::Device place);
  // The arenas must stay where they are. Nothing is copied.
  void view(std::span<float> parameters, std::span<float> frozen);
  // Copies what the module holds now.
  void read_initial(std::span<float> parameters, std::span<float> frozen, std::span<float> buffers) const;
  // Throws Error{unsupported} if forward() registered a parameter or buffer, which the state then lacks.
  void require_arrays_as_made() const;
  // Before forward(): the state's buffers, and counters as after so many steps.
  void set_buffers(std::span<const float> buffers, std::int64_t steps);
  // After forward(): what each counter has counted since set_buffers().
  std::vector<at::Tensor> counted() const;
  // After forward(): what it may not have changed, in words; empty if there is nothing. `counted` are the values of
  // counted().
  std::string forbidden_change(std::span<const float> counted) const;
  // After forward(): the f32 buffers that differ from `before`, times `part`, then for each buffer `part` if it
  // differs. All else is left as it is. On a device it is queued.
  void write_changed_buffers(std::span<float> to, std::span<const float> before, float part) const;

  ::torch::nn::Module& module() { return *module_; }
  const std::shared_ptr<::torch::nn::Module>& pointer() const { return module_; }
  // Those that are trained, in the order of the arena.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }
  // eval(), or train() for those parts of the module that were in it when it was made.
  void set_training(bool training);

 private:
  void queue_changed_buffers(std::span<float> to, std::span<const float> before, float part) const;

  const ModuleArrays* arrays_;
  std::shared_ptr<::torch::nn::Module> module_;
  std::optional<at::Device> device_;  // after move_to()
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> frozen_;
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> counters_;
  std::vector<at::Tensor> constants_;
  std::int64_t steps_ = 0;
  std::vector<std::uint32_t> versions_;           // of parameters and frozen arrays, before forward()
  std::vector<std::uint32_t> constant_versions_;  // likewise
  // Each part, before its own parts, and whether it was in train() when the module was made.
  std::vector<std::pair<std::shared_ptr<::torch::nn::Module>, bool>> modes_;
  std::optional<bool> is_training_;
};

// Views of an arena as tensors, one for each entry.
std::vector<at::Tensor> views_of(const ArenaLayout& layout, std::span<float> arena, at::Device place = at::kCPU);

}  // namespace holdfast::torch
