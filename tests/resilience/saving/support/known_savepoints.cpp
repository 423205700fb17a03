#include "resilience/saving/support/known_savepoints.h"

#include <cstring>
#include <random>
#include <vector>

#include "holdfast/base/error.h"
#include "holdfast/format/array_file.h"

namespace holdfast {
namespace {

std::vector<std::uint64_t> values_of(std::int64_t step) {
  std::mt19937_64 random(static_cast<std::uint64_t>(step));
  std::vector<std::uint64_t> values(500 + (random() % 512) * (random() % 512));
  for (std::uint64_t& value : values) value = random();
  return values;
}

}  // namespace

void write_known_savepoint(FileSystem& files, const std::string& path, std::int64_t step) {
  const std::vector<std::uint64_t> values = values_of(step);
  const std::vector<format::ArrayView> arrays = {
      {.name = "values", .dtype = DType::u64, .shape = {values.size()}, .bytes = std::as_bytes(std::span(values))},
      {.name = "step", .dtype = DType::i64, .shape = {}, .bytes = std::as_bytes(std::span(&step, 1))}};
  format::write_array_file(files, path, "{}", arrays);
}

std::int64_t read_known_savepoint(FileSystem& files, const std::string& path) {
  const format::ArrayFile file = format::ArrayFile::open(files, path);
  file.verify();
  std::int64_t step = -1;
  file.read_into("step", std::as_writable_bytes(std::span(&step, 1)));
  const std::vector<std::byte> found = file.read("values");
  const std::vector<std::uint64_t> expected = values_of(step);
  const bool is_whole = found.size() == expected.size() * sizeof(std::uint64_t) &&
                        std::memcmp(found.data(), expected.data(), found.size()) == 0;
  if (!is_whole) throw Error(ErrorCode::invalid_file, path + " is not a savepoint of step " + std::to_string(step));
  return step;
}

}  // namespace holdfast
