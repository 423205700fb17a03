// LibTorch makes the state of a parameter in the first step that updates it. Here that step runs as LibTorch wrote it,
// so that its bits are LibTorch's; what it made is then copied into arenas, of which later steps get views. Counters of
// steps are numbers of the state as well: a parameter that a step does not use is not counted. The optimizer gets
// pieces of parameters, because each of its operations reads and writes all of an array. docs/decisions/torch.md

#include "torch_optimizer.h"

#include <ATen/Functions.h>
#include <fmt/format.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "holdfast/base/error.h"
#include "torch_device.h"

namespace holdfast::torch {

namespace optim = ::torch::optim;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

// A parameter, its gradient, two slots and what an operation returns fit into the second cache of most processors. A
// multiple of all vectors, so that an element is computed by the same instructions as in the whole array.
constexpr std::size_t kPieceFloats = std::size_t{1} << 15;

// A tensor of LibTorch's state of a parameter, and whether an optimizer with these options has it.
struct SlotKind {
  const char* name;
  bool (*is_used)(const optim::OptimizerOptions&);
  at::Tensor& (*tensor)(optim::OptimizerParamState&);
};

// Unchecked: the class of the optimizer was compared, and its options are of the class that belongs to it.
template <class Options>
const Options& options_as(const optim::OptimizerOptions& options) {
  return static_cast<const Options&>(options);
}

}  // namespace

struct OptimizerKind {
  const char* name;
  bool (*is_of)(const optim::Optimizer&);
  std::vector<SlotKind> slots;
  // A state after so many updates of its parameter.
  std::unique_ptr<optim::OptimizerParamState> (*make_state)(std::int64_t updates);
  void (*set_updates)(optim::OptimizerParamState& state, std::int64_t updates);
  // Adagrad makes its states with the optimizer.
  bool has_states_at_first;
  float (*initial_value)(const optim::OptimizerOptions&);
  Json (*options)(const optim::OptimizerOptions&);
};

namespace {

bool always(const optim::OptimizerOptions&) {
  return true;
}

float zero(const optim::OptimizerOptions&) {
  return 0;
}

// A state of SGD counts no updates, so it has no step().
template <class State>
std::unique_ptr<optim::OptimizerParamState> state_after(std::int64_t updates) {
  auto state = std::make_unique<State>();
  if constexpr (requires { state->step(updates); }) state->step(updates);
  return state;
}

template <class State>
void set_updates_of(optim::OptimizerParamState& state, std::int64_t updates) {
  if constexpr (requires(State & of) { of.step(updates); }) static_cast<State&>(state).step(updates);
}

// TORCH_ARG declares the reader and the writer of a member under one name.
#define HOLDFAST_SLOT(State, member) \
  [](optim::OptimizerParamState& state) -> at::Tensor& { return static_cast<optim::State&>(state).member(); }

// Names of slots and options are LibTorch's. Savepoints and run.json hold them, so they do not change.
OptimizerKind sgd_kind() {
  return {
      "SGD",
      [](const optim::Optimizer& optimizer) { return typeid(optimizer) == typeid(optim::SGD); },
      {{"momentum_buffer",
        [](const optim::OptimizerOptions& options) { return options_as<optim::SGDOptions>(options).momentum() != 0; },
        HOLDFAST_SLOT(SGDParamState, momentum_buffer)}},
      state_after<optim::SGDParamState>,
      set_updates_of<optim::SGDParamState>,
      false,
      zero,
      [](const optim::OptimizerOptions& options) {
        const auto& of = options_as<optim::SGDOptions>(options);
        return Json{{"lr", of.lr()},
                    {"momentum", of.momentum()},
                    {"dampening", of.dampening()},
                    {"weight_decay", of.weight_decay()},
                    {"nesterov", of.nesterov()}};
      }};
}

template <class Options>
Json adam_options(const optim::OptimizerOptions& options) {
  const auto& of = options_as<Options>(options);
  return Json{{"lr", of.lr()},   {"beta_1", std::get<0>(of.betas())}, {"beta_2", std::get<1>(of.betas())},
              {"eps", of.eps()}, {"weight_decay", of.weight_decay()}, {"amsgrad", of.amsgrad()}};
}

// typeid() and not a cast: a class that derives from Adam may keep a state that nobody here knows.
OptimizerKind adam_kind() {
  return {"Adam",
          [](const optim::Optimizer& optimizer) { return typeid(optimizer) == typeid(optim::Adam); },
          {{"exp_avg", always, HOLDFAST_SLOT(AdamParamState, exp_avg)},
           {"exp_avg_sq", always, HOLDFAST_SLOT(AdamParamState, exp_avg_sq)},
           {"max_exp_avg_sq",
            [](const optim::OptimizerOptions& options) { return options_as<optim::AdamOptions>(options).amsgrad(); },
            HOLDFAST_SLOT(AdamParamState, max_exp_avg_sq)}},
          state_after<optim::AdamParamState>,
          set_updates_of<optim::AdamParamState>,
          false,
          zero,
          adam_options<optim::AdamOptions>};
}

OptimizerKind adamw_kind() {
  return {"AdamW",
          [](const optim::Optimizer& optimizer) { return typeid(optimizer) == typeid(optim::AdamW); },
          {{"exp_avg", always, HOLDFAST_SLOT(AdamWParamState, exp_avg)},
           {"exp_avg_sq", always, HOLDFAST_SLOT(AdamWParamState, exp_avg_sq)},
           {"max_exp_avg_sq",
            [](const optim::OptimizerOptions& options) { return options_as<optim::AdamWOptions>(options).amsgrad(); },
            HOLDFAST_SLOT(AdamWParamState, max_exp_avg_sq)}},
          state_after<optim::AdamWParamState>,
          set_updates_of<optim::AdamWParamState>,
          false,
          zero,
          adam_options<optim::AdamWOptions>};
}

// Each kind asks as LibTorch's own step does: RMSprop for a momentum above 0, SGD for one other than 0.
OptimizerKind rmsprop_kind() {
  return {
      "RMSprop",
      [](const optim::Optimizer& optimizer) { return typeid(optimizer) == typeid(optim::RMSprop); },
      {{"square_avg", always, HOLDFAST_SLOT(RMSpropParamState, square_avg)},
       {"momentum_buffer",
        [](const optim::OptimizerOptions& options) {
          return options_as<optim::RMSpropOptions>(options).momentum() > 0;
        },
        HOLDFAST_SLOT(RMSpropParamState, momentum_buffer)},
       {"grad_avg",
        [](const optim::OptimizerOptions& options) { return options_as<optim::RMSpropOptions>(options).centered(); },
        HOLDFAST_SLOT(RMSpropParamState, grad_avg)}},
      state_after<optim::RMSpropParamState>,
      set_updates_of<optim::RMSpropParamState>,
      false,
      zero,
      [](const optim::OptimizerOptions& options) {
        const auto& of = options_as<optim::RMSpropOptions>(options);
        return Json{{"lr", of.lr()},
                    {"alpha", of.alpha()},
                    {"eps", of.eps()},
                    {"weight_decay", of.weight_decay()},
                    {"momentum", of.momentum()},
                    {"centered", of.centered()}};
      }};
}

// Its sums exist from the start and need not be 0, so even the first step gets a state.
OptimizerKind adagrad_kind() {
  return {"Adagrad",
          [](const optim::Optimizer& optimizer) { return typeid(optimizer) == typeid(optim::Adagrad); },
          {{"sum", always, HOLDFAST_SLOT(AdagradParamState, sum)}},
          state_after<optim::AdagradParamState>,
          set_updates_of<optim::AdagradParamState>,
          true,
          [](const optim::OptimizerOptions& options) {
            return static_cast<float>(options_as<optim::AdagradOptions>(options).initial_accumulator_value());
          },
          [](const optim::OptimizerOptions& options) {
            const auto& of = options_as<optim::AdagradOptions>(options);
            return Json{{"lr", of.lr()},
                        {"lr_decay", of.lr_decay()},
                        {"weight_decay", of.weight_decay()},
                        {"initial_accumulator_value", of.initial_accumulator_value()},
                        {"eps", of.eps()}};
          }};
}

#undef HOLDFAST_SLOT

// One list for the process, whose pointers to functions never change.
const OptimizerKind& kind_of(const optim::Optimizer& optimizer) {
  static const std::vector<OptimizerKind> kinds{sgd_kind(), adam_kind(), adamw_kind(), rmsprop_kind(), adagrad_kind()};
  for (const OptimizerKind& kind : kinds) {
    if (kind.is_of(optimizer)) return kind;
  }
  throw Error(
      ErrorCode::unsupported,
      "the optimizer of the module is of a class whose state Holdfast cannot save; give SGD, Adam, AdamW, RMSprop "
      "or Adagrad of torch::optim, or an optimizer of Holdfast (holdfast/optim/)");
}

template <class Key>
Key address_as(const at::Tensor& tensor) {
  if constexpr (std::is_same_v<Key, std::string>) {
    std::ostringstream address;
    address << tensor.unsafeGetTensorImpl();
    return address.str();
  } else {
    return tensor.unsafeGetTensorImpl();
  }
}

}  // namespace

TorchOptimizer::TorchOptimizer(std::unique_ptr<optim::Optimizer> optimizer, std::vector<at::Tensor> parameters,
                               const ArenaLayout& layout, std::optional<LearningRate> schedule)
    : optimizer_(std::move(optimizer)),
      parameters_(std::move(parameters)),
      layout_(&layout),
      schedule_(std::move(schedule)) {
  if (optimizer_ == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "the function TrainableOptions::optimizer returned no optimizer; return one of torch::optim");
  }
  kind_ = &kind_of(*optimizer_);
  find_groups();
  if (std::ranges::all_of(group_of_, [](std::size_t group) { return group == kNoGroup; })) {
    throw Error(
        ErrorCode::invalid_argument,
        "the optimizer of the module has no parameter that requires a gradient, so it would train nothing; make "
        "it with parameters of the module that the function TrainableOptions::optimizer gets");
  }
  // By parameter, since groups may have different options: momentum in one of them makes slots for its parameters
  // alone.
  for (std::size_t slot = 0; slot < kind_->slots.size(); ++slot) {
    std::vector<bool> uses;
    for (const std::size_t group : group_of_) {
      uses.push_back(group != kNoGroup && kind_->slots[slot].is_used(optimizer_->param_groups()[group].options()));
    }
    if (std::ranges::find(uses, true) == uses.end()) continue;
    slot_kinds_.push_back(slot);
    uses_.push_back(std::move(uses));
  }
  // set_rates() keeps the ratio of each group's rate to that of the first.
  if (groups_.size() > 1 && groups_.front().first_rate == 0) {
    throw Error(
        ErrorCode::invalid_argument,
        "the first group of the optimizer has the learning rate 0, so the others have no ratio to it; give the group a "
        "rate above 0, or leave its parameters out");
  }
}

TorchOptimizer::StateKey TorchOptimizer::key_of(const at::Tensor& parameter) {
  return address_as<StateKey>(parameter);
}

// Positions in the layout stand for tensors, since view() gives the optimizer other tensors.
void TorchOptimizer::find_groups() {
  std::unordered_map<const void*, std::size_t> positions;
  for (std::size_t i = 0; i < parameters_.size(); ++i) positions.emplace(parameters_[i].unsafeGetTensorImpl(), i);
  group_of_.assign(parameters_.size(), kNoGroup);
  for (const optim::OptimizerParamGroup& group : optimizer_->param_groups()) {
    Group found{.parameters = {}, .first_rate = group.options().get_lr()};
    for (const at::Tensor& parameter : group.params()) {
      // One that requires no gradient is never updated.
      if (!parameter.requires_grad()) continue;
      const auto position = positions.find(parameter.unsafeGetTensorImpl());
      if (position == positions.end()) {
        throw Error(ErrorCode::invalid_argument,
                    "the optimizer of the module has a parameter that the module does not have; make it with "
                    "parameters of the module that the function TrainableOptions::optimizer gets");
      }
      // The group under way has the number groups_.size().
      std::size_t& of_parameter = group_of_[position->second];
      if (of_parameter != kNoGroup && of_parameter != groups_.size()) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("the parameter \"{}\" is in two groups of the optimizer; name it in one of them",
                                layout_->entries()[position->second].name));
      }
      of_parameter = groups_.size();
      // Twice for a tied parameter, since LibTorch then updates it twice in a step.
      found.parameters.push_back(position->second);
    }
    groups_.push_back(std::move(found));
  }
}

// The rates are those that the application set: set_rates() changes those of the optimizer in each step.
std::string TorchOptimizer::configuration() const {
  Json groups = Json::array();
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    Json options = kind_->options(optimizer_->param_groups()[group].options());
    options["lr"] = groups_[group].first_rate;
    Json names = Json::array();
    for (const std::size_t parameter : groups_[group].parameters) names.push_back(layout_->entries()[parameter].name);
    options["parameters"] = std::move(names);
    groups.push_back(std::move(options));
  }
  Json text = {{"class_name", fmt::format("torch::optim::{}", kind_->name)}, {"groups", std::move(groups)}};
  // A schedule replaces the rates of the groups, so a resume has to compare it too.
  if (schedule_) text["learning_rate"] = Json::parse(schedule_->configuration());
  return text.dump();
}

// Slots that no group uses are left out, so that savepoints hold no arrays of zeros.
std::vector<std::string> TorchOptimizer::slot_names() const {
  std::vector<std::string> names;
  for (const std::size_t kind : slot_kinds_) names.emplace_back(kind_->slots[kind].name);
  return names;
}

void TorchOptimizer::view(std::span<float> parameters, std::vector<std::span<float>> slots, at::Device place) {
  arenas_ = std::move(slots);
  place_ = place;
  pieces_.clear();
  // What LibTorch made for the parameters of the application.
  optimizer_->state().clear();
  const auto part = [&](std::span<float> arena, const Piece& piece) {
    return tensor_at(arena.subspan(piece.begin).data(), {static_cast<std::int64_t>(piece.count)}, at::kFloat, place_);
  };
  std::vector<std::vector<at::Tensor>> of_parameter(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (group_of_[i] == kNoGroup) continue;
    const ArenaEntry& entry = layout_->entries()[i];
    // A device reads from its memory anyway, and each piece would cost it kernels of its own.
    const std::size_t most = place_.is_cpu() ? kPieceFloats : entry.element_count();
    for (std::size_t first = 0; first < entry.element_count(); first += most) {
      Piece piece{.parameter = i,
                  .begin = entry.offset + first,
                  .count = std::min(most, entry.element_count() - first),
                  .tensor = {},
                  .key = {},
                  .slots = {}};
      piece.tensor = part(parameters, piece);
      // LibTorch finds the state of a tensor by the address of its implementation, which piece.tensor keeps alive.
      piece.key = key_of(piece.tensor);
      for (const std::span<float> arena : arenas_) piece.slots.push_back(part(arena, piece));
      of_parameter[i].push_back(piece.tensor);
      pieces_.push_back(std::move(piece));
    }
  }
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    std::vector<at::Tensor>& params = optimizer_->param_groups()[group].params();
    params.clear();
    for (const std::size_t i : groups_[group].parameters) {
      params.insert(params.end(), of_parameter[i].begin(), of_parameter[i].end());
    }
  }
}

std::vector<float> TorchOptimizer::initial_slot(std::size_t slot) const {
  std::vector<float> arena(layout_->float_count());
  for (std::size_t parameter = 0; parameter < parameters_.size(); ++parameter) {
    if (!uses_[slot][parameter]) continue;
    const float value = kind_->initial_value(optimizer_->param_groups()[group_of_[parameter]].options());
    std::ranges::fill(layout_->view(std::span<float>(arena), parameter), value);
  }
  return arena;
}

// That of the first group stands for all, for callbacks and logs.
float TorchOptimizer::learning_rate(std::int64_t step) const {
  return schedule_ ? schedule_->of_update(step) : static_cast<float>(groups_.front().first_rate);
}

// Groups keep the ratio of their rates. Without a rate they have those of the application, in double.
void TorchOptimizer::set_rates(std::optional<double> rate) {
  const double first = groups_.front().first_rate;
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const double own = groups_[group].first_rate;
    optimizer_->param_groups()[group].options().set_lr(!rate ? own : own == first ? *rate : *rate * (own / first));
  }
}

// A state that was never updated is left to LibTorch, whose first step differs from the later ones.
void TorchOptimizer::put_states(std::span<const float> counts) {
  for (const Piece& piece : pieces_) {
    const auto updates = static_cast<std::int64_t>(counts[piece.parameter]);
    if (updates == 0 && !kind_->has_states_at_first) {
      optimizer_->state().erase(piece.key);
      continue;
    }
    auto& state = state_of(piece);
    if (state == nullptr) state = kind_->make_state(updates);
    kind_->set_updates(*state, updates);
    for (std::size_t slot = 0; slot < slot_kinds_.size(); ++slot) {
      if (uses_[slot][piece.parameter]) kind_->slots[slot_kinds_[slot]].tensor(*state) = piece.slots[slot];
    }
  }
}

// LibTorch's optimizers read gradients and do not write them. A parameter without one is left out of the step, as
// LibTorch does it with a layer that forward() did not reach.
void TorchOptimizer::give_gradients(std::span<const float> gradients, std::span<const float> used) {
  for (Piece& piece : pieces_) {
    at::Tensor& gradient = piece.tensor.mutable_grad();
    if (used[piece.parameter] == 0) {
      gradient = at::Tensor();
      continue;
    }
    auto* const begin = const_cast<float*>(gradients.subspan(piece.begin).data());
    // The arena of gradients may be another one than in the last step.
    if (gradient.defined() && gradient.data_ptr() == begin) continue;
    gradient = tensor_at(begin, {static_cast<std::int64_t>(piece.count)}, at::kFloat, place_);
  }
}

void TorchOptimizer::take_states(const Counts& counts) {
  for (const Piece& piece : pieces_) {
    if (counts.used[piece.parameter] == 0) continue;
    auto& state = state_of(piece);
    for (std::size_t slot = 0; slot < slot_kinds_.size(); ++slot) {
      if (!uses_[slot][piece.parameter]) continue;
      const at::Tensor& made = kind_->slots[slot_kinds_[slot]].tensor(*state);
      const at::Tensor& kept = piece.slots[slot];
      // The first step makes new tensors instead of writing to ours, as SGD does for its momentum.
      if (made.defined() && made.data_ptr() != kept.data_ptr()) kept.copy_(made);
    }
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (group_of_[i] == kNoGroup || counts.used[i] == 0) continue;
    counts.updates[i] += static_cast<float>(std::ranges::count(groups_[group_of_[i]].parameters, i));
  }
}

void TorchOptimizer::step(std::int64_t step, std::span<const float> gradients, const Counts& counts,
                          std::optional<float> learning_rate) {
  const at::NoGradGuard no_gradients;
  if (learning_rate) {
    set_rates(*learning_rate);
  } else if (schedule_) {
    set_rates(schedule_->of_update(step));
  } else {
    set_rates(std::nullopt);
  }
  // LibTorch's step works on the arenas: states are lent to it before, and what it has made is fetched after.
  put_states(counts.updates);
  give_gradients(gradients, counts.used);
  optimizer_->step();
  take_states(counts);
}

}  // namespace holdfast::torch
