#pragma once

// The event files of TensorBoard, as far as points and graphs need them: records with masked CRC-32C
// around them (tensorflow/core/lib/io/record_writer.h), each a protobuf message Event
// (tensorboard/compat/proto/event.proto, summary.proto). The files of a folder, in the order of their
// names, form one series.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/base/file_system.h"

namespace holdfast {

// A message Summary of scalars by tag. Equal values give equal bytes; no values give an empty text.
std::string scalar_summary(const std::vector<std::pair<std::string, float>>& scalars);

// One value of a Summary: its tag, and the field of the message Value that holds it. Values are concatenated.
std::string summary_value(const std::string& tag, const std::string& value);

// Records, which are written one after the other. `seconds` counts since 1970.
std::string version_record(double seconds);  // the first of a file
// Takes back all points of the series at `step` or later.
std::string start_record(double seconds, std::int64_t step);
std::string summary_record(double seconds, std::int64_t step, const std::string& summary);
// `graph` is a message GraphDef.
std::string graph_record(double seconds, const std::string& graph);

// Summaries by step.
using EventPoints = std::map<std::int64_t, std::string>;

// What TensorBoard shows of a folder: the last summary of each step. Each file is read up to the first record that is
// torn or damaged, as TensorBoard does. Empty if there is no folder.
EventPoints shown_points(FileSystem& files, const std::string& folder);

// The name of the last file of the folder; empty if the folder has no event file.
std::string last_event_file(FileSystem& files, const std::string& folder);
// A name that sorts after all event files of the folder. It begins with `seconds`, since 1970, or a
// later number.
std::string next_event_file(FileSystem& files, const std::string& folder, std::int64_t seconds);

}  // namespace holdfast
