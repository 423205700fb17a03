// Names are looked up again for each attempt: a container's name may get its address late, or another one after a
// restart. docs/decisions/host-connections.md

#include "hosts/head_dialer.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/steady_timer.hpp>

#include "holdfast/base/error.h"
#include "hosts/agent_listener.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds kPauseBetweenAttempts(200);
// For the name and the connection of one attempt: packets to a host that is not there are lost in silence.
constexpr std::chrono::seconds kAttemptTimeout(3);

}  // namespace

struct HeadDialer::Core : std::enable_shared_from_this<Core> {
  Core(asio::io_context& context, HostAddress address, std::shared_ptr<asio::ssl::context> secured, Introduction own,
       const AgentConnection::Limits& connection_limits, Deadline until, Handlers given)
      : io(context),
        head(std::move(address)),
        tls(std::move(secured)),
        introduction(std::move(own)),
        limits(connection_limits),
        deadline(until),
        handlers(std::move(given)),
        resolver(io),
        socket(io),
        timer(io) {}

  asio::io_context& io;
  const HostAddress head;
  const std::shared_ptr<asio::ssl::context> tls;
  const Introduction introduction;
  const AgentConnection::Limits limits;
  const Deadline deadline;
  Handlers handlers;
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  std::shared_ptr<AgentConnection> connection{};
  int attempt = 0;  // completions of earlier ones are dropped
  bool is_over = false;

  // The handler is called as (Core&, ...), unless its attempt or the dialer is over.
  template <class Handler>
  auto of_this_attempt(Handler handler) {
    // Constrained, because Asio asks what it can be called with.
    return [ weak = weak_from_this(), number = attempt, handler ](
        const auto&... arguments) requires std::is_invocable_v<const Handler&, Core&, decltype(arguments)...> {
      const auto self = weak.lock();
      if (self != nullptr && !self->is_over && self->attempt == number) handler(*self, arguments...);
    };
  }

  void dial() {
    ++attempt;
    timer.expires_at(std::min(deadline.moment(), Deadline::after(kAttemptTimeout).moment()));
    timer.async_wait(of_this_attempt([](Core& self, const boost::system::error_code& error) {
      if (!error) self.fail("there was no answer in time");
    }));
    boost::system::error_code error;
    const auto address = asio::ip::make_address(head.host, error);
    if (!error)
      return connect(tcp::resolver::results_type::create(tcp::endpoint(address, static_cast<unsigned short>(head.port)),
                                                         head.host, std::to_string(head.port)));
    resolver.async_resolve(head.host, std::to_string(head.port),
                           of_this_attempt([](Core& self, const boost::system::error_code& failure,
                                              const tcp::resolver::results_type& found) {
                             if (failure) return self.fail("its name is not known: " + failure.message());
                             self.connect(found);
                           }));
  }

  void connect(const tcp::resolver::results_type& endpoints) {
    socket = tcp::socket(io);
    asio::async_connect(socket, endpoints,
                        of_this_attempt([](Core& self, const boost::system::error_code& failure, const tcp::endpoint&) {
                          if (failure) return self.fail(failure.message());
                          self.introduce();
                        }));
  }

  void introduce() {
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
    if (answer.at("kind") != kTaken) return fail("it sent something else than an answer");
    const std::shared_ptr<AgentConnection> taken = std::exchange(connection, nullptr);
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
    timer.expires_at(std::min(deadline.moment(), Deadline::after(kPauseBetweenAttempts).moment()));
    timer.async_wait(of_this_attempt([sentence](Core& self, const boost::system::error_code& error) {
      if (error) return;
      // An attempt without time would only hide why this one failed.
      if (self.deadline.has_passed()) return self.end([&] { call(self.handlers.on_given_up, sentence); });
      self.dial();
    }));
  }

  // Ends the attempt, whatever it waits for.
  void stop() {
    ++attempt;
    timer.cancel();
    resolver.cancel();
    boost::system::error_code ignored;
    socket.close(ignored);
    if (connection != nullptr) std::exchange(connection, nullptr)->close();
  }

  template <class Last>
  void end(Last last) {
    stop();
    is_over = true;
    last();
  }

  static void call(const std::function<void(const std::string&)>& handler, const std::string& what) {
    if (handler) handler(what);
  }

  std::string name() const { return fmt::format("the head at {}", to_string(head)); }
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
