#pragma once

// Reads tables from Parquet files, as read_csv() does from text. It is an optional part on Apache Arrow: programs that
// use it link Holdfast::parquet, which is there where the build found Arrow (HOLDFAST_ARROW, docs/install.md).
//
//   const Table houses = read_parquet("houses.parquet", {.columns = {"area", "town", "price"}});
//   const auto encoder = TableEncoder::fit(houses, {.targets = {"price"}});

#include <cstdint>
#include <string>
#include <vector>

#include "holdfast/data/table.h"

namespace holdfast {

// Limits of what read_parquet() takes.
struct ParquetOptions {
  // The columns to read, in this order. Empty: all, which must then have types that a Table has.
  std::vector<std::string> columns = {};
  // Checked by what the file says of itself, before it is decoded.
  std::int64_t max_rows = 100'000'000;
  // Limits the columns that are read, twice: what the file stores of them, after decompression, and the cells of the
  // table, 8 bytes for each and its characters for a text. A file may store a number or a word once for all rows. Texts
  // are counted before a row group goes into the table, and to decode it Arrow gets four times as much, and 64 MiB
  // more.
  std::int64_t max_bytes = std::int64_t{2} << 30;
};

// Integers up to 64 bits and booleans (0 and 1) are columns of integers, floats of reals, and strings of text, also
// where the file keeps them as a dictionary. A null, a NaN and an empty text are cells without a value.
//
// Throws as read_csv() does: Error{not_found}, {refused} or {input_output} if the file cannot be opened or read, and
// Error{invalid_file} that names the file for one that is damaged, encrypted or no Parquet file, for a file without
// rows, two columns of one name, a limit that is exceeded, an integer above 2^63 - 1, an infinite number, and text that
// is not UTF-8 or holds a NUL; the row is counted from 0. Throws Error{unsupported} that names the column for dates,
// times, decimals, bytes and nested columns, and Error{invalid_argument} for a name in `columns` that is not a column.
Table read_parquet(const std::string& path, const ParquetOptions& options = {});

}  // namespace holdfast
