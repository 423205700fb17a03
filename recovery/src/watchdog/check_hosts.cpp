// A check must not disagree with the run that it is for. So it finds hosts, secret and program by the functions that a
// run uses. Host 0 compares what all hosts have, and each other one answers. docs/decisions/agents.md

#include "holdfast/recovery/check_hosts.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "agents/checking_host.h"  // first, for the sake of Asio

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "holdfast/base/cores.h"
#include "holdfast/base/error.h"
#include "holdfast/recovery/watchdog.h"
#include "hosts/surroundings.h"
#include "process/signals.h"
#include "watchdog/launch_variables.h"

namespace holdfast::recovery {
namespace {

// With a program, what a run of it would have.
HostFacts facts_of(const HostsCheckOptions& options, const Surroundings& found) {
  HostFacts facts{.version = HOLDFAST_VERSION,
                  .arithmetic = options.arithmetic,
                  .replicas = options.replicas,
                  .run_directory = absolute_path(options.run_directory),
                  .has_own_folder = found.has_separate_folders};
  // As a run without devices finds it: the launcher says it, or the cores do.
  if (facts.replicas == 0) facts.replicas = found.replicas.value_or(std::min(core_count(), kMaxReplicas));
  if (options.command.empty()) return facts;
  WatchdogOptions of_run{.replicas = facts.replicas, .run_directory = options.run_directory};
  of_run.command = options.command;
  // Throws where the run would: for a program that is not there.
  facts.program = digest_of_program(complete_for_a_host(std::move(of_run), {}, found.replicas).executable);
  facts.command = fmt::format("{}", fmt::join(options.command, " "));
  return facts;
}

}  // namespace

HostsReport check_hosts(const HostsCheckOptions& options) {
  const Surroundings found = surroundings_from(options.hosts);
  if (found.hosts == 1) {
    throw Error(ErrorCode::invalid_argument,
                "nothing says that there are several hosts; give --nnodes, --node-rank, --head and --secret as for "
                "`holdfast run`");
  }
  const Secret secret = secret_of(found);
  const CheckingOptions checking{.head = found.head,
                                 .hosts = found.hosts,
                                 .host = found.host,
                                 .run_id = found.run_id,
                                 .facts = facts_of(options, found),
                                 .join_timeout = options.join_timeout,
                                 .on_news = options.on_news};
  boost::asio::io_context io{1};
  // Stays where a signal ends the loop of a host that has no verdict yet.
  HostsReport report{.host = found.host, .sentence = "the check was ended by a signal"};
  const auto on_over = [&](const HostsReport& told) {
    report = told;
    io.stop();
  };
  std::unique_ptr<CheckingHead> head;
  std::unique_ptr<CheckingHost> host;
  if (found.host == 0) {
    head = std::make_unique<CheckingHead>(io, checking, secret, on_over);
  } else {
    host = std::make_unique<CheckingHost>(io, checking, secret, on_over);
  }
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  std::optional<std::chrono::steady_clock::time_point> last_signal;
  const std::function<void()> wait_for_signal = [&] {
    signals.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      const auto now = std::chrono::steady_clock::now();
      const bool is_same = last_signal && now - *last_signal < kOneRequest;
      if (!is_same) last_signal = now;
      // The verdict is that of host 0, so another host has nothing to report.
      if (!is_same && head == nullptr) return io.stop();
      // Each one ends what host 0 waits for then. It reports what it knows, and that ends the loop.
      if (!is_same) head->stop_waiting();
      wait_for_signal();
    });
  };
  wait_for_signal();
  io.run();
  return report;
}

}  // namespace holdfast::recovery
