// TensorBoard keeps every point that it has read, so a new file says from which point on it takes back earlier ones. It
// takes them back only from the first that differs; the others keep their times. See docs/decisions/records.md

#include "callbacks/event_series.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "holdfast/base/error.h"

namespace holdfast {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The first step at which the two differ; empty if they are equal.
std::optional<std::int64_t> first_difference(const EventPoints& left, const EventPoints& right) {
  const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (l == left.end() && r == right.end()) return std::nullopt;
  if (l == left.end()) return r->first;
  if (r == right.end()) return l->first;
  return std::min(l->first, r->first);
}

constexpr std::string_view kBase64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// RFC 4648: three bytes are four digits.
std::string base64_of(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < three.size() ? static_cast<unsigned char>(three[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text += i <= three.size() ? kBase64Digits[bits >> (18 - 6 * i) & 63U] : '=';
    }
  }
  return text;
}

// Other text than base64_of() gives has no meaning; a state of another version would be refused before.
std::string bytes_of_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    const std::size_t value = kBase64Digits.find(digit);
    if (value == std::string_view::npos) break;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xffU);
  }
  return bytes;
}

}  // namespace

// What cannot be appended goes to a file of its own. Files of others are read and never changed.
void EventSeries::bring_to(FileSystem& files, const EventPoints& points) {
  if (is_current(files, points)) return append(files, points);
  name_.clear();
  const std::optional<std::int64_t> from = first_difference(shown_points(files, folder_), points);
  if (from) begin_file(files, *from, points);
}

// Whether missing points can follow what this process wrote last. Another rank may have written
// since.
bool EventSeries::is_current(FileSystem& files, const EventPoints& points) const {
  return !name_.empty() && last_event_file(files, folder_) == name_ &&
         std::mismatch(written_.begin(), written_.end(), points.begin(), points.end()).first == written_.end();
}

void EventSeries::begin_file(FileSystem& files, std::int64_t from, const EventPoints& points) {
  files.create_folders(folder_);
  const double now = seconds_since_1970();
  const std::string name = next_event_file(files, folder_, static_cast<std::int64_t>(now));
  const auto file = files.create(folder_ + "/" + name);
  std::string records = version_record(now) + start_record(now, from);
  for (auto point = points.lower_bound(from); point != points.end(); ++point) {
    records += summary_record(now, point->first, point->second);
  }
  // Written without an atomic rename: of a file that a kill cut off, the points before the cut
  // are shown, and the next process begins another file.
  file->write_at(0, std::as_bytes(std::span(records)));
  file->sync();
  files.sync_folder(folder_);
  name_ = name;
  bytes_ = records.size();
  written_ = points;
}

void EventSeries::append(FileSystem& files, const EventPoints& points) {
  std::string records;
  for (const auto& [step, summary] : points) {
    if (!written_.contains(step)) records += summary_record(seconds_since_1970(), step, summary);
  }
  if (records.empty()) return;
  // If this fails, the file may end in half a record, so the next write begins another file.
  const std::string name = std::exchange(name_, "");
  const auto file = files.open_for_writing(folder_ + "/" + name);
  file->write_at(bytes_, std::as_bytes(std::span(records)));
  file->sync();
  name_ = name;
  bytes_ += records.size();
  written_ = points;
}

void RecentEvents::add(std::int64_t step, const std::string& summary) {
  recent_.insert_or_assign(step, summary);
  while (recent_.size() > kept_) recent_.erase(recent_.begin());
}

void RecentEvents::clear() {
  recent_.clear();
  forget_shown();
}

void RecentEvents::forget_shown() {
  shown_.clear();
  has_shown_ = false;
}

std::string RecentEvents::state() const {
  std::string text;
  for (const auto& [step, summary] : recent_) {
    text += std::to_string(step);
    text += " " + base64_of(summary) + "\n";
  }
  return text;
}

void RecentEvents::restore(const std::string& state) {
  clear();
  std::string_view text = state;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t blank = std::min(line.find(' '), line.size());
    std::int64_t step = 0;
    std::from_chars(line.data(), line.data() + blank, step);
    recent_[step] = bytes_of_base64(line.substr(std::min(blank + 1, line.size())));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
}

// What the folder shows is read once, and again only where another rank may have written or the state went back.
void RecentEvents::write(FileSystem& files, const std::string& folder, std::int64_t last_step) {
  if (!series_ || series_->folder() != folder) series_.emplace(folder);
  const bool is_ahead = has_shown_ && !shown_.empty() && shown_.rbegin()->first > last_step;
  if (!has_shown_ || is_ahead) shown_ = shown_points(files, folder);
  has_shown_ = true;
  EventPoints points = shown_;
  points.erase(points.upper_bound(last_step), points.end());
  // The state knows better from its first point on.
  if (!recent_.empty()) points.erase(points.lower_bound(recent_.begin()->first), points.end());
  for (const auto& [step, summary] : recent_) {
    if (step <= last_step) points.insert_or_assign(step, summary);
  }
  // Before it is written: what fails is made up for by the next write.
  shown_ = std::move(points);
  series_->bring_to(files, shown_);
}

}  // namespace holdfast
