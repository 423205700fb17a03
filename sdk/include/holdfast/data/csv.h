#pragma once

// Reads tables from CSV files (RFC 4180), plain or compressed by gzip; the content decides which, not the name.
//
//   const Table houses = read_csv("houses.csv");
//   const Table winds = read_csv("wind.csv.gz", {.separator = ';', .decimal_point = ',',
//                                                .types = {{"station", ColumnType::text}}});
//
// A field may be in quotes, and then holds separators, line ends and, doubled, quotes. Lines end in LF or CR LF. A
// UTF-8 byte order mark at the begin is skipped, and so are empty lines. Spaces and tabs around a field do not count,
// unless they are within its quotes. The locale of the program has no influence.
//
// Each column gets the narrowest type that all its values have: integer, real, or text. A cell without a value is
// allowed everywhere: Table::without_missing() leaves its row out, and TableEncoder refuses it by file, line and column
// or fills it, as its options say.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "holdfast/data/table.h"

namespace holdfast {

// Whether the first line holds the names of the columns.
enum class CsvHeader {
  detect,   // the first line holds the names of the columns unless one of its fields is a number
  present,  // it holds them
  absent,   // it is a row; columns are named "column_1", "column_2", ...
};

// How a CSV file is written, and what read_csv() accepts.
struct CsvOptions {
  char separator = ',';                  // one ASCII character: not a letter, digit, quote, minus, plus or line end
  char decimal_point = '.';              // or ','
  CsvHeader header = CsvHeader::detect;  // see CsvHeader
  // Names for all columns, in their order, which replace those of the file. A column with an empty name is called
  // "column_N", counted from 1.
  std::vector<std::string> names = {};
  // The types of columns whose type is given instead of detected: an article number or a postal code is text. A value
  // that is not of the type is an error.
  std::map<std::string, ColumnType> types = {};
  // Fields that stand for no value, spelled exactly so.
  std::vector<std::string> missing = {"", "NA", "N/A", "NaN", "nan", "null", "NULL"};

  // Lines with more or fewer fields than the first one that may be left out; more are an error. Those that are left out
  // are counted in Table::skipped_rows(), and in the log and the report of a run that trains with the table.
  std::int64_t skip_ragged = 0;

  // Limits, each of which is checked before the memory for what exceeds it is taken. A table needs about as much memory
  // as its file has bytes, and 8 bytes a cell.
  std::int64_t max_bytes = std::int64_t{2} << 30;  // of the content, after decompression
  std::int64_t max_rows = 100'000'000;
  std::int64_t max_columns = 10'000;
  std::int64_t max_field_bytes = 1 << 20;
};

// Throws Error{not_found}, {refused} or {input_output} if the file cannot be opened or read. Throws Error{invalid_file}
// that names the file, the line, the column and the remedy for
//   - more lines than skip_ragged allows that have more or fewer fields than the first one, an unclosed quote, or a
//     quote inside of a field that has none around it;
//   - a NUL, text that is not UTF-8, or a carriage return without a line feed;
//   - a number outside of the range of its type, or a value that has not the type that was declared;
//   - a file without rows, two columns of one name, or a limit that is exceeded.
// Throws Error{invalid_argument} for options that can never work, and for names in `types` that are not columns.
Table read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace holdfast
