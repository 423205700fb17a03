// Arrow decodes, and this makes columns of a Table of its arrays. One group of rows is decoded at a time, so that the
// arrays of Arrow and the columns of the table are never both there as a whole. The library is a part of its own: a
// program that reads no Parquet needs no Arrow. See docs/decisions/tables.md.

#include "holdfast/data/parquet.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/exception.h>
#include <parquet/metadata.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "data/tables/table_data.h"
#include "holdfast/base/error.h"
#include "holdfast/base/regular_file.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"

namespace holdfast {
namespace {

// Arrow decodes a whole row group, and what it becomes is only known then: a word that the file stores once may stand
// in each row. So the memory for that has a bound, too.
class LimitedPool final : public arrow::ProxyMemoryPool {
 public:
  explicit LimitedPool(std::int64_t most_bytes)
      : ProxyMemoryPool(arrow::default_memory_pool()), most_bytes_(most_bytes) {}

  using MemoryPool::Allocate;
  using MemoryPool::Reallocate;
  arrow::Status Allocate(std::int64_t size, std::int64_t alignment, std::uint8_t** out) override {
    ARROW_RETURN_NOT_OK(check(size));
    return ProxyMemoryPool::Allocate(size, alignment, out);
  }
  arrow::Status Reallocate(std::int64_t old_size, std::int64_t new_size, std::int64_t alignment,
                           std::uint8_t** memory) override {
    // Both exist while one is copied to the other.
    ARROW_RETURN_NOT_OK(check(new_size));
    return ProxyMemoryPool::Reallocate(old_size, new_size, alignment, memory);
  }

  bool was_exceeded() const { return was_exceeded_; }

 private:
  arrow::Status check(std::int64_t size) {
    if (size <= most_bytes_ - bytes_allocated()) return arrow::Status::OK();
    was_exceeded_ = true;
    return arrow::Status::OutOfMemory("more than ", most_bytes_, " bytes are needed to decode a row group");
  }

  const std::int64_t most_bytes_;
  // Arrow may read ahead in a thread of its own.
  std::atomic<bool> was_exceeded_ = false;
};

// Arrow grows arrays by doubling them, and holds pages besides.
std::int64_t most_arrow_bytes(std::int64_t max_bytes) {
  constexpr std::int64_t kPages = std::int64_t{64} << 20;
  std::int64_t most = 0;
  const bool is_unbounded = __builtin_mul_overflow(max_bytes, 4, &most) || __builtin_add_overflow(most, kPages, &most);
  return is_unbounded ? std::numeric_limits<std::int64_t>::max() : most;
}

// One reading of one file. Arrow reports failures by a Status, and Parquet's own code by exceptions, which
// read_parquet() catches.
class ParquetTable {
 public:
  ParquetTable(const std::string& path, const ParquetOptions& options)
      : options_(options), pool_(most_arrow_bytes(options.max_bytes)) {
    data_.path = path;
  }

  Table read() {
    open();
    choose_columns();
    check_limits();
    for (int group = 0; group < reader_->num_row_groups(); ++group) {
      append(*value_of(reader_->ReadRowGroup(group, leaves_)));
    }
    if (data_.rows == 0) refuse("it holds no row; look at the program that wrote it");
    return Table(std::make_shared<const TableData>(std::move(data_)));
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: {}", quoted_path(data_.path), reason));
  }
  [[noreturn]] void refuse_cell(const TableColumn& column, std::size_t row, const std::string& reason) const {
    refuse(fmt::format("row {}, column {}: {}; correct it, or leave the column out by ParquetOptions::columns", row,
                       quoted_text(column.name), reason));
  }

  // Text of Arrow may quote bytes of the file, so it is shown without control characters.
  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    if (pool_.was_exceeded()) {
      refuse(fmt::format("a row group takes much more memory than {} bytes to decode; raise max_bytes to read it",
                         options_.max_bytes));
    }
    if (status.IsOutOfMemory()) throw Error(ErrorCode::out_of_memory, status.ToString());
    refuse(fmt::format("Arrow cannot read it ({}); it is not a whole Parquet file, or is one of another kind",
                       shown_text(status.ToString())));
  }
  template <typename Value>
  Value value_of(arrow::Result<Value> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }

  void open() {
    FileDescriptor file = open_regular_file(data_.path, O_RDONLY, fmt::format("open {}", quoted_path(data_.path)));
    // The object of Arrow closes the descriptor, also if it cannot be made.
    const auto input = value_of(arrow::io::ReadableFile::Open(file.release()));
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(input, parquet::ReaderProperties(&pool_)));
    builder.memory_pool(&pool_);
    reader_ = value_of(builder.Build());
  }

  // Columns are chosen by the fields of the schema, and not by its leaves: a nested field has several, and is refused
  // by name.
  void choose_columns() {
    const auto& fields = reader_->manifest().schema_fields;
    // All names at first, since index_of() looks a name up among the columns of the table; the chosen ones follow.
    for (const parquet::arrow::SchemaField& field : fields) data_.columns.push_back({.name = field.field->name()});
    std::vector<std::size_t> chosen;
    for (const std::string& name : options_.columns) chosen.push_back(data_.index_of(name));
    if (options_.columns.empty()) {
      for (std::size_t i = 0; i < fields.size(); ++i) chosen.push_back(i);
    }
    data_.columns.clear();
    for (const std::size_t i : chosen) {
      const arrow::Field& field = *fields[i].field;
      data_.columns.push_back({.name = field.name(), .type = type_of(field)});
      leaves_.push_back(fields[i].column_index);
    }
    if (data_.columns.empty()) refuse("it has no columns");
    check_column_names(data_, ErrorCode::invalid_file);
  }

  // A dictionary is only how the file stores a column: its words say what type the column has.
  ColumnType type_of(const arrow::Field& field) const {
    const arrow::DataType* type = field.type().get();
    if (type->id() == arrow::Type::DICTIONARY) {
      type = static_cast<const arrow::DictionaryType*>(type)->value_type().get();
    }
    if (arrow::is_integer(type->id()) || type->id() == arrow::Type::BOOL) return ColumnType::integer;
    if (type->id() == arrow::Type::FLOAT || type->id() == arrow::Type::DOUBLE) return ColumnType::real;
    if (type->id() == arrow::Type::STRING || type->id() == arrow::Type::LARGE_STRING) return ColumnType::text;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}, column {} is of {}, and tables have integers, floats and strings; write it as one of "
                            "these, or leave it out by ParquetOptions::columns",
                            quoted_path(data_.path), quoted_text(field.name()), type->ToString()));
  }

  // Adds to a count of bytes. The file says most of these numbers, so they may be negative or overflow the sum.
  void count(std::int64_t& bytes, std::int64_t more) const {
    if (more >= 0 && !__builtin_add_overflow(bytes, more, &bytes) && bytes <= options_.max_bytes) return;
    refuse(fmt::format("its columns have more than {} bytes of content; raise max_bytes to read them",
                       options_.max_bytes));
  }

  // By the metadata, so a file that is too large is refused before anything of it is decoded. What it stores and what
  // the table holds differ: a number that all rows have may take a few bytes of the file. Texts are counted where their
  // lengths are known, in append().
  void check_limits() {
    const std::shared_ptr<parquet::FileMetaData> metadata = reader_->parquet_reader()->metadata();
    if (metadata->num_rows() > options_.max_rows) {
      refuse(fmt::format("it has {} rows, more than {}; raise max_rows to read them", metadata->num_rows(),
                         options_.max_rows));
    }
    std::int64_t stored_bytes = 0;
    for (int group = 0; group < metadata->num_row_groups(); ++group) {
      const auto row_group = metadata->RowGroup(group);
      for (const int leaf : leaves_) {
        const auto chunk = row_group->ColumnChunk(leaf);
        count(stored_bytes, chunk->total_uncompressed_size());
        std::int64_t cells = 0;
        const bool is_too_much = __builtin_mul_overflow(chunk->num_values(), kCellBytes, &cells);
        count(table_bytes_, is_too_much ? -1 : cells);
      }
    }
  }

  // What the cells of a column of text take besides kCellBytes.
  std::int64_t text_bytes(const arrow::Array& array) const {
    if (array.type_id() == arrow::Type::STRING) {
      return static_cast<const arrow::StringArray&>(array).total_values_length();
    }
    if (array.type_id() == arrow::Type::LARGE_STRING) {
      return static_cast<const arrow::LargeStringArray&>(array).total_values_length();
    }
    if (array.type_id() != arrow::Type::DICTIONARY) return 0;
    const auto& cells = static_cast<const arrow::DictionaryArray&>(array);
    const arrow::Array& words = *cells.dictionary();
    if (words.type_id() == arrow::Type::STRING) {
      return bytes_of_words(cells, static_cast<const arrow::StringArray&>(words));
    }
    if (words.type_id() == arrow::Type::LARGE_STRING) {
      return bytes_of_words(cells, static_cast<const arrow::LargeStringArray&>(words));
    }
    return 0;
  }

  template <typename Words>
  std::int64_t bytes_of_words(const arrow::DictionaryArray& cells, const Words& words) const {
    std::int64_t bytes = 0;
    for (std::int64_t i = 0; i < cells.length(); ++i) {
      // append_dictionary() refuses a word that is not there.
      if (cells.IsNull(i) || !std::in_range<std::size_t>(cells.GetValueIndex(i))) continue;
      if (cells.GetValueIndex(i) < words.length()) count(bytes, words.value_length(cells.GetValueIndex(i)));
    }
    return bytes;
  }

  // Rows of `missing` are filled up last: a column without an empty cell in this group has not grown it.
  void append(const arrow::Table& group) {
    for (const std::shared_ptr<arrow::ChunkedArray>& column : group.columns()) {
      for (const std::shared_ptr<arrow::Array>& chunk : column->chunks()) count(table_bytes_, text_bytes(*chunk));
    }
    for (int i = 0; i < group.num_columns(); ++i) {
      // Arrow may give the columns in the order of the file.
      TableColumn& column = data_.columns[data_.index_of(group.field(i)->name())];
      std::size_t row = static_cast<std::size_t>(data_.rows);
      for (const std::shared_ptr<arrow::Array>& chunk : group.column(i)->chunks()) append_array(*chunk, column, row);
    }
    data_.rows += group.num_rows();
    for (TableColumn& column : data_.columns) {
      if (!column.missing.empty()) column.missing.resize(static_cast<std::size_t>(data_.rows));
    }
  }

  // Rows from `row` on, which then is the one after them. The switch is on what the chunk holds, since a dictionary's
  // words come here too.
  void append_array(const arrow::Array& array, TableColumn& column, std::size_t& row) {
    switch (array.type_id()) {
      case arrow::Type::DICTIONARY:
        return append_dictionary(static_cast<const arrow::DictionaryArray&>(array), column, row);
      case arrow::Type::BOOL:
        return append_values<arrow::BooleanArray>(array, column, row);
      case arrow::Type::INT8:
        return append_values<arrow::Int8Array>(array, column, row);
      case arrow::Type::INT16:
        return append_values<arrow::Int16Array>(array, column, row);
      case arrow::Type::INT32:
        return append_values<arrow::Int32Array>(array, column, row);
      case arrow::Type::INT64:
        return append_values<arrow::Int64Array>(array, column, row);
      case arrow::Type::UINT8:
        return append_values<arrow::UInt8Array>(array, column, row);
      case arrow::Type::UINT16:
        return append_values<arrow::UInt16Array>(array, column, row);
      case arrow::Type::UINT32:
        return append_values<arrow::UInt32Array>(array, column, row);
      case arrow::Type::UINT64:
        return append_values<arrow::UInt64Array>(array, column, row);
      case arrow::Type::FLOAT:
        return append_values<arrow::FloatArray>(array, column, row);
      case arrow::Type::DOUBLE:
        return append_values<arrow::DoubleArray>(array, column, row);
      case arrow::Type::STRING:
        return append_values<arrow::StringArray>(array, column, row);
      case arrow::Type::LARGE_STRING:
        return append_values<arrow::LargeStringArray>(array, column, row);
      default:
        refuse(fmt::format("column {} holds {}, which its schema does not say", quoted_text(column.name),
                           array.type()->ToString()));
    }
  }

  template <typename Array>
  void append_values(const arrow::Array& array, TableColumn& column, std::size_t& row) {
    const auto& values = static_cast<const Array&>(array);
    for (std::int64_t i = 0; i < values.length(); ++i) {
      if (values.IsNull(i)) {
        append_none(column, row++);
      } else {
        append_value(values.GetView(i), column, row++);
      }
    }
  }

  // Not decoded by Arrow: it would make an array of all texts of a group, besides the column here.
  void append_dictionary(const arrow::DictionaryArray& array, TableColumn& column, std::size_t& row) {
    // The words once, as a column of their own; then each cell takes one of them.
    const std::int64_t words = array.dictionary()->length();
    for (std::int64_t i = 0; i < array.length(); ++i) {
      if (array.IsNull(i)) {
        append_none(column, row++);
        continue;
      }
      const std::int64_t word = array.GetValueIndex(i);
      if (word < 0 || word >= words) refuse_cell(column, row, "the word that it names is not in its dictionary");
      append_array(*array.dictionary()->Slice(word, 1), column, row);
    }
  }

  // An empty cell has a value too, 0 or an empty text, so that the places of later rows stay right.
  void append_none(TableColumn& column, std::size_t row) {
    if (column.type == ColumnType::integer) column.integers.push_back(0);
    if (column.type == ColumnType::real) column.reals.push_back(0);
    if (column.type == ColumnType::text) column.texts.append({});
    column.missing.resize(row + 1);
    column.missing[row] = true;
  }

  // The same rules as for the columns of other tables (data/tables/table.cpp).
  template <typename Value>
  void append_value(const Value& value, TableColumn& column, std::size_t row) {
    if constexpr (std::is_convertible_v<Value, std::string_view>) {
      const std::string_view text = value;
      if (text.empty()) return append_none(column, row);
      if (!is_utf8(text) || text.find('\0') != std::string_view::npos) {
        refuse_cell(column, row, "its text is not UTF-8, or holds a NUL");
      }
      column.texts.append(text);
    } else if constexpr (std::is_floating_point_v<Value>) {
      if (std::isnan(value)) return append_none(column, row);
      if (std::isinf(value)) refuse_cell(column, row, "it is infinite");
      column.reals.push_back(static_cast<double>(value));
    } else {
      if (!std::in_range<std::int64_t>(static_cast<Wide<Value>>(value))) {
        refuse_cell(column, row, fmt::format("{} has more than 63 bits", value));
      }
      column.integers.push_back(static_cast<std::int64_t>(value));
    }
    if (!column.missing.empty()) column.missing.resize(row + 1);
  }

  // std::in_range() takes no bool.
  template <typename Value>
  using Wide = std::conditional_t<std::is_same_v<Value, bool>, std::uint8_t, Value>;

  // What a number takes, or the end of a text.
  static constexpr std::int64_t kCellBytes = 8;

  // They belong to the caller of read_parquet(), whose call outlives this object.
  const ParquetOptions& options_;
  TableData data_;
  LimitedPool pool_;  // of all that the reader holds
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::vector<int> leaves_;       // of the columns, as Arrow numbers them
  std::int64_t table_bytes_ = 0;  // of the cells of all groups, and of the texts of the groups so far
};

}  // namespace

Table read_parquet(const std::string& path, const ParquetOptions& options) {
  for (const std::int64_t limit : {options.max_rows, options.max_bytes}) {
    if (limit < 1) {
      throw Error(ErrorCode::invalid_argument, fmt::format("read_parquet(): limits are 1 or more, not {}", limit));
    }
  }
  try {
    return ParquetTable(path, options).read();
  } catch (const parquet::ParquetException& exception) {
    throw Error(ErrorCode::invalid_file, fmt::format("{}: Arrow cannot read it ({}); it is not a whole Parquet file",
                                                     quoted_path(path), shown_text(exception.what())));
  }
}

}  // namespace holdfast
