#include "holdfast/torch/batch.h"

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"

namespace holdfast::torch {
namespace {

// For sentences alone. "none" stands where a list would be empty.
std::string names_of(const std::vector<NamedTensor>& tensors) {
  std::string names;
  for (const NamedTensor& tensor : tensors) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", tensor.name);
  return names.empty() ? "none" : names;
}

// Functions of the application ask in forward(), so a wrong number is a mistake there. The sentence names the option
// that it has to agree with.
const at::Tensor& at_position(const std::vector<NamedTensor>& tensors, std::size_t position, const char* kind) {
  if (position < tensors.size()) return tensors[position].tensor;
  throw Error(ErrorCode::not_found, fmt::format("a module asks its batch for {} {}, counted from 0, and there are {}; "
                                                "name all arrays in TrainableOptions::{}s",
                                                kind, position, tensors.size(), kind));
}

// A search for each call: a sample has a few arrays.
const at::Tensor& of_name(const std::vector<NamedTensor>& tensors, std::string_view name, const char* kind) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  if (found != tensors.end()) return found->tensor;
  throw Error(ErrorCode::not_found,
              fmt::format("a module asks its batch for the {} \"{}\"; it has {}", kind, name, names_of(tensors)));
}

}  // namespace

const at::Tensor& Batch::input(std::size_t position) const {
  return at_position(inputs_, position, "input");
}

const at::Tensor& Batch::input(std::string_view name) const {
  return of_name(inputs_, name, "input");
}

const at::Tensor& Batch::target(std::size_t position) const {
  return at_position(targets_, position, "target");
}

const at::Tensor& Batch::target(std::string_view name) const {
  return of_name(targets_, name, "target");
}

// By position alone: forward() returns tensors without names.
const at::Tensor& Outputs::operator[](std::size_t position) const {
  if (position < tensors_.size()) return tensors_[position];
  throw Error(ErrorCode::not_found,
              fmt::format("a loss or metric asks for output {}, counted from 0, and forward() returned {}", position,
                          tensors_.size()));
}

// Lets a loss of one tensor be written as such. With several outputs the first one would be taken without a word, so it
// is an error.
Outputs::operator const at::Tensor&() const {
  if (tensors_.size() == 1) return tensors_.front();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("a loss or metric takes one tensor, and forward() returned {}; let it take `const "
                          "holdfast::torch::Outputs&`",
                          tensors_.size()));
}

}  // namespace holdfast::torch
