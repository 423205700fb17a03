#include "data/stages/user_function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <new>
#include <stdexcept>

#include "holdfast/data/csv.h"
#include "holdfast/data/generator.h"
#include "holdfast/data/source.h"
#include "holdfast/data/table_encoder.h"
#include "support/temporary_folder.h"
#include "support/thrown.h"
#include "unit/data/support/loaded.h"
#include "unit/data/support/numbers.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

// The error of a program, which Holdfast does not know.
struct OwnError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The text of what `action` throws, which must not be an Error but hold the error of the program.
std::string text_of_own_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    ADD_FAILURE() << "the exception of a program became an Error: " << error.what();
  } catch (const std::runtime_error& error) {
    EXPECT_THROW(std::rethrow_if_nested(error), OwnError);
    return error.what();
  }
  return "nothing was thrown";
}

void fail_at_five(float value) {
  if (value == 5) throw OwnError("my own error");
}

// All samples of epoch 3, in their order.
void load_all(const Dataset& data) {
  for (std::int64_t position = 0; position < data.size(); ++position) loaded(data, 1, 3, position);
}

const std::vector<ArraySpec> kOneNumber = {{.name = "x", .shape = {1}}};

}  // namespace

TEST(UserFunction, IsNamedWithItsSampleInEachKindOfMap) {
  const auto in_place = [](Sample sample, Random&) { fail_at_five(sample.features[0]); };
  const auto of_arrays = [](const SampleArrays& sample, Random&) { fail_at_five(sample.inputs.elements<float>(0)[0]); };
  const auto to_features = [](std::span<const float> from, std::span<float>, Random&) { fail_at_five(from[0]); };
  const auto to_inputs = [](const ArrayRow& from, const ArrayRow&, Random&) {
    fail_at_five(from.elements<float>(0)[0]);
  };

  for (const Dataset& data :
       {numbers(9).map(in_place, "mine"), numbers(9).map(of_arrays, "mine"),
        numbers(9).map(Shape{2}, to_features, "mine"), numbers(9).map(kOneNumber, to_inputs, "mine")}) {
    // Sample 5 is at another position in each epoch.
    EXPECT_EQ(text_of_own_error([&] { load_all(data.shuffle()); }),
              "sample 5 of the data set: the function of map() \"mine\" failed: my own error");
    EXPECT_EQ(text_of_own_error([&] { load_all(data.skip(2)); }),
              "sample 5 of the data set: the function of map() \"mine\" failed: my own error");
  }
}

TEST(UserFunction, IsNamedOnceWhereOtherMapsFollow) {
  const Dataset data = numbers(9)
                           .map([](Sample sample, Random&) { fail_at_five(sample.features[0]); })
                           .map([](Sample, Random&) {}, "later");

  EXPECT_EQ(text_of_own_error([&] { load_all(data); }),
            "sample 5 of the data set: the function of map() failed: my own error");
}

TEST(UserFunction, IsNamedWithTheLineOfItsSample) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.csv") << "area,price\n1,2\n5,3\n7,4\n";
  const Table table = read_csv(folder / "a.csv");
  const TableEncoder encoder = TableEncoder::fit(table, {.targets = {"price"}, .normalize = false});
  const Dataset data =
      encoder.dataset(table).map([](Sample sample, Random&) { fail_at_five(sample.features[0]); }, "mine");

  EXPECT_EQ(text_of_own_error([&] { load_all(data); }),
            "sample 1 (\"" + folder.path() +
                "/a.csv\", line 3) of the data set: the function of map() \"mine\" failed: my own error");
}

TEST(UserFunction, IsNamedWithItsSampleInASourceOrGenerator) {
  const auto write = [](std::int64_t sample, const SampleArrays&) { fail_at_five(static_cast<float>(sample)); };
  const Dataset source = from_source({.size = 9, .inputs = kOneNumber, .targets = {}, .content = "nine"}, write);
  const auto generate = [next = 0.0F](const SampleArrays&) mutable {
    fail_at_five(next++);
    return true;
  };

  EXPECT_EQ(text_of_own_error([&] { load_all(source.shuffle()); }),
            "sample 5 of the data set: the function of from_source() failed: my own error");
  EXPECT_EQ(text_of_own_error([&] { from_generator({.inputs = kOneNumber}, generate); }),
            "sample 5 of the data set: the function of from_generator() failed: my own error");
}

TEST(UserFunction, ThatChoosesSamplesIsNamedWithTheOneItWasAskedFor) {
  const auto keep = [](const SampleArrays& sample) {
    fail_at_five(sample.inputs.elements<float>(0)[0]);
    return true;
  };
  const auto length_of = [](const SampleArrays& sample) {
    fail_at_five(sample.inputs.elements<float>(0)[0]);
    return std::int64_t{1};
  };

  EXPECT_EQ(text_of_own_error([&] { numbers(9).skip(3).filter(keep, "mine"); }),
            "sample 5 of the data set: the function of filter() \"mine\" failed: my own error");
  EXPECT_EQ(text_of_own_error([&] { numbers(9).bucketed(2, {.bounds = {2}, .length_of = length_of}); }),
            "sample 5 of the data set: the function of bucketed() failed: my own error");
}

TEST(UserFunction, KeepsTheCodeOfItsError) {
  for (const ErrorCode code : {ErrorCode::not_found, ErrorCode::input_output}) {
    const Dataset data = numbers(3).map([code](Sample, Random&) { throw Error(code, "no row"); }, "rows");

    EXPECT_EQ(code_thrown_by([&] { load_all(data); }), code);
    EXPECT_EQ(sentence_thrown_by([&] { load_all(data); }),
              "sample 0 of the data set: the function of map() \"rows\" failed: no row");
  }
}

// Its own text is "std::bad_alloc".
TEST(UserFunction, ThatLacksMemorySaysSo) {
  const Dataset data = numbers(3).map([](Sample, Random&) { throw std::bad_alloc(); }, "rows");

  EXPECT_EQ(code_thrown_by([&] { load_all(data); }), ErrorCode::out_of_memory);
  EXPECT_THAT(sentence_thrown_by([&] { load_all(data); }), HasSubstr("there is not enough memory"));
  EXPECT_EQ(code_thrown_by([&] { data.skip_bad({.at_most = 2}); }), ErrorCode::out_of_memory);
}

}  // namespace holdfast
