// LibTorch's modules own their parameters. Here each worker has a module of its own, and all of them view one arena, so
// that an update changes them all and the state is a few spans. Buffers are changed by forward(), while other workers
// compute, so they are copied for each shard. docs/decisions/torch.md

#include "module_arrays.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "holdfast/base/error.h"
#include "torch_device.h"

namespace holdfast::torch {
namespace {

// LibTorch allows no dot within a part of a name, so each dot stands between two parts.
std::string name_of(std::string name) {
  std::ranges::replace(name, '.', '/');
  return name;
}

Shape shape_of(const at::Tensor& tensor) {
  return Shape(std::vector<std::int64_t>(tensor.sizes().begin(), tensor.sizes().end()));
}

// Counters of a batch normalization are integers, which no arena holds. They follow from the number of steps, so the
// state needs none of them.
bool is_counter(const std::string& name) {
  return name == "num_batches_tracked" || name.ends_with(".num_batches_tracked");
}

// The bytes from its first to its last element. Strides of LibTorch's tensors are not negative.
std::pair<const char*, const char*> range_of(const at::Tensor& tensor) {
  const auto* begin = static_cast<const char*>(tensor.data_ptr());
  std::int64_t last = 0;
  for (std::int64_t axis = 0; axis < tensor.dim(); ++axis) last += (tensor.size(axis) - 1) * tensor.stride(axis);
  return {begin, begin + static_cast<std::size_t>(last + 1) * tensor.element_size()};
}

// Each array gets a place of its own in an arena, so what the application changes in one would no longer change the
// other. Training would go on with other numbers than LibTorch's, without a message.
void require_own_memory(std::vector<std::pair<std::string, at::Tensor>> tensors) {
  std::erase_if(tensors, [](const auto& tensor) { return tensor.second.numel() == 0; });
  const auto begins = [](const auto& tensor) { return range_of(tensor.second).first; };
  std::ranges::stable_sort(tensors, {}, begins);
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    const auto& [before, first] = tensors[i - 1];
    const auto& [name, second] = tensors[i];
    if (range_of(first).second <= range_of(second).first) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("\"{}\" and \"{}\" of the module are two tensors in the same memory; register one tensor "
                            "under both names to tie them, or give each memory of its own with clone()",
                            name_of(before), name_of(name)));
  }
}

// All names of parameters and buffers, in LibTorch's order. A tensor may be missing, such as the bias of a layer
// without one.
std::vector<std::string> names_in(const ::torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& parameter : module.named_parameters()) {
    if (parameter.value().defined()) names.push_back(name_of(parameter.key()));
  }
  for (const auto& buffer : module.named_buffers()) {
    if (buffer.value().defined()) names.push_back(name_of(buffer.key()));
  }
  return names;
}

// A name of the application's may have a slash, and is then that of an array of a part.
void require_own_names(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("two arrays of the module would be called \"{}\" in savepoints, where parts and arrays are "
                          "joined with a slash; give one that is registered with a slash in its name another name",
                          *twice));
}

// As safetensors names them; empty for types that it does not have.
std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kLong:
      return "I64";
    case at::kInt:
      return "I32";
    case at::kShort:
      return "I16";
    case at::kChar:
      return "I8";
    case at::kByte:
      return "U8";
    case at::kBool:
      return "BOOL";
    default:
      return "";
  }
}

// Constants are compared and written as text, since they are a part of the graph's JSON. A byte is two digits, and the
// first byte in memory comes first.
std::string hex_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.contiguous();
  const auto* bytes = static_cast<const unsigned char*>(whole.data_ptr());
  std::string digits;
  digits.reserve(2 * whole.nbytes());
  for (std::size_t i = 0; i < whole.nbytes(); ++i) fmt::format_to(std::back_inserter(digits), "{:02x}", bytes[i]);
  return digits;
}

void require_host(const std::string& name, const at::Tensor& tensor) {
  if (tensor.device().is_cpu() && tensor.layout() == at::kStrided) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("\"{}\" of the module is a tensor on {} or without strides; Holdfast takes modules of dense "
                          "tensors in the memory of the host, and moves them to the device of the run",
                          name, tensor.device().str()));
}

// Weights of other types would be rounded on their way into an arena, and a resume would not have their bits.
[[noreturn]] void refuse_type(const std::string& kind, const std::string& name, const at::Tensor& tensor) {
  throw Error(
      ErrorCode::unsupported,
      fmt::format("the {} \"{}\" of the module has elements of type {}; Holdfast trains modules whose parameters "
                  "are f32 (module.to(torch::kFloat)), and saves buffers of f32, integers and bool",
                  kind, name, at::toString(tensor.scalar_type())));
}

// Large tables of integers belong to the data, or into an f32 buffer.
constexpr std::size_t kLargestConstants = std::size_t{1} << 20;

Constant constant_of(const std::string& name, const at::Tensor& tensor) {
  // Types of floats other than f32 have no name here. Such buffers change in training, and text is for what stays.
  const std::string dtype = dtype_name(tensor.scalar_type());
  if (dtype.empty()) refuse_type("buffer", name, tensor);
  return {.name = name_of(name),
          .dtype = dtype,
          .shape = {tensor.sizes().begin(), tensor.sizes().end()},
          .bytes = hex_of(tensor)};
}

}  // namespace

ModuleArrays::ModuleArrays(const ::torch::nn::Module& module) {
  // A tensor with two names is one array: it gets one gradient and one place in the arena.
  std::unordered_map<const void*, std::string> first_names;
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  const auto is_alias = [&](const std::string& name, const at::Tensor& tensor) {
    const auto [found, is_new] = first_names.emplace(tensor.unsafeGetTensorImpl(), name_of(name));
    if (is_new) {
      tensors.emplace_back(name, tensor);
    } else {
      aliases.emplace_back(name_of(name), found->second);
    }
    return !is_new;
  };
  order = names_in(module);
  require_own_names(order);
  for (const auto& parameter : module.named_parameters()) {
    const auto& [name, tensor] = parameter.pair();
    if (!tensor.defined()) continue;
    if (is_alias(name, tensor)) continue;
    require_host(name, tensor);
    if (tensor.scalar_type() != at::kFloat) refuse_type("parameter", name, tensor);
    (tensor.requires_grad() ? parameters : frozen).add(name_of(name), shape_of(tensor));
  }
  std::size_t constant_digits = 0;
  for (const auto& buffer : module.named_buffers()) {
    const auto& [name, tensor] = buffer.pair();
    if (!tensor.defined()) continue;
    if (is_alias(name, tensor)) continue;
    require_host(name, tensor);
    if (tensor.scalar_type() == at::kFloat) {
      buffers.add(name_of(name), shape_of(tensor));
    } else if (is_counter(name) && tensor.scalar_type() == at::kLong && tensor.numel() == 1) {
      counters.push_back(name_of(name));
      counter_starts.push_back(tensor.item<std::int64_t>());
    } else {
      constants.push_back(constant_of(name, tensor));
      constant_digits += constants.back().bytes.size();
    }
  }
  require_own_memory(std::move(tensors));
  if (constant_digits / 2 > kLargestConstants) {
    throw Error(ErrorCode::unsupported,
                fmt::format("the module has {} bytes of buffers that are not f32, and savepoints hold at most {}; give "
                            "such tables as inputs, or as buffers of f32",
                            constant_digits / 2, kLargestConstants));
  }
}

std::vector<at::Tensor> views_of(const ArenaLayout& layout, std::span<float> arena, at::Device place) {
  std::vector<at::Tensor> views;
  for (std::size_t entry = 0; entry < layout.entries().size(); ++entry) {
    const ArenaEntry& of = layout.entries()[entry];
    const auto extents = of.shape.extents();
    views.push_back(tensor_at(layout.view(arena, entry).data(), at::IntArrayRef(extents.data(), extents.size()),
                              at::kFloat, place));
  }
  return views;
}

// A function that makes modules may make each one differently by mistake. Views of the arenas would then give it the
// numbers of other arrays.
WorkerModule::WorkerModule(std::shared_ptr<::torch::nn::Module> module, const ModuleArrays& arrays)
    : arrays_(&arrays), module_(std::move(module)) {
  const auto of_another_module = [] {
    return Error(ErrorCode::invalid_argument,
                 "two calls of the function that makes the module gave modules with different parameters or buffers; "
                 "each call must make the same module, apart from what it draws");
  };
  const ModuleArrays own(*module_);
  const auto same_arrays = [](const ArenaLayout& a, const ArenaLayout& b) {
    return std::ranges::equal(a.entries(), b.entries(), [](const ArenaEntry& x, const ArenaEntry& y) {
      return x.name == y.name && x.shape == y.shape;
    });
  };
  if (own.order != arrays.order || own.counters != arrays.counters || !same_arrays(own.parameters, arrays.parameters) ||
      !same_arrays(own.frozen, arrays.frozen) || !same_arrays(own.buffers, arrays.buffers) ||
      !std::ranges::equal(own.constants, arrays.constants, [](const Constant& a, const Constant& b) {
        return a.name == b.name && a.dtype == b.dtype && a.shape == b.shape && a.bytes == b.bytes;
      })) {
    throw of_another_module();
  }
  // Before any call of train(): the modes are those that the application's function has set.
  for (const auto& part : module_->modules()) modes_.emplace_back(part, part->is_training());
  // In the order of ModuleArrays and without second names, so that tensor i belongs to entry i of its layout.
  std::unordered_map<const void*, bool> seen;
  for (const auto& parameter : module_->named_parameters()) {
    const at::Tensor& tensor = parameter.value();
    if (!tensor.defined() || !seen.emplace(tensor.unsafeGetTensorImpl(), true).second) continue;
    (tensor.requires_grad() ? parameters_ : frozen_).push_back(tensor);
  }
  for (const auto& buffer : module_->named_buffers()) {
    const at::Tensor& tensor = buffer.value();
    if (!tensor.defined() || !seen.emplace(tensor.unsafeGetTensorImpl(), true).second) continue;
    const bool is_count = std::ranges::find(arrays.counters, name_of(buffer.key())) != arrays.counters.end();
    (tensor.scalar_type() == at::kFloat ? buffers_ : is_count ? counters_ : constants_).push_back(tensor);
  }
}

static std::vector<std::uint32_t> versions_of(const std::vector<at::Tensor>& some,
                                              const std::vector<at::Tensor>& others = {}) {
  std::vector<std::uint32_t> versions;
  for (const std::vector<at::Tensor>* tensors : {&some, &others}) {
    for (const at::Tensor& tensor : *tensors) versions.push_back(static_cast<std::uint32_t>(tensor._version()));
  }
  return versions;
}

// Before view(): it gives the tensors other memory, and what they have here is not used any more.
void WorkerModule::move_to(at::Device place) {
  module_->to(place);
  device_ = place;
}

void WorkerModule::view(std::span<float> parameters, std::span<float> frozen) {
  const at::Device place = device_.value_or(at::kCPU);
  const std::vector<at::Tensor> of_parameters = views_of(arrays_->parameters, parameters, place);
  const std::vector<at::Tensor> of_frozen = views_of(arrays_->frozen, frozen, place);
  // The tensors stay the same objects, which the module has as members. Only their memory becomes that of the arenas.
  for (std::size_t i = 0; i < parameters_.size(); ++i) parameters_[i].set_data(of_parameters[i]);
  for (std::size_t i = 0; i < frozen_.size(); ++i) frozen_[i].set_data(of_frozen[i]);
}

// Through contiguous(): a parameter may have other strides than an array of the arena.
static void copy_out(const std::vector<at::Tensor>& tensors, const ArenaLayout& layout, std::span<float> arena) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor whole = tensors[i].detach().contiguous();
    const std::span<float> to = layout.view(arena, i);
    if (!to.empty()) std::memcpy(to.data(), whole.data_ptr<float>(), to.size_bytes());
  }
}

void WorkerModule::read_initial(std::span<float> parameters, std::span<float> frozen, std::span<float> buffers) const {
  copy_out(parameters_, arrays_->parameters, parameters);
  copy_out(frozen_, arrays_->frozen, frozen);
  copy_out(buffers_, arrays_->buffers, buffers);
}

void WorkerModule::require_arrays_as_made() const {
  const std::vector<std::string> names = names_in(*module_);
  const auto is_new = [this](const std::string& name) {
    return std::ranges::find(arrays_->order, name) == arrays_->order.end();
  };
  const auto found = std::ranges::find_if(names, is_new);
  if (found == names.end()) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("forward() of the module registered \"{}\", which was not there when the module was made: no "
                  "savepoint would have it, and a replica that is replaced would lose it. Register all parts in "
                  "the constructor, or call forward() once in the function `module`",
                  *found));
}

void WorkerModule::set_buffers(std::span<const float> buffers, std::int64_t steps) {
  const at::NoGradGuard no_gradients;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const std::span<const float> from = arrays_->buffers.view(buffers, i);
    at::Tensor& to = buffers_[i];
    if (from.empty()) continue;
    if (device_) {
      to.copy_(tensor_at(from.data(), to.sizes(), at::kFloat, *device_));
    } else if (to.is_contiguous()) {
      std::memcpy(to.data_ptr<float>(), from.data(), from.size_bytes());
    } else {
      to.copy_(at::from_blob(const_cast<float*>(from.data()), to.sizes(), at::kFloat));
    }
  }
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const std::int64_t count = arrays_->counter_starts[i] + steps;
    if (device_) {
      counters_[i].fill_(count);
    } else {
      *counters_[i].data_ptr<std::int64_t>() = count;
    }
  }
  steps_ = steps;
  // LibTorch counts the changes in place of each tensor. So a change by forward() is found without a copy of the
  // numbers.
  versions_ = versions_of(parameters_, frozen_);
  constant_versions_ = versions_of(constants_);
}

std::vector<at::Tensor> WorkerModule::counted() const {
  std::vector<at::Tensor> counted;
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    counted.push_back((counters_[i].detach() - (arrays_->counter_starts[i] + steps_)).to(at::kFloat));
  }
  return counted;
}

std::string WorkerModule::forbidden_change(std::span<const float> counted) const {
  const std::vector<std::uint32_t> versions_of_constants = versions_of(constants_);
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    // To look at the bytes of a device would be a wait for each.
    if (device_ ? versions_of_constants[i] != constant_versions_[i]
                : hex_of(constants_[i]) != arrays_->constants[i].bytes) {
      return fmt::format(
          "the integer buffer \"{}\", which savepoints cannot hold; count in an f32 buffer, or leave it "
          "as it was made",
          arrays_->constants[i].name);
    }
  }
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    // A layer that forward() does not reach counts nothing.
    if (counted[i] == 0 || counted[i] == 1) continue;
    return fmt::format("the counter \"{}\" by another number than 0 or 1; call the layer once in forward()",
                       arrays_->counters[i]);
  }
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const ArenaEntry& entry = arrays_->buffers.entries()[i];
    const bool is_kept = buffers_[i].scalar_type() == at::kFloat && shape_of(buffers_[i]) == entry.shape;
    if (!is_kept)
      return fmt::format("the shape or type of the buffer \"{}\"; give it its size when it is made", entry.name);
  }
  // Other workers read them meanwhile.
  if (versions_of(parameters_, frozen_) != versions_) {
    return "its parameters in place; let the optimizer change them, or keep what forward() changes in f32 buffers";
  }
  return "";
}

// The same without a look at the numbers from here, which would be a wait for each buffer.
void WorkerModule::queue_changed_buffers(std::span<float> to, std::span<const float> before, float part) const {
  const at::NoGradGuard no_gradients;
  const std::size_t floats = arrays_->buffers.float_count();
  const auto at_device = [&](const float* data, at::IntArrayRef sizes) {
    return tensor_at(data, sizes, at::kFloat, *device_);
  };
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const std::span<const float> then = arrays_->buffers.view(before, i);
    if (then.empty()) continue;
    const at::Tensor now = buffers_[i].detach().contiguous();
    // As integers, so that a NaN that has not changed is equal to itself.
    const at::Tensor differs = now.view(at::kInt).ne(at_device(then.data(), now.sizes()).view(at::kInt)).any();
    const std::span<float> changed = arrays_->buffers.view(to.first(floats), i);
    at_device(changed.data(), now.sizes()).copy_(at::where(differs, now * part, at::zeros({}, now.options())));
    at_device(to.data() + floats + i, {}).copy_(differs.to(at::kFloat) * part);
  }
}

void WorkerModule::write_changed_buffers(std::span<float> to, std::span<const float> before, float part) const {
  if (device_) return queue_changed_buffers(to, before, part);
  const std::size_t floats = arrays_->buffers.float_count();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const at::Tensor now = buffers_[i].detach().contiguous();
    const std::span<const float> then = arrays_->buffers.view(before, i);
    if (then.empty() || std::memcmp(now.data_ptr<float>(), then.data(), then.size_bytes()) == 0) continue;
    const std::span<float> changed = arrays_->buffers.view(to.first(floats), i);
    std::transform(now.data_ptr<float>(), now.data_ptr<float>() + then.size(), changed.begin(),
                   [part](float value) { return part * value; });
    to[floats + i] = part;
  }
}

// train() walks through all parts of the module, so it is called for a change alone.
void WorkerModule::set_training(bool training) {
  if (is_training_ == training) return;
  is_training_ = training;
  module_->train(training);
  if (!training) return;
  // A part that the application put into eval(), such as a normalization that is to stay, stays so.
  for (const auto& [part, was_training] : modes_) part->train(was_training);
}

}  // namespace holdfast::torch
