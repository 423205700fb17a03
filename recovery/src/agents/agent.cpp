// An agent outlives its heads, but not its owner: how it ends says whether the state in its memory is all that is left,
// so that the owner saves it. docs/decisions/agents.md

#include "agents/agent.h"

#include <utility>

#include <fmt/format.h>

#include "holdfast/base/deadline.h"
#include "holdfast/recovery/watchdog.h"

namespace holdfast::recovery {
namespace {

AgentOptions checked(AgentOptions options) {
  check_times(options.limits.times);
  return options;
}

}  // namespace

Agent::Agent(boost::asio::io_context& io, AgentOptions options, const Secret& secret, std::unique_ptr<HostAgent> host,
             Fence& fence, Handlers handlers)
    : io_(io),
      options_(checked(std::move(options))),
      tls_(tls_context(secret)),
      handlers_(std::move(handlers)),
      service_(io, std::move(host), fence, options_.limits.times,
               {.on_lost =
                    [this](const std::string& why) {
                      tell(fmt::format("the head was lost: {}", why));
                      if (is_leaving_) return leave_without_head();
                      dial(options_.patience);
                    },
                .on_over = [this](int exit_code, const std::string& sentence) { end(exit_code, sentence); }},
               options_.run_directory) {
  dial(options_.join_timeout);
}

void Agent::dial(std::chrono::milliseconds time) {
  dialer_ = std::make_unique<HeadDialer>(
      io_, options_.head, tls_, options_.introduction, options_.limits, Deadline::after(time),
      HeadDialer::Handlers{.on_taken =
                               [this](const std::shared_ptr<AgentConnection>& connection) {
                                 tell(fmt::format("the head at {} was reached", to_string(options_.head)));
                                 has_joined_ = true;
                                 service_.serve(connection);
                               },
                           // It differs from the other hosts, and would at each attempt.
                           .on_sent_home = [this](const std::string& why) { end(kExitUnrecoverable, why); },
                           // Starting all hosts again resumes from what they have saved.
                           .on_given_up =
                               [this](const std::string& why) {
                                 if (!has_joined_) {
                                   return end(kExitStopped,
                                              fmt::format("{}; start the same command on the host that --head names, "
                                                          "with --node-rank 0, and see that its port is open",
                                                          why));
                                 }
                                 end(kExitStopped,
                                     fmt::format("the head was lost and did not come back: {}; start the same command "
                                                 "on all hosts again to go on",
                                                 why),
                                     true);
                               },
                           .on_failure = [this](const std::string& why) { tell(why); }});
}

void Agent::tell(const std::string& news) const {
  if (handlers_.on_news) handlers_.on_news(news);
}

// A head that was lost is not there to let this host go, and its own replicas may be gone. So the owner has to save.
void Agent::ask_to_leave(int signal) {
  is_leaving_ = true;
  if (is_head_lost()) return leave_without_head();
  service_.ask_to_leave(signal);
}

void Agent::leave_without_head() {
  end(kExitStopped,
      "this host was asked to leave after it had lost the head; start the same command on all hosts again to go on",
      true);
}

void Agent::end(int exit_code, const std::string& sentence, bool is_head_lost) {
  // Kept, since the handler may end this agent.
  const auto on_over = handlers_.on_over;
  if (on_over) on_over({.exit_code = exit_code, .sentence = sentence, .is_head_lost = is_head_lost});
}

}  // namespace holdfast::recovery
