// A host is known by its number, whichever connection it comes by. So its agent may die, start again and dial from
// another address, and it is still the host that was lost. docs/decisions/agents.md

#include "agents/remote_hosts.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "holdfast/base/deadline.h"
#include "holdfast/base/log.h"

namespace holdfast::recovery {
namespace {

// For the last message to reach the agents. One that it does not reach waits for the head, and ends by itself.
constexpr std::chrono::seconds kFarewellTime(1);
// Sentences about refused connections that are shown; others are for debugging.
constexpr std::size_t kMostTold = 20;

HeadOptions checked(HeadOptions options) {
  check_times(options.limits.times);
  return options;
}

}  // namespace

RemoteHosts::RemoteHosts(HeadOptions options, const Secret& secret)
    : options_(checked(std::move(options))), tls_(tls_context(secret)) {}

void RemoteHosts::open(boost::asio::io_context& io, Handlers handlers) {
  io_ = &io;
  handlers_ = std::move(handlers);
  hosts_.resize(static_cast<std::size_t>(options_.introduction.hosts - 1));
  for (int host = 1; host < options_.introduction.hosts; ++host) add_host(host);
  listener_ = std::make_unique<AgentListener>(
      io, options_.head.port, tls_, options_.introduction, options_.limits,
      AgentListener::Handlers{
          .why_not = [this](const Introduction& theirs) -> std::string {
            // One that was started again comes when the connection of the one before is closed or silent.
            const Host& known = of(theirs.host);
            if (known.agent != theirs.agent && known.remote->is_heard(options_.limits.times.fence / 3)) {
              return fmt::format(
                  "another process is the agent of host {}, and is heard; give each host a --node-rank of "
                  "its own",
                  theirs.host);
            }
            const int ours = options_.introduction.replicas;
            if (theirs.replicas == ours) return "";
            return fmt::format(
                "it starts {} replicas, and host 0 starts {}; give --replicas the same number on all hosts",
                theirs.replicas, ours);
          },
          .on_agent =
              [this](const Introduction& theirs, const std::shared_ptr<AgentConnection>& connection) {
                Host& host = of(theirs.host);
                host.agent = theirs.agent;
                // As the head sees it.
                host.links = {.host = address_of_peer(connection->peer()), .port = theirs.port};
                host.remote->serve(connection);
              },
          .on_refused = [this](const std::string& peer, const std::string& why) { note_refused(peer, why); }});
  log(LogLevel::info, fmt::format("head: listening on port {}, waiting for {} other host{}", listener_->port(),
                                  hosts_.size(), hosts_.size() == 1 ? "" : "s"));
}

// A stranger can cause many of these, from many addresses.
void RemoteHosts::note_refused(const std::string& peer, const std::string& why) {
  // Each attempt of an agent comes from another port.
  const bool is_new = told_.size() < kMostTold && told_.insert(why).second;
  log(is_new ? LogLevel::warning : LogLevel::debug, fmt::format("head: {} was refused: {}", peer, why));
}

void RemoteHosts::add_host(int number) {
  Host& host = of(number);
  host.fence_timer = std::make_unique<boost::asio::steady_timer>(*io_);
  host.remote = std::make_unique<RemoteHost>(
      *io_, options_.limits.times,
      RemoteHost::Handlers{.on_present =
                               [this, number](const std::vector<int>& members, const std::vector<std::int64_t>& steps) {
                                 of(number).fence_timer->cancel();
                                 if (!std::exchange(of(number).has_joined, true)) return handlers_.on_joined(number);
                                 handlers_.on_returned(number, members, steps);
                               },
                           .on_lost =
                               [this, number](const std::string& why, BootTime fenced_at) {
                                 handlers_.on_lost(number, why);
                                 wait_for_fence(number, fenced_at);
                               },
                           .on_leaving = [this, number](int signal) { handlers_.on_leaving(number, signal); }},
      options_.folder);
}

// By the clock that goes on while this host is suspended. The timer's does not, so it may be late, which is safe.
void RemoteHosts::wait_for_fence(int host, BootTime fenced_at) {
  of(host).fence_timer->expires_after(std::max(BootTime{}, fenced_at - boot_time_now()));
  of(host).fence_timer->async_wait(
      [this, weak = std::weak_ptr<const bool>(is_alive_), host](const boost::system::error_code& error) {
        if (!error && !weak.expired()) handlers_.on_fence_passed(host);
      });
}

HostAddress RemoteHosts::links_of(int host, int own_port) const {
  if (host == 0) return {.host = options_.head.host, .port = own_port};
  return hosts_.at(static_cast<std::size_t>(host - 1)).links;
}

void RemoteHosts::end_run(int exit_code, const std::string& sentence) {
  listener_.reset();
  for (Host& host : hosts_) {
    // Nobody is left who could act on a fence that passes.
    host.fence_timer->cancel();
    host.remote->end_run(exit_code, sentence);
  }
  const auto is_any_told = [this] {
    return std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.remote->is_being_told(); });
  };
  const Deadline deadline = Deadline::after(kFarewellTime);
  while (is_any_told() && !deadline.has_passed()) {
    // A context that was stopped, or that has run out of work, runs nothing until it is restarted.
    io_->restart();
    io_->run_one_until(deadline.moment());
  }
}

}  // namespace holdfast::recovery
