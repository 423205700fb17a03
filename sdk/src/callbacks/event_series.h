#pragma once

// The points of one folder of TensorBoard, which several processes write one after another.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "callbacks/event_file.h"
#include "holdfast/base/file_system.h"

namespace holdfast {

// A folder and the file that this process began there.
class EventSeries {
 public:
  explicit EventSeries(std::string folder) : folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }
  // Makes the folder show exactly these points.
  void bring_to(FileSystem& files, const EventPoints& points);

 private:
  bool is_current(FileSystem& files, const EventPoints& points) const;
  void begin_file(FileSystem& files, std::int64_t from, const EventPoints& points);
  void append(FileSystem& files, const EventPoints& points);

  const std::string folder_;
  std::string name_;         // empty: the next write begins a file
  std::uint64_t bytes_ = 0;  // of that file
  EventPoints written_;      // what the folder shows with that file
};

// Points that the history of the epochs does not give. The training state has the last ones of them, so that a replica
// that takes over can write those that the one before it could not: a replica is ahead of another by a step at most.
class RecentEvents {
 public:
  explicit RecentEvents(std::size_t kept) : kept_(kept) {}

  // Every rank adds the same points, in the order of their steps.
  void add(std::int64_t step, const std::string& summary);
  void clear();
  // Another rank may write from now on.
  void forget_shown();
  // The last points as text: "step base64" in each line.
  std::string state() const;
  void restore(const std::string& state);

  // Makes the folder show these points and those that it shows from before them, and none after `last_step`.
  void write(FileSystem& files, const std::string& folder, std::int64_t last_step);

 private:
  const std::size_t kept_;
  EventPoints recent_;
  std::optional<EventSeries> series_;
  EventPoints shown_;  // by this process; empty before its first write
  bool has_shown_ = false;
};

}  // namespace holdfast
