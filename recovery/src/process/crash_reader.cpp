// Symbol tables are read by the watchdog and not by the process that crashed, whose memory is broken. The thread may
// hang in a file system, so everything that it uses is shared with it and may outlive the CrashReader.
// docs/decisions/processes.md

#include "process/crash_reader.h"

#include <unistd.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/threads.h"
#include "process/elf_symbols.h"

namespace holdfast::recovery {
namespace {

constexpr std::chrono::seconds kMostForOneCrash(2);
constexpr std::string_view kDeleted = " (deleted)";
constexpr const char* kOwnProgram = "/proc/self/exe";

// Replicas often run the program of the watchdog itself, whose file may have been replaced meanwhile.
std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink(kOwnProgram, path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "";
}

// Opens the file only if it is the one that the process had mapped.
std::optional<ElfFile> open_mapped(const std::string& path, std::time_t started) {
  if (!path.starts_with('/')) return std::nullopt;
  // The file of a running program still exists, even if its name was removed.
  if (path == own_program()) return ElfFile::open(kOwnProgram);
  if (path.ends_with(kDeleted)) return std::nullopt;
  std::optional<ElfFile> file = ElfFile::open(path);
  // A file that was replaced since then has other functions at these addresses. Wrong names are worse than none.
  if (file && file->changed() > started) return std::nullopt;
  return file;
}

std::string text_of(const CrashFrame& frame, const Symbol& symbol) {
  if (frame.path.empty()) return fmt::format("0x{:x} (in no file)", frame.address);
  const std::string place = fmt::format("({}+0x{:x})", frame.path, symbol.build_address);
  return symbol.function.empty() ? place : fmt::format("{} {}", symbol.function, place);
}

}  // namespace

std::vector<std::string> describe_frames(const Crash& crash, std::time_t started, Deadline deadline) {
  // Grouped by file, so that each is opened and read once.
  std::map<std::string, std::vector<std::size_t>> by_file;
  std::vector<Symbol> symbols(crash.frames.size());
  for (std::size_t i = 0; i < crash.frames.size(); ++i) {
    symbols[i].build_address = crash.frames[i].file_offset;
    if (!crash.frames[i].path.empty()) by_file[crash.frames[i].path].push_back(i);
  }
  for (const auto& [path, of_file] : by_file) {
    if (deadline.has_passed()) break;
    const std::optional<ElfFile> file = open_mapped(path, started);
    if (!file) continue;
    std::vector<std::uint64_t> offsets;
    // A call may be the last instruction of a function. Its return address then belongs to another function.
    for (const std::size_t i : of_file) offsets.push_back(crash.frames[i].file_offset - (i == 0 ? 0 : 1));
    std::vector<Symbol> found = file->find(offsets, deadline);
    for (std::size_t k = 0; k < of_file.size(); ++k) symbols[of_file[k]] = std::move(found[k]);
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < crash.frames.size(); ++i) lines.push_back(text_of(crash.frames[i], symbols[i]));
  return lines;
}

struct CrashReader::Shared {
  std::mutex mutex;
  std::condition_variable has_changed;
  // Guarded by mutex.
  std::deque<CrashStory> waiting;  // the first is being read
  std::vector<CrashStory> ready;
  bool has_thread = false;
  bool is_left = false;

  static void read_all(const std::shared_ptr<Shared>& shared) {
    leave_signals_to_others();  // to the thread of the watchdog
    std::unique_lock guard(shared->mutex);
    while (!shared->waiting.empty() && !shared->is_left) {
      CrashStory story = shared->waiting.front();
      guard.unlock();
      story.frames = describe_frames(story.crash, story.started, Deadline::after(kMostForOneCrash));
      guard.lock();
      // The story was given out without names meanwhile, or its reader is gone.
      if (shared->is_left) break;
      shared->waiting.pop_front();
      shared->ready.push_back(std::move(story));
      shared->has_changed.notify_all();
    }
    shared->has_thread = false;
  }
};

CrashReader::CrashReader() : shared_(std::make_shared<Shared>()) {}

CrashReader::~CrashReader() {
  const std::scoped_lock guard(shared_->mutex);
  shared_->is_left = true;
}

void CrashReader::add(CrashStory story) {
  const std::scoped_lock guard(shared_->mutex);
  shared_->waiting.push_back(std::move(story));
  if (shared_->has_thread) return;
  try {
    std::thread([shared = shared_] { Shared::read_all(shared); }).detach();
    shared_->has_thread = true;
  } catch (const std::system_error&) {
    // No thread could be started: take_all() returns what was left, without names.
  }
}

std::vector<CrashStory> CrashReader::take() {
  const std::scoped_lock guard(shared_->mutex);
  return std::exchange(shared_->ready, {});
}

std::vector<CrashStory> CrashReader::take_all(Deadline deadline) {
  std::unique_lock guard(shared_->mutex);
  shared_->has_changed.wait_until(guard, deadline.moment(),
                                  [this] { return shared_->waiting.empty() || !shared_->has_thread; });
  std::vector<CrashStory> stories = std::exchange(shared_->ready, {});
  shared_->is_left = true;
  for (CrashStory& story : shared_->waiting) {
    for (const CrashFrame& frame : story.crash.frames) {
      story.frames.push_back(text_of(frame, {.build_address = frame.file_offset}));
    }
    stories.push_back(std::move(story));
  }
  shared_->waiting.clear();
  return stories;
}

}  // namespace holdfast::recovery
