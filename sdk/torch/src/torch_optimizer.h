#pragma once

// An optimizer of LibTorch whose state lies in arenas of Holdfast. docs/decisions/torch.md

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/core/arena.h"
#include "holdfast/optim/learning_rate.h"

namespace holdfast::torch {

// What differs between the optimizers of LibTorch.
struct OptimizerKind;

class TorchOptimizer {
 public:
  // `parameters` are those of `layout`, which must outlive this object. Throws Error{unsupported} for an optimizer
  // other than SGD, Adam, AdamW, RMSprop and Adagrad, or for one with parameters that the module lacks.
  TorchOptimizer(std::unique_ptr<::torch::optim::Optimizer> optimizer, std::vector<at::Tensor> parameters,
                 const ArenaLayout& layout, std::optional<LearningRate> schedule);

  // The kind, and the options of each group with the names of its parameters. JSON.
  std::string configuration() const;
  // "exp_avg". Each has an arena of the layout, of which it uses the arrays that has_slot() says.
  std::vector<std::string> slot_names() const;
  bool has_slot(std::size_t slot, std::size_t parameter) const { return uses_[slot][parameter]; }

  // The arenas, in the memory of the host or of a device, must stay where they are.
  void view(std::span<float> parameters, std::vector<std::span<float>> slots, at::Device place);
  // An arena as it is before the first step.
  std::vector<float> initial_slot(std::size_t slot) const;

  // The rate of the first group in this step.
  float learning_rate(std::int64_t step) const;
  // Whether the rate changes from step to step.
  bool has_schedule() const { return schedule_ && !schedule_->constant(); }

  // Numbers in the memory of the host, one for each parameter.
  struct Counts {
    std::span<const float> used;  // 0 if no shard used it, and then it stays
    std::span<float> updates;     // how often it was updated
  };
  // One step, numbered from 1. `gradients` are an arena of the layout, which is read. On a device the step is queued.
  void step(std::int64_t step, std::span<const float> gradients, const Counts& counts,
            std::optional<float> learning_rate);

 private:
  struct Group {
    std::vector<std::size_t> parameters;  // by position in the layout
    double first_rate = 0;                // as the application set it
    // LibTorch updates a parameter as often as the group names it: parameters() lists tied ones twice.
  };

  // By version, LibTorch finds the state of a parameter by the address of its tensor, or by that address as a text.
  using StateKey = std::remove_cvref_t<decltype(std::declval<::torch::optim::Optimizer&>().state())>::key_type;

  // A part of a parameter that fits into a processor's cache, with its part of each slot.
  struct Piece {
    std::size_t parameter = 0;  // by position in the layout
    std::size_t begin = 0;      // in the arenas
    std::size_t count = 0;      // of floats
    at::Tensor tensor;
    StateKey key{};  // of the tensor; to write it as a text in each step takes time
    std::vector<at::Tensor> slots;
  };

  static StateKey key_of(const at::Tensor& parameter);
  // Makes an empty entry where there is none, which put_states() fills.
  std::unique_ptr<::torch::optim::OptimizerParamState>& state_of(const Piece& piece) {
    return optimizer_->state()[piece.key];
  }
  void find_groups();
  void set_rates(std::optional<double> rate);
  void put_states(std::span<const float> counts);
  void give_gradients(std::span<const float> gradients, std::span<const float> used);
  void take_states(const Counts& counts);

  std::unique_ptr<::torch::optim::Optimizer> optimizer_;
  std::vector<at::Tensor> parameters_;
  const ArenaLayout* layout_;
  std::optional<LearningRate> schedule_;
  const OptimizerKind* kind_ = nullptr;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;     // by parameter; kNoGroup
  std::vector<std::size_t> slot_kinds_;   // positions in the kind's slots of those that a group uses
  std::vector<std::vector<bool>> uses_;   // by slot and parameter
  std::vector<std::span<float>> arenas_;  // by slot
  at::Device place_ = at::kCPU;           // of the arenas
  std::vector<Piece> pieces_;             // of the parameters that are in a group
};

}  // namespace holdfast::torch
