// Products along named axes: numbers against sums that are written out, gradients against differences in the operands,
// and files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "holdfast/nn/functions.h"
#include "holdfast/nn/model.h"
#include "nn/program/model_program.h"
#include "unit/nn/support/function_layer.h"
#include "unit/nn/support/refusal.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

std::vector<float> draws(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> values(count);
  // Small multiples of a power of two, so that sums of products are exact in any order.
  for (float& value : values) value = static_cast<float>(static_cast<int>(engine() % 17) - 8) / 8;
  return values;
}

using Extents = std::map<char, std::int64_t>;

Shape shape_of(const std::string& letters, const Extents& extents) {
  std::vector<std::int64_t> shape;
  for (const char letter : letters) shape.push_back(extents.at(letter));
  return Shape(shape);
}

std::size_t place_of(const std::string& letters, const Extents& extents, const Extents& index, std::int64_t sample) {
  std::int64_t place = sample;
  for (const char letter : letters) place = place * extents.at(letter) + index.at(letter);
  return static_cast<std::size_t>(place);
}

// result[indices] += a[indices] * b[indices], for all indices of all letters.
std::vector<float> written_out(const std::string& a_letters, const std::string& b_letters, const std::string& letters,
                               const Extents& extents, const std::vector<float>& a, const std::vector<float>& b,
                               std::int64_t samples) {
  std::vector<float> result(static_cast<std::size_t>(shape_of(letters, extents).element_count() * samples));
  Extents index;
  for (const auto& [letter, extent] : extents) index[letter] = 0;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    bool goes_on = true;
    while (goes_on) {
      result[place_of(letters, extents, index, sample)] +=
          a[place_of(a_letters, extents, index, sample)] * b[place_of(b_letters, extents, index, sample)];
      goes_on = false;
      for (auto& [letter, at] : index) {
        if (++at < extents.at(letter)) {
          goes_on = true;
          break;
        }
        at = 0;
      }
    }
  }
  return result;
}

// Numbers and both gradients, which are equations too.
void expect_written_out(const std::string& a_letters, const std::string& b_letters, const std::string& letters,
                        Extents extents, std::int64_t samples) {
  std::erase_if(extents, [&](const auto& one) { return (a_letters + b_letters).find(one.first) == std::string::npos; });
  SCOPED_TRACE(a_letters + "," + b_letters + "->" + letters);
  const Value a_input = input(shape_of(a_letters, extents)), b_input = input(shape_of(b_letters, extents));
  const FunctionLayer a_shift([](const Value&x) { return x; }), b_shift([](const Value&x) { return x; });
  const Model model({a_input, b_input},
                    {einsum(a_letters + "," + b_letters + "->" + letters, a_shift(a_input), b_shift(b_input))});
  ModelProgram program(model, 1);
  const std::vector<float> a = draws(static_cast<std::size_t>(a_input.shape().element_count() * samples), 1),
                           b = draws(static_cast<std::size_t>(b_input.shape().element_count() * samples), 2),
                           g = draws(static_cast<std::size_t>(model.output_shape().element_count() * samples), 3),
                           parameters(model.parameters().float_count());
  std::vector<float> gradients(parameters.size(), 77);

  program.prepare_training(samples, {});
  const ModelProgram::Inputs inputs = {reinterpret_cast<const std::byte*>(a.data()),
                                       reinterpret_cast<const std::byte*>(b.data())};
  const ModelProgram::Outputs outputs = program.run_training(inputs, samples, parameters);
  const auto* const result = reinterpret_cast<const float*>(outputs.at(0));
  const std::vector<float> found(result, result + g.size());
  program.backward(g, parameters, gradients, {});

  EXPECT_EQ(found, written_out(a_letters, b_letters, letters, extents, a, b, samples));
  const auto summed = [&](const std::vector<float>& of_samples) {
    std::vector<float> sum(of_samples.size() / static_cast<std::size_t>(samples));
    for (std::size_t i = 0; i < of_samples.size(); ++i) sum[i % sum.size()] += of_samples[i];
    return sum;
  };
  std::vector<float> expected = summed(written_out(letters, b_letters, a_letters, extents, g, b, samples));
  const std::vector<float> of_b = summed(written_out(a_letters, letters, b_letters, extents, a, g, samples));
  for (std::size_t entry = 0; entry < 2; ++entry) {
    const std::span<const float> of_entry = model.parameters().view(std::span<const float>(gradients), entry);
    EXPECT_EQ(std::vector<float>(of_entry.begin(), of_entry.end()), entry == 0 ? expected : of_b) << entry;
  }
}

TEST(Einsum, IsTheSumThatItsEquationWritesOut) {
  const Extents extents = {{'t', 3}, {'s', 4}, {'h', 2}, {'d', 5}, {'g', 2}};
  for (const std::int64_t samples : {1, 3}) {
    expect_written_out("thd", "shd", "hts", extents, samples);
    expect_written_out("hts", "shd", "thd", extents, samples);
    expect_written_out("tghd", "shd", "hgts", extents, samples);
    expect_written_out("hgts", "shd", "tghd", extents, samples);
    expect_written_out("td", "sd", "ts", extents, samples);
    expect_written_out("td", "sd", "st", extents, samples);
    expect_written_out("td", "td", "t", extents, samples);
    expect_written_out("d", "d", "", extents, samples);
    expect_written_out("t", "s", "ts", extents, samples);
    expect_written_out("t", "ts", "ts", extents, samples);
    expect_written_out("dt", "st", "sdt", extents, samples);
    expect_written_out("th", "hd", "td", extents, samples);
    expect_written_out("htgd", "gshd", "sght", extents, samples);
  }
}

TEST(Einsum, TakesAWeightThatAllSamplesShare) {
  class Weighted final : public LayerOf<Weighted> {
   public:
    Weighted() : LayerOf("") {}
    std::string_view kind() const override { return "test.Weighted"; }
    std::vector<Value> build(LayerBuilder& builder, std::span<const Value> inputs) const override {
      return {einsum("td,ds->ts", inputs[0], builder.parameter("w", {2, 2}, Initializer::ones()))};
    }
    void write_config(ConfigWriter&) const override {}
  };
  const Value x = input({1, 2});
  const Model model(x, Weighted()(x));
  ModelProgram program(model, 1);
  const std::vector<float> numbers = {1, 2, 3, 4}, g = {1, 10, 1, 1},
                           parameters(model.parameters().float_count(), 1.0F);
  std::vector<float> gradients(parameters.size());

  program.prepare_training(2, {});
  program.run_training({reinterpret_cast<const std::byte*>(numbers.data())}, 2, parameters);
  program.backward(g, parameters, gradients, {});

  EXPECT_THAT(std::span(gradients).first(4), testing::ElementsAre(4, 13, 6, 24));
}

TEST(Matmul, MultipliesTheMatricesOfEachSample) {
  const Value a = input({2, 1, 3}), b = input({3, 2});
  Model model({a, b}, {matmul(a, b)});
  model.set_weights({}, {});

  const Tensor product = model.predict(
      std::vector<Tensor>{Tensor(Shape{2, 2, 1, 3}, std::vector<float>{1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 1, 0}),
                          Tensor(Shape{2, 3, 2}, std::vector<float>{1, 0, 0, 1, 1, 1, 1, 2, 3, 4, 5, 6})})[0];

  EXPECT_EQ(product.shape(), (Shape{2, 2, 1, 2}));
  EXPECT_THAT(product.values(), testing::ElementsAre(4, 5, 10, 11, 1, 2, 3, 4));
}

TEST(Matmul, RepeatsAxesOfExtentOne) {
  const Value a = input({1, 2, 3}), b = input({4, 3, 2});

  EXPECT_EQ(matmul(a, b).shape(), (Shape{4, 2, 2}));
  EXPECT_EQ(matmul(b, a).shape(), (Shape{4, 3, 3}));
  EXPECT_THAT(refusal([] { matmul(input({2, 2, 3}), input({4, 3, 2})); }), HasSubstr("equal axes before the last two"));
  EXPECT_THAT(refusal([] { matmul(input({2, 3}), input({2, 3})); }), HasSubstr("not [2, 3] by [2, 3]"));
}

TEST(Einsum, GoesThroughAFile) {
  const Value a = input({3, 2}), b = input({4, 2});
  const Model model({a, b}, {einsum("td,sd->ts", a, b)});

  const Model read = Model::from_graph(model.graph());

  EXPECT_EQ(read.graph(), model.graph());
  EXPECT_THAT(model.graph(), HasSubstr("td,sd-"));
}

TEST(Einsum, SaysWhichEquationsItCannotCompute) {
  const Value x = input({3, 2});
  const auto refused = [&](const std::string& equation) { return refusal([&] { einsum(equation, x, x); }); };

  EXPECT_THAT(refused("td"), HasSubstr("write it as"));
  EXPECT_THAT(refused("t1,td->t"), HasSubstr("axes are letters"));
  EXPECT_THAT(refused("tt,td->d"), HasSubstr("the axis t stands twice in one term"));
  EXPECT_THAT(refused("td,sd->s"), HasSubstr("the axis t stands in one term alone; sum() over it first"));
  EXPECT_THAT(refused("abc,ab->c"), HasSubstr("does not fit a value of shape [3, 2]"));
  EXPECT_THAT(refused("td,dt->td"), HasSubstr("the axis d has 2 elements in one operand and 3 in the other"));
}

}  // namespace
}  // namespace holdfast
