#pragma once

// Cuts the bytes of a CSV file into records of fields, strictly by RFC 4180. It knows neither headers nor types. Bytes
// come in pieces of any size; memory grows with one record only.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// One line of the file, or several if a quoted field has line ends. Views are valid until the next record.
class CsvRecord {
 public:
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t field) const {
    const std::size_t begin = field == 0 ? 0 : ends_[field - 1];
    return std::string_view(bytes_).substr(begin, ends_[field] - begin);
  }
  // The line in which it begins, counted from 1.
  std::int64_t line() const { return line_; }

 private:
  friend class CsvParser;

  std::string bytes_;              // of all fields, one after another
  std::vector<std::size_t> ends_;  // of each field in bytes_
  std::int64_t line_ = 1;
};

struct CsvLimits {
  std::size_t fields = 0;       // of a record
  std::size_t field_bytes = 0;  // of a field
};

// "\"houses.csv\", line 17, column 3"; columns count from 1.
std::string csv_place(const std::string& path, std::int64_t line, std::size_t column);

class CsvParser {
 public:
  using OnRecord = std::function<void(const CsvRecord&)>;

  // `path` is for messages. Both functions below throw Error{invalid_file}, and what `on_record` throws.
  CsvParser(std::string path, char separator, CsvLimits limits, OnRecord on_record);

  void feed(std::string_view bytes);
  // The end of the file, after which no other call is allowed.
  void finish();

 private:
  //            quote                quote
  //   begin ----------> quoted <------------> closed      a quote in `closed` was the second of two
  //     | other                                 | blank
  //     +-------------> plain                   +-----> padded
  // Outside of `quoted`, a separator ends the field, and a line end ends the record.
  enum class State { begin, plain, quoted, closed, padded, carriage_return };

  void take(char c);
  void take_plain(char c);
  void append(char c);
  void end_field();
  void end_record();
  void end_line();
  bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != separator_; }
  [[noreturn]] void refuse(const std::string& reason) const;

  const std::string path_;
  const char separator_;
  const CsvLimits limits_;
  const OnRecord on_record_;

  State state_ = State::begin;
  CsvRecord record_;
  std::size_t field_begin_ = 0;   // in the bytes of the record
  bool is_quoted_ = false;        // the field that is being read
  bool is_ascii_ = true;          // so far
  std::int64_t line_ = 1;         // that of the next byte
  std::int64_t quoted_line_ = 1;  // where the last quote was opened
  std::string mark_;              // the first bytes of the file, until it is known whether they are a mark
  bool is_past_mark_ = false;
};

}  // namespace holdfast
