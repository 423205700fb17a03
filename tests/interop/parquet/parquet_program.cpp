// parquet_program MAX_BYTES FILE [COLUMN...]: prints the table of a Parquet file as JSON: for each column its name, its
// type, and its cells, null where there is no value. Prints "refused: " and the sentence if it cannot be read.

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/data/parquet.h"

namespace {

using holdfast::ColumnType;
using holdfast::Table;

nlohmann::json json_of_column(const Table& table, const std::string& name) {
  const ColumnType type = table.type(name);
  const Table filled = table.without_missing({name});
  const std::vector<std::string> texts = type == ColumnType::real ? std::vector<std::string>() : filled.texts(name);
  const std::vector<double> numbers = type == ColumnType::real ? filled.numbers(name) : std::vector<double>();
  nlohmann::json cells = nlohmann::json::array();
  std::size_t next = 0;
  for (std::int64_t row = 0; row < table.rows(); ++row) {
    if (table.is_missing(name, row)) {
      cells.push_back(nullptr);
    } else if (type == ColumnType::real) {
      cells.push_back(numbers[next++]);
    } else {
      // Integers as texts: JSON readers may take large ones for floats.
      cells.push_back(texts[next++]);
    }
  }
  const char* const types[] = {"integer", "real", "text"};
  return {{"name", name}, {"type", types[static_cast<int>(type)]}, {"cells", std::move(cells)}};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Table table =
        holdfast::read_parquet(argv[2], {.columns = {argv + 3, argv + argc}, .max_bytes = std::stoll(argv[1])});
    nlohmann::json columns = nlohmann::json::array();
    for (const std::string& name : table.columns()) columns.push_back(json_of_column(table, name));
    std::puts(columns.dump().c_str());
    return 0;
  } catch (const holdfast::Error& error) {
    std::printf("refused: %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    return 1;
  }
}
