#pragma once

// TensorBoard's event files, as far as points of scalars need them: records with masked CRC-32C around them
// (tensorflow/core/lib/io/record_writer.h), each a protobuf message Event (tensorboard/compat/proto/event.proto,
// summary.proto). A folder's files, in the order of their names, are one series.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/base/file_system.h"

namespace holdfast {

// A message Summary of scalars by tag. The same values give the same bytes; none of them, an empty text.
std::string scalar_summary(const std::vector<std::pair<std::string, float>>& scalars);

// Records, ready to be written one behind the other. `seconds`: since 1970.
std::string version_record(double seconds);  // the first of a file
// Takes back all points of the series whose step is `step` or later.
std::string start_record(double seconds, std::int64_t step);
std::string summary_record(double seconds, std::int64_t step, const std::string& summary);

// Summaries by step.
using EventPoints = std::map<std::int64_t, std::string>;

// What TensorBoard shows of a folder, the last summary of each step. Of a file it takes the records in front of the
// first that is torn or damaged, as TensorBoard does. None when there is no folder.
EventPoints shown_points(FileSystem& files, const std::string& folder);

// By name the last of the folder; empty when there is none.
std::string last_event_file(FileSystem& files, const std::string& folder);
// A name that comes behind all event files of the folder; `seconds` since 1970, which is what the names begin with.
std::string next_event_file(FileSystem& files, const std::string& folder, std::int64_t seconds);

}  // namespace holdfast
