#pragma once

// Host 0 of hosts that are checked (holdfast/recovery/check_hosts.h). It listens as the head of a run would:
//
//   gathering --all have told what they have, or the time is over--> linking --all have tried to connect--> over
//
// Each state has a limit of time. docs/decisions/agents.md

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "hosts/agent_listener.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agents/host_facts.h"
#include "hosts/secret.h"
#include "links/host_address.h"
#include "links/link_listener.h"

namespace holdfast::recovery {

// What a host that is checked knows of the check, be it the first one or another.
struct CheckingOptions {
  HostAddress head{};
  int hosts = 2;
  int host = 0;
  std::string run_id{};  // of the job
  HostFacts facts{};     // without the problem of the folder
  AgentConnection::Limits limits{};
  std::chrono::milliseconds join_timeout = std::chrono::minutes(1);
  std::chrono::milliseconds link_timeout = std::chrono::seconds(15);  // for all connections between the hosts
  std::chrono::milliseconds reach_timeout = std::chrono::seconds(5);  // for one that nobody answers
  std::function<void(const std::string&)> on_news{};
};

// The introduction of a host that is checked. It differs from that of a run, so that neither takes the other's hosts.
Introduction introduction_of_check(const CheckingOptions& options, int links_port);

// For the thread that runs the io_context.
class CheckingHead {
 public:
  // The last call, once.
  using OnOver = std::function<void(const HostsReport&)>;

  // Throws Error where nothing can listen, or the mark cannot be left. `io` outlives it.
  CheckingHead(boost::asio::io_context& io, CheckingOptions options, const Secret& secret, OnOver on_over);
  ~CheckingHead();
  CheckingHead(const CheckingHead&) = delete;
  CheckingHead& operator=(const CheckingHead&) = delete;

  // Waits no longer: first for hosts that are missing, then for connections, and then for the others to take the
  // report. It calls `on_over` then, at once.
  void stop_waiting();
  int port() const { return listener_->port(); }

 private:
  enum class Stage { gathering, linking, over };

  struct Host {
    std::shared_ptr<AgentConnection> connection{};  // null: it is not there
    HostAddress links{};
    bool has_told = false;
    HostFacts facts{};
    std::map<int, std::string> linked{};  // by the host that it was to reach: the problem, or ""
    std::string lost{};                   // why, while hosts connected
  };

  std::string why_not(const Introduction& theirs) const;
  void meet(const Introduction& theirs, const std::shared_ptr<AgentConnection>& connection);
  void refused(const std::string& peer, const std::string& why);
  void take(int number, const nlohmann::json& message);
  void lose(int number, const std::string& why);
  void begin_linking();
  void go_on_if_complete();
  void end();
  void send_verdict();
  void give_report();
  HostsReport report() const;
  std::vector<HostCheck> checks_of(int number, const Host& host) const;
  std::string missing_remedy(int number) const;
  void tell(const std::string& news) const;

  const CheckingOptions options_;
  const OnOver on_over_;
  const DoctorMark mark_;
  LinkListener links_;
  boost::asio::steady_timer timer_;
  Stage stage_ = Stage::gathering;
  std::map<int, Host> hosts_;          // by number, from 1 on
  std::set<std::string> refused_;      // what came and was not taken, each kind once
  bool is_cut_short_ = false;          // the wait for hosts was ended early
  bool is_linking_cut_short_ = false;  // that for connections was
  int being_told_ = 0;                 // hosts that do not have the verdict yet
  HostsReport made_{};                 // once all is over
  bool is_given_ = false;              // to the owner
  std::unique_ptr<AgentListener> listener_;
};

}  // namespace holdfast::recovery
