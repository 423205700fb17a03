#include "pytorch/torch_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "holdfast/base/error.h"
#include "holdfast/format/exchange/pytorch.h"
#include "unit/exchange/support/pytorch_sets.h"
#include "unit/format/support/array_files.h"

namespace holdfast::format {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Thrown;
using testing::thrown_by;
using namespace pytorch_sets;

nlohmann::json config_of_module() {
  return nlohmann::json::parse(R"({
    "arrays": ["again", "norm/num_batches_tracked", "head/weight", "norm/running_mean", "index"],
    "aliases": [["again", "head/weight"]],
    "counters": ["norm/num_batches_tracked"],
    "constants": [{"name": "index", "dtype": "I64", "shape": [2], "bytes": "01000000000000000200000000000000"}]})");
}

ArraySet savepoint_of_module(const nlohmann::json& config) {
  const nlohmann::json metadata = {{"graph", {{"class_name", "TorchModule"}, {"config", config}}}, {"step", 300}};
  return {.arrays = {numbered("model/head/weight", {2, 3}), numbered("model/norm/running_mean", {4}),
                     numbered("optimizer/exp_avg/head/weight", {2, 3})},
          .metadata = metadata.dump()};
}

ArraySet savepoint_of_module() {
  nlohmann::json config = config_of_module();
  // A second name stands after the first one.
  config["arrays"] = {"norm/num_batches_tracked", "head/weight", "norm/running_mean", "index", "again"};
  return savepoint_of_module(config);
}

TEST(TorchModule, BecomesItsStateDict) {
  const ArraySet state = to_pytorch(savepoint_of_module());

  EXPECT_THAT(names_of(state),
              ElementsAre("again", "head.weight", "index", "norm.num_batches_tracked", "norm.running_mean"));
  EXPECT_EQ(get(state, "head.weight").bytes, get(savepoint_of_module(), "model/head/weight").bytes);
  EXPECT_EQ(get(state, "head.weight").shape, (Shape{2, 3}));
  EXPECT_EQ(get(state, "again").bytes, get(state, "head.weight").bytes);
  EXPECT_EQ(get(state, "index").dtype, DType::i64);
  EXPECT_EQ(static_cast<int>(get(state, "index").bytes[8]), 2);
  const NamedArray& batches = get(state, "norm.num_batches_tracked");
  EXPECT_EQ(batches.dtype, DType::i64);
  EXPECT_EQ(batches.shape, Shape());
  EXPECT_EQ(static_cast<int>(batches.bytes[0]) + 256 * static_cast<int>(batches.bytes[1]), 300);
}

TEST(TorchModule, ComesBackFromItsStateDict) {
  ArraySet like = savepoint_of_module();
  const ArraySet state = to_pytorch(like);
  for (NamedArray& array : like.arrays) std::ranges::fill(array.bytes, std::byte{0});

  const ArraySet back = from_pytorch(state, like);

  EXPECT_THAT(names_of(back), ElementsAre("model/head/weight", "model/norm/running_mean"));
  EXPECT_EQ(get(back, "model/head/weight").bytes, get(savepoint_of_module(), "model/head/weight").bytes);
  EXPECT_EQ(get(back, "model/norm/running_mean").bytes, get(savepoint_of_module(), "model/norm/running_mean").bytes);
}

TEST(TorchModule, RefusesAStateDictWithOtherConstants) {
  ArraySet state = to_pytorch(savepoint_of_module());
  for (NamedArray& array : state.arrays) {
    if (array.name == "index" || array.name == "again") array.bytes.front() ^= std::byte{1};
  }

  const Thrown thrown = thrown_by([&] { from_pytorch(state, savepoint_of_module()); });

  EXPECT_EQ(thrown.code, ErrorCode::incompatible);
  EXPECT_THAT(thrown.sentence, HasSubstr("has other values than the savepoint's module"));
}

TEST(TorchModule, RefusesAGraphThatDoesNotFit) {
  const auto refusal = [](const char* path, const nlohmann::json& value) {
    nlohmann::json config = config_of_module();
    config[nlohmann::json::json_pointer(path)] = value;
    return thrown_by([&] { to_pytorch(savepoint_of_module(config)); }).sentence;
  };
  EXPECT_THAT(refusal("/arrays", nlohmann::json::array({"head/weight"})),
              HasSubstr("it does not name the array \"norm/running_mean\""));
  EXPECT_THAT(refusal("/arrays/0", "absent"), HasSubstr("the savepoint has no array \"absent\""));
  EXPECT_THAT(refusal("/arrays/0", 3), HasSubstr("a name in it is not a text"));
  EXPECT_THAT(refusal("/aliases/0", 3), HasSubstr("is not a pair of names"));
  EXPECT_THAT(refusal("/constants/0/dtype", "C64"), HasSubstr("has an unknown type"));
  EXPECT_THAT(refusal("/constants/0/shape/0", 3), HasSubstr("not as many bytes"));
  EXPECT_THAT(refusal("/constants/0/bytes", "0g"), HasSubstr("are not hexadecimal digits"));
  EXPECT_THAT(refusal("/counters", 3), HasSubstr("\"counters\" is not a list"));
  EXPECT_THAT(refusal("/counter_starts/norm~1num_batches_tracked", std::numeric_limits<std::int64_t>::max()),
              HasSubstr("the counter \"norm/num_batches_tracked\" exceeds 63 bits"));
}

}  // namespace
}  // namespace holdfast::format
