// A part of a model is described anew from the calls that its outputs need. Layers keep their names and identities, so
// that weights are found by name. Calls keep their order, but layers are numbered by their first call in the part.
// Neither an operation nor a layer changes, so a prediction of the part has the bits that the whole computes.
// docs/decisions/models.md

#include <fmt/format.h>

#include <algorithm>

#include "holdfast/base/error.h"
#include "nn/model/find_layers.h"
#include "nn/model/named_weights.h"

namespace holdfast {

namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

class PartOfModel {
 public:
  explicit PartOfModel(const ModelDescription& whole)
      : whole_(whole),
        is_needed_(whole.calls.size(), false),
        needs_input_(whole.inputs.size(), false),
        new_layer_(whole.layers.size(), kNone) {}

  // The part that ends with these calls.
  ModelDescription end_with(const std::vector<std::size_t>& calls);

 private:
  void mark_needed(std::size_t last);
  void add_inputs();
  void add_call(std::size_t call);

  const ModelDescription& whole_;
  std::vector<bool> is_needed_;    // by call
  std::vector<bool> needs_input_;  // by input
  // The numbers in the part, by number in the whole; kNone where the part lacks it.
  std::vector<std::size_t> new_layer_, new_call_, new_input_;
  ModelDescription part_;
};

void PartOfModel::mark_needed(std::size_t last) {
  // A call needs earlier ones only.
  for (std::size_t call = last + 1; call-- > 0;) {
    if (!is_needed_[call]) continue;
    for (const CallInput& input : whole_.calls[call].inputs) {
      const bool is_input = input.call == CallInput::kModelInput;
      (is_input ? needs_input_[input.index] : is_needed_[input.call]) = true;
    }
  }
}

void PartOfModel::add_inputs() {
  for (std::size_t input = 0; input < whole_.inputs.size(); ++input) {
    // Inputs that the part does not read are left out, so that callers need not pass them. Their numbers are never
    // asked for.
    new_input_.push_back(part_.inputs.size());
    if (needs_input_[input]) part_.inputs.push_back(whole_.inputs[input]);
  }
}

void PartOfModel::add_call(std::size_t index) {
  const ModelCall& call = whole_.calls[index];
  // The first call of a layer gives it its number in the part, as in describe().
  std::size_t& layer = new_layer_[call.layer];
  if (layer == kNone) {
    layer = part_.layers.size();
    const ModelLayer& old = whole_.layers[call.layer];
    part_.layers.push_back(
        {.name = old.name, .layer = old.layer, .input_shape = {}, .output_shape = {}, .is_frozen = old.is_frozen});
    part_.identities.push_back(whole_.identities[call.layer]);
  }
  // Segments keep their numbers. Gaps between the numbers do no harm.
  ModelCall moved = {.layer = layer, .inputs = {}, .segment = call.segment};
  for (const CallInput& input : call.inputs) {
    const bool is_input = input.call == CallInput::kModelInput;
    moved.inputs.push_back(is_input ? CallInput{CallInput::kModelInput, new_input_[input.index]}
                                    : CallInput{new_call_[input.call], input.index});
  }
  new_call_[index] = part_.calls.size();
  part_.calls.push_back(std::move(moved));
}

ModelDescription PartOfModel::end_with(const std::vector<std::size_t>& calls) {
  for (const std::size_t call : calls) is_needed_[call] = true;
  // No call needs a later one, so the walk begins at the last call that is wanted.
  mark_needed(*std::max_element(calls.begin(), calls.end()));
  add_inputs();
  new_call_.assign(whole_.calls.size(), kNone);
  for (std::size_t call = 0; call < whole_.calls.size(); ++call) {
    if (is_needed_[call]) add_call(call);
  }
  for (const std::size_t call : calls) {
    // A layer may have several outputs. The part then has all of them.
    for (std::size_t output = 0; output < whole_.calls[call].outputs.size(); ++output) {
      part_.output_sources.push_back({new_call_[call], output});
    }
  }
  return std::move(part_);
}

// The place of call number `number` of a layer among the calls of the model.
std::size_t find_call(const ModelDescription& model, std::string_view name, std::size_t number) {
  const auto found = std::find_if(model.layers.begin(), model.layers.end(),
                                  [&](const ModelLayer& layer) { return layer.name == name; });
  if (found == model.layers.end()) refuse_layer(model, name);
  // A layer has several calls where its weights are shared, and each call has another output.
  const auto layer = static_cast<std::size_t>(found - model.layers.begin());
  std::size_t calls = 0;
  for (std::size_t call = 0; call < model.calls.size(); ++call) {
    if (model.calls[call].layer == layer && calls++ == number) return call;
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("layer \"{}\" is called {} time{}, so it has no call number {}; the first one is number 0",
                          name, calls, calls == 1 ? "" : "s", number));
}

}  // namespace

Model Model::part(const std::vector<std::size_t>& calls) const {
  Model part(complete(PartOfModel(*description_).end_with(calls)));
  // The part gets a copy, so that training one of the two leaves the other as it is.
  copy_weights(*this, part);
  return part;
}

Model Model::output_of(std::string_view layer, std::size_t call) const {
  return part({find_call(*description_, layer, call)});
}

Model Model::outputs_of(const std::vector<std::string>& layers) const {
  if (layers.empty()) throw Error(ErrorCode::invalid_argument, "outputs_of() needs the name of one layer at least");
  std::vector<std::size_t> calls;
  for (const std::string& layer : layers) calls.push_back(find_call(*description_, layer, 0));
  return part(calls);
}

}  // namespace holdfast
