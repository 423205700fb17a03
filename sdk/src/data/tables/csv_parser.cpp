// A parser of our own: libcsv, the library that Debian has, tells neither line nor column, limits no field, and leaves
// NULs, UTF-8 and ragged lines to its caller. What would be left of it is this loop. Where RFC 4180 leaves a choice,
// the strict one is taken, since a row that was read wrongly is trained on without a word.
// See docs/decisions/tables.md.

#include "data/tables/csv_parser.h"

#include <fmt/format.h>

#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/shown_text.h"
#include "holdfast/base/utf8.h"

namespace holdfast {
namespace {

// U+FEFF in UTF-8. Spreadsheets write it first; without this rule it would be a part of the first column's name.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

std::string csv_place(const std::string& path, std::int64_t line, std::size_t column) {
  return fmt::format("{}, line {}, column {}", quoted_path(path), line, column);
}

CsvParser::CsvParser(std::string path, char separator, CsvLimits limits, OnRecord on_record)
    : path_(std::move(path)), separator_(separator), limits_(limits), on_record_(std::move(on_record)) {}

void CsvParser::feed(std::string_view bytes) {
  // The mark may be spread over pieces.
  while (!is_past_mark_ && !bytes.empty()) {
    mark_ += bytes.front();
    bytes.remove_prefix(1);
    if (kByteOrderMark.starts_with(mark_) && mark_.size() < kByteOrderMark.size()) continue;
    is_past_mark_ = true;
    if (mark_ == kByteOrderMark) break;
    for (const char c : mark_) take(c);
  }
  for (const char c : bytes) take(c);
}

void CsvParser::finish() {
  if (!is_past_mark_) {
    for (const char c : mark_) take(c);
  }
  switch (state_) {
    // The end of the file is far from the mistake, so the error names the line of the quote.
    case State::quoted:
      line_ = quoted_line_;
      refuse("the quote that opens here is never closed; close it, and write a quote inside of a quoted field twice");
    case State::carriage_return:
      refuse("the file ends with a carriage return without a line feed; end lines in LF or CR LF");
    // A last record needs no line end (RFC 4180, section 2, rule 2). After one, there is no record to end.
    default:
      if (state_ != State::begin || record_.size() > 0) end_record();
  }
}

void CsvParser::take(char c) {
  // Here and not as UTF-8 in end_field(), because a NUL tells more: mostly that the file is UTF-16.
  if (c == '\0') refuse("a NUL byte; the file is binary, damaged or UTF-16: save it as UTF-8");
  switch (state_) {
    // Separators and line ends have no meaning in here. The next quote decides: it
    // closes the field, or another one follows.
    case State::quoted:
      if (c == '"') {
        state_ = State::closed;
      } else {
        append(c);
        if (c == '\n') ++line_;
      }
      return;
    case State::carriage_return:
      if (c != '\n') refuse("a carriage return without a line feed; end lines in LF or CR LF, or quote the field");
      end_line();
      return;
    default:
      take_plain(c);
  }
}

// Outside of quotes.
void CsvParser::take_plain(char c) {
  if (c == separator_) return end_field();
  if (c == '\n') return end_line();
  if (c == '\r') {
    state_ = State::carriage_return;
    return;
  }
  // The field ended with its quote. Blanks may follow, and a quote directly after it makes both an escaped quote. A
  // quote after a blank is a mistake, which is why `padded` is a state of its own.
  if (state_ == State::closed || state_ == State::padded) {
    if (is_blank(c)) {
      state_ = State::padded;
    } else if (c == '"' && state_ == State::closed) {
      append(c);
      state_ = State::quoted;
    } else {
      refuse(fmt::format("{} follows the quote that closes the field; write a quote inside of a quoted field twice",
                         quoted_text(std::string_view(&c, 1))));
    }
    return;
  }
  if (state_ == State::begin) {
    // Blanks before a field do not count. A tab that separates is not blank, see is_blank().
    if (is_blank(c)) return;
    if (c == '"') {
      is_quoted_ = true;
      quoted_line_ = line_;
      state_ = State::quoted;
      return;
    }
  }
  if (c == '"') refuse("a quote inside of a field that has no quotes around it; quote the field, and write it twice");
  state_ = State::plain;
  append(c);
}

void CsvParser::append(char c) {
  // An unclosed quote turns the rest of the file into one field. The limit ends that
  // before it takes the memory of the file.
  if (record_.bytes_.size() - field_begin_ >= limits_.field_bytes) {
    refuse(
        fmt::format("the field has more than {} bytes; look for a quote that is not closed, or raise max_field_bytes",
                    limits_.field_bytes));
  }
  record_.bytes_ += c;
  // Most fields are ASCII, which is always UTF-8. So only the others are looked at again in end_field().
  is_ascii_ = is_ascii_ && static_cast<unsigned char>(c) < 0x80;
}

// Fields lie one after another in the bytes of the record, and only their ends are kept. Nothing is allocated for a
// field once the record has had its longest line.
void CsvParser::end_field() {
  if (record_.ends_.size() >= limits_.fields) {
    refuse(fmt::format("more than {} columns; check the separator, or raise max_columns", limits_.fields));
  }
  // Blanks before a field were never stored. Those after it are known as such only
  // now. Within quotes they belong to it.
  if (!is_quoted_) {
    while (record_.bytes_.size() > field_begin_ && is_blank(record_.bytes_.back())) record_.bytes_.pop_back();
  }
  // Checked for each field and not for each piece: a piece of the file may end within a character.
  if (!is_ascii_ && !is_utf8(std::string_view(record_.bytes_).substr(field_begin_))) {
    refuse("text that is not UTF-8; convert the file, for example by: iconv -f LATIN1 -t UTF-8");
  }
  record_.ends_.push_back(record_.bytes_.size());
  field_begin_ = record_.bytes_.size();
  is_quoted_ = false;
  is_ascii_ = true;
  state_ = State::begin;
}

// The record is lent to the callback and its memory is used for the next line, so the callback must copy what it keeps.
void CsvParser::end_record() {
  end_field();
  on_record_(record_);
  record_.bytes_.clear();
  record_.ends_.clear();
  field_begin_ = 0;
}

void CsvParser::end_line() {
  // An empty line has no fields at all. A line of one empty field would be the same bytes, so that needs quotes.
  const bool is_empty = record_.size() == 0 && record_.bytes_.empty() && !is_quoted_;
  if (!is_empty) end_record();
  state_ = State::begin;
  record_.line_ = ++line_;
}

void CsvParser::refuse(const std::string& reason) const {
  throw Error(ErrorCode::invalid_file, fmt::format("{}: {}", csv_place(path_, line_, record_.size() + 1), reason));
}

}  // namespace holdfast
