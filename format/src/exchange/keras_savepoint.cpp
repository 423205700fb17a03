#include "exchange/keras_savepoint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "exchange/keras_graph.h"
#include "exchange/keras_legacy.h"
#include "holdfast/base/error.h"

namespace holdfast::format {
namespace {

template <typename Number>
NamedArray scalar(const std::string& name, DType dtype, Number value) {
  NamedArray array{.name = name, .dtype = dtype, .shape = {}, .bytes = std::vector<std::byte>(sizeof(value))};
  std::memcpy(array.bytes.data(), &value, sizeof(value));
  return array;
}

// Keras counts in 32 bits with JAX and PyTorch, in 64 with TensorFlow, and takes both.
NamedArray iteration(std::int64_t step) {
  const std::string name = std::string(kOptimizerPrefix) + "iteration";
  const bool is_short = step <= std::numeric_limits<std::int32_t>::max();
  return is_short ? scalar(name, DType::i32, static_cast<std::int32_t>(step)) : scalar(name, DType::i64, step);
}

using ArraysByName = std::map<std::string, const NamedArray*, std::less<>>;

ArraysByName by_name(const std::vector<NamedArray>& arrays) {
  ArraysByName result;
  for (const NamedArray& array : arrays) result.emplace(array.name, &array);
  return result;
}

const NamedArray& get(const ArraysByName& arrays, const std::string& name) {
  const auto found = arrays.find(name);
  if (found != arrays.end()) return *found->second;
  throw Error(ErrorCode::invalid_argument,
              "array \"" + name + "\" is missing, which the model's layers have; give the whole savepoint");
}

double number_member(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_number() ? value.get<double>() : 0.0;
}

// Adds the optimizer's arrays in Keras's order.
void add_optimizer(const ArraysByName& savepoint, const Json& metadata, const KerasModel& model,
                   KerasContent& content) {
  const auto add = [&](NamedArray array) {
    content.description.optimizer.push_back(array.name);
    content.arrays.push_back(std::move(array));
  };
  const Json& optimizer = member(member(metadata, "configuration"), "optimizer");
  const Json& step = member(metadata, "step");
  add(iteration(step.is_number_integer() ? step.get<std::int64_t>() : 0));
  const auto rate = static_cast<float>(number_member(optimizer, "learning_rate"));
  add(scalar(std::string(kOptimizerPrefix) + "learning_rate", DType::f32, rate));
  for (const KerasSlot& slot : model.slots()) {
    if (!slot.is_trainable) continue;
    for (const SlotName& name : optimizer_slots(metadata)) {
      NamedArray array = get(savepoint, kOptimizerPrefix + name.holdfast + "/" + slot.array);
      array.name = kOptimizerPrefix + name.keras + "/" + slot.array;
      add(std::move(array));
    }
  }
}

}  // namespace

KerasContent keras_from_savepoint(const ArraySet& savepoint, const Json& metadata) {
  const Json config = keras_config_of_savepoint(metadata);
  const KerasModel model(config, "the savepoint's graph");
  KerasContent content;
  content.description.config = config.dump();
  for (const NamedArray& array : savepoint.arrays) {
    if (array.name.starts_with(kModelPrefix)) content.arrays.push_back(array);
  }
  if (config.contains("compile_config")) add_optimizer(by_name(savepoint.arrays), metadata, model, content);
  return content;
}

}  // namespace holdfast::format
