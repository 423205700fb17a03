// A head that refuses an agent ends its attempts. One that is not there, or closes the connection, is dialed again.
// docs/decisions/host-connections.md

#include "hosts/head_dialer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "holdfast/base/error.h"
#include "hosts/agent_listener.h"
#include "links/dialing.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

// A port that refuses at once would otherwise keep the thread busy.
constexpr std::chrono::milliseconds kPauseBetweenAttempts(200);

}  // namespace

struct HeadDialer::Core : Dialing<Core> {
  Core(asio::io_context& context, HostAddress head, std::shared_ptr<asio::ssl::context> secured, Introduction own,
       const AgentConnection::Limits& connection_limits, Deadline limit, Handlers given)
      : Dialing(context, std::move(head)),
        tls(std::move(secured)),
        introduction(std::move(own)),
        limits(connection_limits),
        deadline(limit),
        handlers(std::move(given)) {}

  const std::shared_ptr<asio::ssl::context> tls;
  const Introduction introduction;
  const AgentConnection::Limits limits;
  const Deadline deadline;
  Handlers handlers;
  std::shared_ptr<AgentConnection> connection{};

  // A resolver may take longer than a connection, so each has its own limit within the attempt.
  void dial() { Dialing::dial(deadline); }

  // A pause beyond the deadline would only put off the last call.
  Deadline sooner(Deadline limit) const { return limit.moment() < deadline.moment() ? limit : deadline; }

  void connected() {
    timer.cancel();  // the connection has a limit of its own
    connection = AgentConnection::start(
        AgentConnection::Side::agent, std::move(socket), tls, limits,
        {.on_secured =
             of_this_attempt([](Core& self) { self.connection->send(introduction_message(self.introduction)); }),
         .on_message = of_this_attempt([](Core& self, const nlohmann::json& message) { self.take(message); }),
         .on_closed = of_this_attempt([](Core& self, const std::string& why) { self.fail(why); })});
  }

  void take(const nlohmann::json& answer) {
    if (answer.at("kind") == kSentHome) {
      const auto why = answer.at("why").get<std::string>();
      return end([&] { call(handlers.on_sent_home, fmt::format("{} refuses this host: {}", name(), why)); });
    }
    // Anything but the two answers is a failed attempt, after which the head is dialed again.
    if (answer.at("kind") != kTaken) return fail("it sent something else than an answer");
    // end() closes the connection that is still here.
    const std::shared_ptr<AgentConnection> taken = std::exchange(connection, nullptr);
    // These handlers are of the attempt, which ends here. The new owner sets its own.
    taken->set_handlers({});
    taken->open();
    end([&] {
      if (handlers.on_taken) handlers.on_taken(taken);
    });
  }

  void fail(const std::string& why) {
    stop();
    const std::string sentence = fmt::format("{} cannot be reached: {}", name(), why);
    if (deadline.has_passed()) return end([&] { call(handlers.on_given_up, sentence); });
    call(handlers.on_failure, sentence);
    if (is_over) return;  // the handler may have ended the dialer
    timer.expires_at(sooner(Deadline::after(kPauseBetweenAttempts)).moment());
    timer.async_wait(of_this_attempt([sentence](Core& self, const boost::system::error_code& error) {
      if (error) return;
      // An attempt without time would only hide why this one failed.
      if (self.deadline.has_passed()) return self.end([&] { call(self.handlers.on_given_up, sentence); });
      self.dial();
    }));
  }

  void stop() {
    Dialing::stop();
    if (connection != nullptr) std::exchange(connection, nullptr)->close();
  }

  // `last` comes after everything else, since it may destroy the dialer.
  template <class Last>
  void end(Last last) {
    stop();
    is_over = true;
    last();
  }

  static void call(const std::function<void(const std::string&)>& handler, const std::string& what) {
    if (handler) handler(what);
  }

  std::string name() const { return fmt::format("the head at {}", to_string(address)); }
};

HeadDialer::HeadDialer(asio::io_context& io, HostAddress head, std::shared_ptr<asio::ssl::context> tls,
                       Introduction introduction, const AgentConnection::Limits& limits, Deadline deadline,
                       Handlers handlers)
    : core_(std::make_shared<Core>(io, std::move(head), std::move(tls), std::move(introduction), limits, deadline,
                                   std::move(handlers))) {
  // Later, so that no handler is called within this constructor.
  asio::post(io, core_->of_this_attempt([](Core& self) { self.dial(); }));
}

HeadDialer::~HeadDialer() {
  core_->is_over = true;
  core_->stop();
}

}  // namespace holdfast::recovery
