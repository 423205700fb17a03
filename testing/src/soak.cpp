// Kills only what is certainly the run's own: processes come and go, and the kernel reuses their numbers. So a victim
// must be a child of the watchdog, and the watchdog must be in the program's session. See docs/decisions/testing.md.

#include "holdfast/testing/soak.h"

#include <algorithm>
#include <csignal>
#include <optional>

#include "holdfast/base/deadline.h"
#include "holdfast/base/draws.h"
#include "process_table.h"
#include "program_session.h"
#include "run_folder.h"
#include "run_record.h"

namespace holdfast::resilience {
namespace {

constexpr std::chrono::seconds kLeaveTimeout(5);

WatchdogSize size_of(int watchdog, const std::vector<ProcessEntry>& children) {
  WatchdogSize size = holdings_of(watchdog);
  size.zombies = static_cast<int>(
      std::count_if(children.begin(), children.end(), [](const ProcessEntry& child) { return child.is_zombie(); }));
  return size;
}

WatchdogSize most_of(const WatchdogSize& a, const WatchdogSize& b) {
  return {.resident_kilobytes = std::max(a.resident_kilobytes, b.resident_kilobytes),
          .descriptors = std::max(a.descriptors, b.descriptors),
          .threads = std::max(a.threads, b.threads),
          .zombies = std::max(a.zombies, b.zombies)};
}

class Killer {
 public:
  Killer(const ProgramSession& session, const RunFolder& folder, std::uint64_t seed)
      : session_(session), folder_(folder), draws_(seed) {}

  // Does nothing while there is no process to kill.
  void strike(SoakResult& result) {
    const int watchdog = watchdog_of_session();
    if (watchdog == 0) return;
    std::vector<ProcessEntry> children = children_of(watchdog);
    const WatchdogSize size = size_of(watchdog, children);
    // The last victim may take a while to die, and is not killed twice. The process that ends leftovers of replicas is
    // in another session, and is not killed at all.
    std::erase_if(children, [&](const ProcessEntry& child) {
      return child.is_zombie() || child.pid == killed_ || child.session != session_.pid();
    });
    if (children.empty()) return;
    // The watchdog must not grow with the number of deaths, so its first, last and largest sizes are kept.
    if (result.kills == 0) result.first = size;
    result.last = size;
    result.most = most_of(result.most, size);
    const ProcessEntry& chosen = children[draws_.below(children.size())];
    // The number may belong to another process meanwhile. Only children of the watchdog may be killed.
    const std::optional<ProcessEntry> still = process_entry(chosen.pid);
    if (!still || still->parent != watchdog || ::kill(chosen.pid, SIGKILL) != 0) return;
    killed_ = chosen.pid;
    ++result.kills;
  }

 private:
  // The watchdog in the journal may be gone, or in another namespace; then its number means another process.
  int watchdog_of_session() {
    if (watchdog_ == 0) watchdog_ = watchdog_pid(folder_.run_directory());
    const std::optional<ProcessEntry> entry = watchdog_ == 0 ? std::nullopt : process_entry(watchdog_);
    return entry && entry->session == session_.pid() ? watchdog_ : 0;
  }

  const ProgramSession& session_;
  const RunFolder& folder_;
  Draws draws_;
  int watchdog_ = 0;
  int killed_ = 0;  // the last one
};

}  // namespace

SoakResult soak(const Program& program, const SoakOptions& options) {
  const Deadline deadline = Deadline::after(options.time_limit);
  const RunFolder folder(options.run_directory);
  const std::vector<std::string> command = command_of(program, folder.run_directory());
  const auto begin = Deadline::Clock::now();
  SoakResult result;
  ProgramSession session(command, {});
  Killer killer(session, folder, options.seed);
  for (auto next = begin + options.every;; next += options.every) {
    const bool is_over = session.wait(Deadline::at(std::min(next, deadline.moment())));
    result.run.is_out_of_time = !is_over && deadline.has_passed();
    // No kill after the end: the numbers of the run's processes may be in use again.
    if (is_over || result.run.is_out_of_time) break;
    killer.strike(result);
  }
  session.finish(kLeaveTimeout, result.run);
  result.run.wall_time = std::chrono::duration_cast<std::chrono::milliseconds>(Deadline::Clock::now() - begin);
  read_record(folder.run_directory(), result.run);
  return result;
}

}  // namespace holdfast::resilience
