#pragma once

// Puts names to the addresses that crashed workers left, on a thread of its own: their files may lie on a file system
// that does not answer, and the run waits for none of this.

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
  std::time_t started = 0;  // files that were changed since are not what the process had mapped
  Crash crash{};
  // A line a frame: "train(Model&) (/home/me/train+0x1f3a)". The number is what addr2line takes.
  std::vector<std::string> frames{};
};

// `deadline`: names that take longer are left out.
std::vector<std::string> describe_frames(const Crash& crash, std::time_t started, Deadline deadline);

class CrashReader {
 public:
  CrashReader();
  // Does not wait for a thread that hangs.
  ~CrashReader();
  CrashReader(const CrashReader&) = delete;
  CrashReader& operator=(const CrashReader&) = delete;

  void add(CrashStory story);
  // Those that are ready.
  std::vector<CrashStory> take();
  // All, as soon as they are ready. Those that are not ready at the deadline have no names.
  std::vector<CrashStory> take_all(Deadline deadline);

 private:
  struct Shared;

  std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::recovery
