#pragma once

// The head of one run. It turns signals, ticks and messages of replicas into events, lets the supervisor decide on
// them, and has the decisions carried out by the agent of its host (hosts/host_agent.h), which starts processes and
// owns the memory that they share, and by those of the run's other hosts, if it has any. Its functions are in
// watchdog.cpp, watchdog_events.cpp and watchdog_actions.cpp. docs/decisions/recovery.md

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "channel/messages.h"
#include "control/control_socket.h"
#include "control/run_requests.h"
#include "control/run_status.h"
#include "decide/supervisor.h"
#include "detect/hang_detector.h"
#include "detect/slow_replicas.h"
#include "gpu/device_events.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/recovery/watchdog.h"
#include "hosts/host_agent.h"
#include "hosts/other_hosts.h"
#include "journal/folder_thread.h"
#include "journal/incident_story.h"
#include "journal/journal.h"
#include "links/link_listener.h"
#include "process/crash_reader.h"
#include "process/replica_process.h"
#include "watchdog/intended_ranks.h"

namespace holdfast::recovery {

// Sets the level of the log, where the options say one.
void log_as_asked(const WatchdogOptions& options);

class WatchdogLoop {
 public:
  // `options` are checked. They and `run`, which owns their directory, outlive the watchdog. `may_give_way`: when a
  // replica reports OtherChoices, the run ends without a line about a failure.
  // `others`: the other hosts of a run over several, which outlive the watchdog.
  WatchdogLoop(const WatchdogOptions& options, const OwnedRun& run, bool may_give_way, OtherHosts* others = nullptr);

  // Blocks until the run has ended. Once.
  RunOutcome run();

 private:
  // watchdog.cpp
  void open_control();
  void watch_devices();
  void open_hosts();
  RunRequests::Run run_to_ask();
  std::map<int, MemberStatus> member_statuses() const;
  void hand_over_what_is_left();
  Hello hello_to(int rank) const;
  void feed(Event event);
  void decide_on(const Event& event);
  void write_down(const Event& event, const nlohmann::json& subject, const Decision& decision, Moment now);
  void tell_of(const Event& event, int rank, const Decision& decision, bool has_parted_hosts, Moment now);
  static void write_to_log(const std::vector<IncidentStory::Line>& lines);
  void forget_gone_processes();
  Stage stage_of(int id) const;
  int rank_of(int id) const;
  std::int64_t step_of(int id) const;
  int pid_of(int id) const;

  // watchdog_events.cpp
  void wait_for_signal();
  void take_late_signal();
  void wait_for_tick();
  void look_for_progress();
  void look_for_hang();
  void look_for_stragglers();
  ReplicaStarter::Handlers handlers_of(int id);
  void on_exit(int id, ExitStatus status);
  void note_crash(int id, ExitStatus status);
  void tell_of_crashes(std::vector<CrashStory> crashes);
  void on_swept(int id, int ended, bool is_any_left);
  void on_message(int id, const nlohmann::json& body);
  void note(int id, const nlohmann::json& body);
  void look_for_another_run();
  void lose_directory();

  // watchdog_actions.cpp
  void perform(const Action& action);
  void start_process(int id, int device_slot);
  void on_start_failed(int id, const Error& error);
  std::vector<std::string> variables_of(int id, const IntendedRank& intended, int device_slot) const;
  void open_generation(const Action& action);
  void open_on_hosts(HostAgent::Generation generation);
  HostAgent& agent_of_host(int host) const;
  HostAgent& agent_of(int id) const;
  void kill_process(int id);
  void ask_to_stop();
  void tell_members(const nlohmann::json& body);
  void set_timer(Moment moment);
  void record_failure(const Action& action);
  void send(int id, const Message& message);

  // Whether another run has begun in the run directory, as folder_thread_ finds it. Shared with its task, which may end
  // after this run.
  struct OwnDirectory {
    explicit OwnDirectory(FileDescriptor held) : lock(std::move(held)) {}

    const FileDescriptor lock;
    std::atomic<bool> is_looked_at = false;
    std::atomic<bool> is_lost = false;
  };

  // Constant after construction.
  const WatchdogOptions& options_;
  const OwnedRun& run_;
  const bool may_give_way_;
  OtherHosts* const others_;  // null: a single host

  // Only on the thread of run().
  Past past_;  // includes the restarts of this watchdog
  // For a run over several hosts, whose beats must not wait for a shared folder; null: a single host.
  const std::unique_ptr<FolderThread> folder_thread_;
  Journal journal_;
  const std::shared_ptr<OwnDirectory> own_directory_;  // null: a single host

  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer tick_{io_};
  boost::asio::steady_timer timer_{io_};  // the supervisor's

  bool is_over_ = false;
  State state_;
  std::deque<Event> events_;  // the first is being decided on
  RunOutcome outcome_;
  std::string other_choices_;         // the sentence of the replica that reported them
  std::set<int> killed_;              // members that the supervisor decided to kill
  std::set<int> dead_by_themselves_;  // members that died before they were killed
  bool was_killed_from_outside_ = false;

  const std::unique_ptr<LinkListener> links_;  // null: a single host
  const std::unique_ptr<HostAgent> host_;      // the head's own; outlives all processes
  DeviceEvents device_events_{options_.devices, options_.hosts, journal_};
  RunRequests requests_{run_to_ask()};
  HangDetector hang_detector_;
  SlowReplicas slow_replicas_{options_.recovery.when_slow, journal_};
  CrashReader crash_reader_;
  std::set<std::vector<std::string>> logged_crashes_;  // identified by their frames
  IncidentStory story_{!options_.is_plain_program};
  std::map<int, std::shared_ptr<ReplicaProcess>> processes_;  // by member
  IntendedRanks intended_ranks_;

  // These two belong to the newest generation.
  std::vector<int> by_rank_;  // members
  bool has_progressed_ = false;

  std::int64_t furthest_step_ = -1;  // of all generations before

  std::optional<ControlSocket> control_;  // last: its requests use all other members
};

}  // namespace holdfast::recovery
