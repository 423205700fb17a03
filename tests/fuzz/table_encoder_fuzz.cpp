// Reads the JSON of table encoders. One that was accepted must be written as a text that reads back to the same text,
// and can be applied: to a table that does not fit it, with an Error.

#include <cmath>

#include "fuzz_input.h"
#include "holdfast/data/table_encoder.h"

using namespace holdfast;

static const Table& table() {
  static const Table value({{"a", std::vector<double>{1, -1e300, std::nan("")}},
                            {"b", std::vector<std::string>{"x", "", "y"}},
                            {"c", std::vector<std::int64_t>{1, 2, 3}}});
  return value;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  fuzz::succeeds([&] {
    const TableEncoder encoder = TableEncoder::from_text(json);
    const std::string text = encoder.text();
    HOLDFAST_ASSERT(TableEncoder::from_text(text).text() == text);
    for (std::int64_t row = 0; row < table().rows(); ++row) {
      const Table one = table().skip(row).take(1);
      std::vector<Tensor> inputs;
      if (!fuzz::succeeds([&] { inputs = encoder.inputs(one); })) continue;
      for (const Tensor& input : inputs) {
        HOLDFAST_ASSERT(input.shape()[0] == 1);
        if (input.dtype() != DType::f32) continue;
        for (const float value : input.values()) HOLDFAST_ASSERT(std::isfinite(value));
      }
    }
  });
  return 0;
}
