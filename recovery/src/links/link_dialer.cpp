// The other host closes a connection that it does not expect yet, so this one dials until it does. Each attempt has its
// own time, since packets to a host that is not there are lost in silence.

#include "links/link_dialer.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "holdfast/base/deadline.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds kDialPause(50);
// For the name and the connection.
constexpr std::chrono::seconds kDialTimeout(3);
// For the answer. Longer than a connection that comes too early may wait there.
constexpr std::chrono::seconds kAnswerTimeout(8);

}  // namespace

struct LinkDialer::Core : std::enable_shared_from_this<Core> {
  Core(asio::io_context& context, HostAddress of_peer, const LinkToken& token, std::chrono::milliseconds limit,
       Handlers given)
      : io(context),
        address(std::move(of_peer)),
        bytes(token.bytes()),
        patience(limit),
        handlers(std::move(given)),
        deadline(Deadline::after(limit)),
        resolver(io),
        socket(io),
        timer(io) {}

  asio::io_context& io;
  const HostAddress address;
  const std::array<std::uint8_t, LinkToken::kBytes> bytes;
  const std::chrono::milliseconds patience;
  const Handlers handlers;
  Deadline deadline;  // to reach the other host; put off each time it was reached
  tcp::resolver resolver;
  tcp::socket socket;
  asio::steady_timer timer;
  std::uint8_t answer = 0;
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

  void limit_time(std::chrono::milliseconds time) {
    timer.expires_after(time);
    timer.async_wait(of_this_attempt([](Core& self, const boost::system::error_code& error) {
      if (!error) self.fail("there was no answer in time");
    }));
  }

  void dial() {
    ++attempt;
    limit_time(kDialTimeout);
    boost::system::error_code error;
    const auto number = asio::ip::make_address(address.host, error);
    const std::string port = std::to_string(address.port);
    if (!error) {
      return connect(tcp::resolver::results_type::create(
          tcp::endpoint(number, static_cast<unsigned short>(address.port)), address.host, port));
    }
    resolver.async_resolve(address.host, port,
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
                          self.ask();
                        }));
  }

  void ask() {
    deadline = Deadline::after(patience);
    limit_time(kAnswerTimeout);
    asio::async_write(socket, asio::buffer(bytes),
                      of_this_attempt([](Core& self, const boost::system::error_code& failure, std::size_t) {
                        if (failure) self.fail(failure.message());
                      }));
    asio::async_read(socket, asio::buffer(&answer, 1),
                     of_this_attempt([](Core& self, const boost::system::error_code& failure, std::size_t) {
                       if (failure) return self.fail(failure.message());
                       if (self.answer != kLinkTaken) return self.fail("it sent something else than an answer");
                       self.hand_over();
                     }));
  }

  void hand_over() {
    boost::system::error_code error;
    FileDescriptor connected(socket.release(error));
    if (error) return fail(error.message());
    is_over = true;
    timer.cancel();
    handlers.on_link(std::move(connected));
  }

  void fail(const std::string& why) {
    stop();
    if (deadline.has_passed()) {
      is_over = true;
      return handlers.on_given_up(fmt::format("{} cannot be reached: {}", to_string(address), why));
    }
    timer.expires_after(kDialPause);
    timer.async_wait(of_this_attempt([](Core& self, const boost::system::error_code& error) {
      if (!error) self.dial();
    }));
  }

  // Ends the attempt, whatever it waits for.
  void stop() {
    ++attempt;
    timer.cancel();
    resolver.cancel();
    boost::system::error_code ignored;
    socket.close(ignored);
  }
};

LinkDialer::LinkDialer(asio::io_context& io, HostAddress address, const LinkToken& token,
                       std::chrono::milliseconds patience, Handlers handlers)
    : core_(std::make_shared<Core>(io, std::move(address), token, patience, std::move(handlers))) {
  // Later, so that no handler is called within this constructor.
  asio::post(io, core_->of_this_attempt([](Core& self) { self.dial(); }));
}

LinkDialer::~LinkDialer() {
  core_->is_over = true;
  core_->stop();
}

}  // namespace holdfast::recovery
