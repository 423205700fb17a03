#pragma once

// What the agent of a host does for a head on another host: it carries out the head's orders through the agent of the
// host (hosts/local_host.h), and reports what its processes say and do. It decides one thing by itself: when the head
// is lost, it ends the generation here.
//
//   waiting --serve()--> resuming --present--> serving --the head is lost--> leaving --on_lost--> waiting
//                            '---------------------------------------------->'
//
// resuming: the connection is new, and no beat of this agent was acknowledged yet. leaving: members have
// HostTimes::stop to leave their generation; then they are killed. Those that have left wait, with their states.
// docs/decisions/agent-connections.md

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hosts/agent_connection.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agents/folder_of_run.h"
#include "agents/host_messages.h"
#include "hosts/host_agent.h"
#include "memory/fence.h"

namespace holdfast::recovery {

// For the thread that runs the io_context.
class AgentService {
 public:
  struct Handlers {
    // The head is lost, and nothing of this host takes part in a generation any more: time to dial again.
    std::function<void(const std::string& why)> on_lost{};
    // Nothing is left to do here: the head says that the run has ended, this host has left it, or it cannot go on. It
    // is the last call.
    struct Over {
      int exit_code = 0;
      std::string sentence{};
      bool is_head_wrong = false;  // it belongs to another run directory, so it has no state of this run
      bool begins_anew = false;  // the head has: an earlier run is to be put aside here, and then the head dialed again
    };
    std::function<void(const Over&)> on_over{};
  };

  // The run directory of this host.
  struct Folder {
    std::string path{};     // empty: it is compared with nothing
    bool is_shared = true;  // with the head, whose mark has to be there; otherwise the run in it is compared
  };
  // `host` starts its processes with `fence`, which outlives the service, as `io` does.
  AgentService(boost::asio::io_context& io, std::unique_ptr<HostAgent> host, Fence& fence, const HostTimes& times,
               Handlers handlers, Folder folder);
  // Kills all processes.
  ~AgentService();
  AgentService(const AgentService&) = delete;
  AgentService& operator=(const AgentService&) = delete;

  // Begins with a connection that the head has just taken, and that is open. Asserts that the service waits for one.
  void serve(std::shared_ptr<AgentConnection> connection);
  // Asks the head to go on without this host. on_over() follows once no process is left here, or the head is lost.
  void ask_to_leave(int signal);
  // Another head of the run was met than the one whose processes this host has. It may end them, so their newest state
  // is to be saved before on_lost(), after which it is served. Asks once for each such head.
  bool meets_another_head() { return std::exchange(meets_another_head_, false); }
  // The connection was lost, and on_lost() is still to come.
  bool is_leaving() const { return why_lost_.has_value(); }
  // Whether a process that waits for its next generation has a newer state than the memory of this host. It is about to
  // copy it there (docs/decisions/fences.md).
  bool is_any_state_on_its_way() const;
  // Whether states of this host belong into the run directory: no run was begun anew there, and none goes on there
  // without this host.
  bool may_save() const;
  // False before serve(), and from when the connection is lost.
  bool has_head() const { return connection_ != nullptr; }
  // The newest state in memory of this host; valid until the next event.
  std::optional<MemorySnapshots::Whole> newest_snapshot() const { return host_->newest_snapshot(); }

 private:
  enum class Stage { starting, ready, training, waiting, ending };

  struct Process {
    std::shared_ptr<ReplicaProcess> process{};
    Stage stage = Stage::starting;
    std::int64_t step = -1;           // of the state that a waiting process holds
    std::optional<ProcessEnd> end{};  // it has ended; kept until the head has forgotten it
  };

  void take(const nlohmann::json& message);
  void start(ReplicaStarter::Program program);
  void open_generation(const HostAgent::Generation& generation, const std::string& run, const std::string& token);
  Process* find(int member);
  void note(int member, const nlohmann::json& body);
  void say(nlohmann::json message);
  void say_of(int member, nlohmann::json message);
  void look();
  void wait_for_look();
  void answer_resume();
  bool has_folder_of_head();
  bool sees_the_mark();
  bool takes_own_folder();
  bool has_named_folder(const std::string& run, const std::string& token);
  nlohmann::json for_this_host(nlohmann::json message) const;
  void end_if_left();
  void end(const Handlers::Over& over);
  void say_sights();
  void lose(const std::string& why);
  bool is_any_in_a_generation() const;
  void leave_if_possible();
  void leave_after(std::chrono::milliseconds time);
  void leave();
  template <class Act>
  auto while_alive(Act act);

  // Constant after construction.
  const HostTimes times_;
  const Handlers handlers_;
  const Folder folder_;
  Fence& fence_;
  const std::unique_ptr<HostAgent> host_;  // outlives all processes

  boost::asio::steady_timer look_timer_;
  boost::asio::steady_timer stop_timer_;
  std::map<int, Process> processes_;  // by member
  int generation_ = -1;

  std::shared_ptr<AgentConnection> connection_;  // null: the head is lost
  BootTime opened_{};                            // counts as acknowledged, although no beat was
  std::optional<std::vector<int>> to_resume_;    // processes that the head named; not answered yet
  FolderOfHead head_;                            // that serves this connection
  std::optional<OfferedRun> offered_{};          // of this host's folder, where the head has none
  std::optional<int> leaving_by_;                // the signal that asked this host to leave
  bool meets_another_head_ = false;
  std::optional<std::string> run_;       // that the directory held when the mark of the head was seen there
  std::string owner_;                    // of the directory, when the head named its mark
  bool is_present_ = false;              // this connection's `resume` was answered
  std::optional<std::string> why_lost_;  // while it is leaving
  const std::shared_ptr<const bool> is_alive_ = std::make_shared<const bool>(true);
};

}  // namespace holdfast::recovery
