// Reads CSV files. The first byte chooses the options. The table must not depend on how the bytes are cut into pieces,
// and columns must hold what their types promise.

#include <cmath>

#include "data/tables/csv_table.h"
#include "fuzz_input.h"

using namespace holdfast;

static std::string text_of(const Table& table) {
  std::string text = table.summary();
  for (const std::string& column : table.columns()) {
    const Table whole = table.without_missing({column});
    if (whole.type(column) == ColumnType::real) {
      for (const double number : whole.numbers(column)) HOLDFAST_ASSERT(std::isfinite(number));
    } else {
      for (const std::string& cell : table.texts(column)) text += cell + "\n";
    }
  }
  return text;
}

static std::string table_of(std::string_view bytes, std::size_t piece, const CsvOptions& options) {
  CsvTable table("a.csv", options);
  for (std::size_t begin = 0; begin < bytes.size(); begin += piece) table.feed(bytes.substr(begin, piece));
  return text_of(table.finish());
}

// The text of the table, or the sentence that says why there is none.
static std::string outcome(std::string_view bytes, std::size_t piece, const CsvOptions& options) {
  try {
    return table_of(bytes, piece, options);
  } catch (const Error& error) {
    return error.what();
  }
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  CsvOptions options;
  options.header = static_cast<CsvHeader>(data[0] % 3);
  if ((data[0] & 4) != 0) {
    options.separator = ';';
    options.decimal_point = ',';
  }
  options.max_columns = 50;
  options.max_field_bytes = 100;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  HOLDFAST_ASSERT(outcome(bytes, bytes.size() + 1, options) == outcome(bytes, 3, options));
  return 0;
}
