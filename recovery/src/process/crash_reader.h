#pragma once

// Finds the names of functions for the addresses that crashed workers left. It does so on a thread of its own,
// because their files may be on a file system that does not answer. The run never waits for it.

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/base/deadline.h"
#include "process/crash_page.h"

namespace holdfast::recovery {

struct CrashStory {
  int member = 0;
  int rank = -1;
  int pid = 0;
  int generation = -1;
  std::time_t started = 0;  // a file that was changed later is not the one that the process had mapped
  Crash crash{};
  // One line per frame: "train(Model&) (/home/me/train+0x1f3a)". The number is what addr2line takes.
  std::vector<std::string> frames{};
};

// Names that are not found by the deadline are left out.
std::vector<std::string> describe_frames(const Crash& crash, std::time_t started, Deadline deadline);

class CrashReader {
 public:
  CrashReader();
  // Does not wait for a thread that hangs.
  ~CrashReader();
  CrashReader(const CrashReader&) = delete;
  CrashReader& operator=(const CrashReader&) = delete;

  void add(CrashStory story);
  // The stories that are ready. Does not block.
  std::vector<CrashStory> take();
  // Blocks until all are ready, or until the deadline. A story that is not ready by then has no names.
  std::vector<CrashStory> take_all(Deadline deadline);

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::recovery
