#include "holdfast/data/csv.h"

#include <cstdint>
#include <vector>

#include "data/sources/gzip_reader.h"
#include "data/tables/csv_table.h"

namespace holdfast {

Table read_csv(const std::string& path, const CsvOptions& options) {
  CsvTable table(path, options);
  GzipReader reader(path, "CSV");
  // Pieces of 1 MiB keep the calls of zlib few. A file of any size takes no more
  // memory here, and a short piece is the last.
  std::vector<std::uint8_t> piece(1 << 20);
  for (std::size_t count = piece.size(); count == piece.size();) {
    count = reader.read(piece);
    table.feed({reinterpret_cast<const char*>(piece.data()), count});
  }
  return table.finish();
}

}  // namespace holdfast
