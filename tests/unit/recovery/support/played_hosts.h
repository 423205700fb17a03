#pragma once

// A head and the agents of other hosts in one process, over connections of 127.0.0.2 and 127.0.0.3. Their processes
// are played, and the network of each can be cut.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agents/agent.h"  // first, for the sake of Asio

#include <gtest/gtest.h>

#include "agents/remote_host.h"
#include "hosts/local_host.h"
#include "unit/recovery/support/loopback.h"
#include "unit/recovery/support/played_processes.h"
#include "unit/recovery/support/relay.h"

namespace holdfast::recovery {

// Far longer than anything takes here, but for beats.
inline constexpr HostTimes kPatientTimes{.beat = std::chrono::milliseconds(5),
                                         .fence = std::chrono::seconds(20),
                                         .stop = std::chrono::seconds(20),
                                         .host = std::chrono::seconds(60)};
// For tests that wait until they have passed.
inline constexpr HostTimes kShortTimes{.beat = std::chrono::milliseconds(5),
                                       .fence = std::chrono::milliseconds(800),
                                       .stop = std::chrono::milliseconds(100),
                                       .host = std::chrono::milliseconds(1200)};

// One of the other hosts: what its agent has there, and what the head has of it.
struct PlayedHost {
  // There.
  Fence fence{};
  PlayedStarter* starter = nullptr;
  std::unique_ptr<Agent> agent{};
  std::vector<Agent::End> ends{};
  std::vector<std::string> news{};
  std::unique_ptr<Relay> network{};
  // At the head.
  std::unique_ptr<RemoteHost> remote{};
  std::vector<std::vector<int>> present{};
  std::vector<std::vector<std::int64_t>> steps{};
  std::vector<std::string> lost{};
  std::vector<BootTime> fenced_at{};

  Played& played(int member) { return starter->played.at(member); }
};

// What the head learns of a process.
struct Heard {
  std::vector<nlohmann::json> said{};
  std::vector<std::string> bad{};
  std::vector<std::string> failed{};
  std::vector<Error> not_started{};
  std::vector<std::string> order{};  // of what follows
  ExitStatus status{};

  ReplicaStarter::Handlers handlers() {
    return {.on_message = [this](Message& message) { said.push_back(message.body); },
            .on_bad_message = [this](const std::string& what) { bad.push_back(what); },
            .on_failure = [this](const std::string& what, bool) { failed.push_back(what); },
            .on_death = [this] { order.emplace_back("death"); },
            .on_exit =
                [this](ExitStatus given) {
                  order.emplace_back("exit");
                  status = given;
                },
            .on_swept = [this](int ended, bool) { order.push_back("swept " + std::to_string(ended)); },
            .on_start_failed = [this](const Error& error) { not_started.push_back(error); }};
  }
};

class PlayedHosts : public ::testing::Test {
 protected:
  explicit PlayedHosts(const HostTimes& times = kPatientTimes) : times_(times) {
    listener_ = std::make_unique<AgentListener>(
        loopback_.io, 0, tls_context(secret_of(1)), introduction_of(0), AgentConnection::Limits{.times = times},
        AgentListener::Handlers{
            .on_agent = [this](const Introduction& theirs, const std::shared_ptr<AgentConnection>& connection) {
              hosts_.at(static_cast<std::size_t>(theirs.host))->remote->serve(connection);
            }});
    hosts_.resize(3);
    for (const int number : {1, 2}) hosts_[static_cast<std::size_t>(number)] = make_host(number);
  }

  ~PlayedHosts() override {
    listener_.reset();
    for (auto& host : hosts_) {
      if (host == nullptr) continue;
      host->agent.reset();
      host->remote.reset();
      host->network.reset();
    }
    loopback_.io.restart();
    loopback_.io.poll();
  }

  PlayedHost& host(int number) { return *hosts_.at(static_cast<std::size_t>(number)); }

  std::unique_ptr<PlayedHost> make_host(int number) {
    auto made = std::make_unique<PlayedHost>();
    PlayedHost* const told = made.get();
    made->remote = std::make_unique<RemoteHost>(
        loopback_.io, times_,
        RemoteHost::Handlers{.on_present =
                                 [told](const std::vector<int>& members, const std::vector<std::int64_t>& steps) {
                                   told->present.push_back(members);
                                   told->steps.push_back(steps);
                                 },
                             .on_lost =
                                 [told](const std::string& why, BootTime fenced_at) {
                                   told->lost.push_back(why);
                                   told->fenced_at.push_back(fenced_at);
                                 }});
    made->network = std::make_unique<Relay>(loopback_.io, number == 1 ? "127.0.0.2" : "127.0.0.3", listener_->port());
    return made;
  }

  AgentOptions options_of(int number) {
    return {.head = {number == 1 ? "127.0.0.2" : "127.0.0.3", host(number).network->port()},
            .introduction = introduction_of(number),
            .limits = {.times = times_},
            .join_timeout = kSurely,
            .patience = kSurely};
  }

  // With processes that are played.
  void start_agent(int number, const AgentOptions& options) {
    auto starter = std::make_unique<PlayedStarter>();
    host(number).starter = starter.get();
    start_agent_with(number, options, std::move(starter));
  }
  void start_agent(int number) { start_agent(number, options_of(number)); }

  void start_agent_with(int number, const AgentOptions& options, std::unique_ptr<ReplicaStarter> starter) {
    PlayedHost& there = host(number);
    there.agent = std::make_unique<Agent>(
        loopback_.io, options, secret_of(1), local_host(loopback_.io, std::move(starter), {}), there.fence,
        Agent::Handlers{.on_over = [&there](const Agent::End& end) { there.ends.push_back(end); },
                        .on_news = [&there](const std::string& what) { there.news.push_back(what); }});
  }

  void start_agent_and_wait(int number) {
    const std::size_t before = host(number).present.size();
    start_agent(number);
    run_until([&] { return host(number).present.size() > before; }, "the host");
  }

  // A process there that has said that it is ready.
  std::shared_ptr<ReplicaProcess> start(int number, int member, Heard& heard) {
    const auto process = host(number).remote->start({.executable = "train", .member = member}, heard.handlers());
    run_until([&] { return host(number).starter->played.contains(member) && process->pid() != 0; }, "the process");
    host(number).played(member).say({{"kind", kReady}});
    run_until([&] { return !heard.said.empty(); }, "its word");
    return process;
  }

  void open_generation(int number, int generation, const std::vector<int>& members) {
    host(number).remote->open_generation({.number = generation, .members = members});
    const int last = members.back();
    const std::size_t before = host(number).played(last).sent.size();
    run_until([&] { return host(number).played(last).sent.size() > before; }, "the welcome");
  }

  void run_until(const std::function<bool()>& is_true, const std::string& what) { loopback_.run_until(is_true, what); }

  const HostTimes times_;
  Loopback loopback_;
  std::unique_ptr<AgentListener> listener_;
  std::vector<std::unique_ptr<PlayedHost>> hosts_;  // by number; the head's own has none
};

}  // namespace holdfast::recovery
