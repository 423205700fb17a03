// Numbers of fields are those of xplane.proto. A name stands once in the plane, and events refer to it.

#include "callbacks/profile_file.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>

#include "callbacks/protobuf_fields.h"

namespace holdfast {
namespace {

using protobuf::number_field;
using protobuf::text_field;

constexpr std::uint64_t kPicoseconds = 1000;  // of a nanosecond

std::string event_of(const ProfileSpan& span, std::uint64_t name) {
  return number_field(1, name) + number_field(2, static_cast<std::uint64_t>(span.begin.count()) * kPicoseconds) +
         number_field(3, static_cast<std::uint64_t>(span.duration.count()) * kPicoseconds);
}

std::string line_name(int line) {
  return line == 0 ? "fit()" : fmt::format("worker {}", line);
}

}  // namespace

std::string profile_space(const std::vector<ProfileSpan>& spans) {
  std::map<std::string, std::uint64_t> names;
  std::map<int, std::string> events;
  for (const ProfileSpan& span : spans) {
    const std::uint64_t name = names.emplace(span.what, names.size() + 1).first->second;
    events[span.line] += text_field(4, event_of(span, name));
  }
  // The plane of this name is the one of which TensorBoard shows threads.
  std::string plane = text_field(2, "/host:CPU");
  for (const auto& [line, of_line] : events) {
    plane +=
        text_field(3, number_field(1, static_cast<std::uint64_t>(line) + 1) + text_field(2, line_name(line)) + of_line);
  }
  for (const auto& [name, number] : names) {
    plane += text_field(4, number_field(1, number) + text_field(2, number_field(1, number) + text_field(2, name)));
  }
  return text_field(1, plane);
}

}  // namespace holdfast
