#include "gpu/layers/support/layer_test.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace holdfast::compute {
namespace {

using DeviceArrayKernels = LayerTest;

// The functions of the libraries differ by a few units in the last place.
constexpr float kFunctionTolerance = 4e-6F;

ElementOperand input(std::uint8_t index) {
  return {ElementOperand::Kind::input, index};
}

// `function` of up to three inputs.
ElementProgram program_of(ElementFunction function) {
  ElementProgram program;
  program.input_count = static_cast<std::uint8_t>(operand_count(function));
  program.instruction_count = 1;
  program.output_count = 1;
  program.instructions[0].function = function;
  for (std::uint8_t i = 0; i < program.input_count; ++i) program.instructions[0].operands[i] = input(i);
  return program;
}

// A NaN is equal to no number, so each becomes one that no function gives.
Floats with_marked_nans(Floats floats) {
  for (float& value : floats) value = std::isnan(value) ? 12345.0F : value;
  return floats;
}

TEST_F(DeviceArrayKernels, FunctionsOfElementsGiveTheHostsNumbers) {
  constexpr std::int64_t kCount = 1000;
  const ElementShape shape = {.axes = 1, .extents = {kCount}, .strides = {{1}, {1}, {1}}};
  Floats a = values(1, kCount), b = values(2, kCount);
  const Floats c = values(3, kCount);
  a[0] = b[1] = NAN;
  a[2] = b[2];
  for (int function = 0; function <= static_cast<int>(ElementFunction::select); ++function) {
    const ElementProgram program = program_of(static_cast<ElementFunction>(function));
    Floats expected(kCount);
    const DeviceArray device_a = upload(a), device_b = upload(b), device_c = upload(c), result = output(kCount);
    const float* const on_host[] = {a.data(), b.data(), c.data()};
    const float* const on_device[] = {device_a.data(), device_b.data(), device_c.data()};
    float* const host_output = expected.data();
    float* const device_output = result.data();

    host().array_kernels().elements(program, shape, std::span(on_host).first(program.input_count), {&host_output, 1});
    backend().array_kernels().elements(program, shape, std::span(on_device).first(program.input_count),
                                       {&device_output, 1});

    EXPECT_EQ(differences(with_marked_nans(expected), with_marked_nans(result.values()), kFunctionTolerance), "")
        << name_of(static_cast<ElementFunction>(function));
  }
}

TEST_F(DeviceArrayKernels, ProgramsOfSeveralInstructionsAndBroadcastInputsGiveTheHostsBits) {
  // (a * b + 2) - a, where a is [3, 1, 5] and b is [4, 1], to [3, 4, 5]; the product is a second output.
  ElementProgram program;
  program.input_count = 2;
  program.constant_count = 1;
  program.constants[0] = 2;
  program.instruction_count = 3;
  program.output_count = 2;
  program.outputs[0] = 2;
  program.outputs[1] = 0;
  program.instructions[0] = {ElementFunction::multiply, {input(0), input(1)}};
  program.instructions[1] = {ElementFunction::add,
                             {{ElementOperand::Kind::result, 0}, {ElementOperand::Kind::constant, 0}}};
  program.instructions[2] = {ElementFunction::subtract, {{ElementOperand::Kind::result, 1}, input(0)}};
  const ElementShape shape = {.axes = 3, .extents = {3, 4, 5}, .strides = {{5, 0, 1}, {0, 1, 0}}};
  const Floats a = values(1, 15), b = values(2, 4);
  Floats expected(60), expected_product(60);
  const DeviceArray device_a = upload(a), device_b = upload(b), result = output(60), product = output(60);
  const float* const on_host[] = {a.data(), b.data()};
  const float* const on_device[] = {device_a.data(), device_b.data()};
  float* const host_outputs[] = {expected.data(), expected_product.data()};
  float* const device_outputs[] = {result.data(), product.data()};

  host().array_kernels().elements(program, shape, on_host, host_outputs);
  backend().array_kernels().elements(program, shape, on_device, device_outputs);

  EXPECT_EQ(expected[0], a[0] * b[0] + 2 - a[0]);
  EXPECT_EQ(expected[59], a[14] * b[3] + 2 - a[14]);
  EXPECT_EQ(expected_product[59], a[14] * b[3]);
  EXPECT_EQ(bit_differences(expected, result.values()), "");
  EXPECT_EQ(bit_differences(expected_product, product.values()), "");
}

TEST_F(DeviceArrayKernels, CopiesAlongStridesGiveTheHostsBits) {
  // The transpose of [3, 4], backwards, with each element twice.
  const StridedCopy copy = {.axes = 3,
                            .extents = {4, 3, 2},
                            .from_strides = {-1, 4, 0},
                            .to_strides = {6, 2, 1},
                            .from_offset = 3,
                            .to_offset = 1};
  const Floats from = values(1, 12);
  Floats expected(25, 0.0F);
  const DeviceArray device_from = upload(from), result = upload(expected);

  host().array_kernels().copy(copy, from.data(), expected.data());
  backend().array_kernels().copy(copy, device_from.data(), result.data());

  EXPECT_EQ(expected[1], from[3]);
  EXPECT_EQ(expected[2], from[3]);
  EXPECT_EQ(expected[24], from[8]);
  EXPECT_EQ(bit_differences(expected, result.values()), "");
}

TEST_F(DeviceArrayKernels, ReductionsGiveTheHostsBits) {
  for (const ReductionKind kind : {ReductionKind::sum, ReductionKind::mean, ReductionKind::maximum}) {
    for (const RowReduction& extents :
         {RowReduction{.outer = 3, .reduced = 5, .inner = 7}, RowReduction{.outer = 10, .reduced = 1000, .inner = 1},
          RowReduction{.outer = 1, .reduced = 300, .inner = 33}}) {
      RowReduction reduction = extents;
      reduction.kind = kind;
      const Floats from = values(1, reduction.outer * reduction.reduced * reduction.inner);
      Floats expected(static_cast<std::size_t>(reduction.outer * reduction.inner));
      const DeviceArray device_from = upload(from), result = output(reduction.outer * reduction.inner);

      host().array_kernels().reduce(reduction, from.data(), expected.data());
      backend().array_kernels().reduce(reduction, device_from.data(), result.data());

      EXPECT_EQ(bit_differences(expected, result.values()), "") << fmt::format(
          "kind {} of [{}, {}, {}]", static_cast<int>(kind), reduction.outer, reduction.reduced, reduction.inner);
    }
  }
}

TEST_F(DeviceArrayKernels, ConversionsOfRowsGiveTheHostsBits) {
  // Rows of 7 words, in which an array of 3 elements begins at word 2. All bits occur.
  const Floats rows = values(4, 70);
  for (const DType from : {DType::f32, DType::bf16, DType::i32, DType::i64, DType::u8, DType::u16}) {
    for (const DType to : {DType::f32, DType::i32}) {
      const bool is_of_floats = from == DType::f32 || from == DType::bf16;
      if (is_of_floats && to == DType::i32) continue;
      const RowConversion conversion = {
          .from = from, .to = to, .rows = 10, .elements = from == DType::i64 ? 2 : 3, .row_words = 7, .first_word = 2};
      const std::int64_t count = conversion.rows * conversion.elements;
      Floats expected(static_cast<std::size_t>(count));
      const DeviceArray device_rows = upload(rows), result = output(count);

      host().array_kernels().convert(conversion, rows.data(), expected.data());
      backend().array_kernels().convert(conversion, device_rows.data(), result.data());

      EXPECT_EQ(bit_differences(expected, result.values()), "") << name(from) << " to " << name(to);
    }
  }
}

TEST_F(DeviceArrayKernels, GatheredRowsAndTheirSumsGiveTheHostsBits) {
  const RowGather gather = {.ids = 300, .table_rows = 11, .width = 5, .ids_per_sample = 3};
  const Floats table = values(1, 55), arriving = values(2, 1500);
  Floats ids(300);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = std::bit_cast<float>(static_cast<std::int32_t>(i * i % 11));
  Floats expected(1500), expected_sums(55);
  const DeviceArray device_table = upload(table), device_arriving = upload(arriving), device_ids = upload(ids);
  const DeviceArray result = output(1500), sums = output(55);

  host().array_kernels().gather(gather, table.data(), ids.data(), expected.data());
  host().array_kernels().scatter_sum(gather, arriving.data(), ids.data(), expected_sums.data());
  backend().array_kernels().gather(gather, device_table.data(), device_ids.data(), result.data());
  backend().array_kernels().scatter_sum(gather, device_arriving.data(), device_ids.data(), sums.data());

  EXPECT_EQ(expected[5], table[5]);  // id 1 is the second one
  EXPECT_EQ(bit_differences(expected, result.values()), "");
  EXPECT_EQ(bit_differences(expected_sums, sums.values()), "");
}

}  // namespace
}  // namespace holdfast::compute
