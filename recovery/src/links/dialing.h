#pragma once

// What all dialers do, whatever they say once they are connected: one attempt at a time, which looks the name up anew,
// since a container's name may get its address late, or another one after a restart. Each wait of an attempt is
// limited, since packets to a host that is not there are lost in silence.

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>  // before Asio 1.74, which does not include what it uses

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "holdfast/base/deadline.h"
#include "links/host_address.h"

namespace holdfast::recovery {

// The base of `Core`, which is held by shared pointers and has two functions: connected(), called when `socket` is, and
// fail(why), called where an attempt came to nothing. For the thread that runs the io_context.
template <class Core>
struct Dialing : std::enable_shared_from_this<Core> {
  static constexpr std::chrono::seconds kNameTime{20};
  static constexpr std::chrono::seconds kConnectTime{3};

  Dialing(boost::asio::io_context& context, HostAddress of_peer)
      : io(context), address(std::move(of_peer)), resolver(io), socket(io), timer(io) {}

  boost::asio::io_context& io;
  const HostAddress address;
  boost::asio::ip::tcp::resolver resolver;
  boost::asio::ip::tcp::socket socket;
  boost::asio::steady_timer timer;              // the limit of an attempt, and the pause after it
  Deadline until = Deadline::after(kNameTime);  // of this attempt
  int attempt = 0;                              // completions of earlier ones are dropped
  bool is_over = false;

  // The handler is called as (Core&, ...), unless its attempt or the dialer is over.
  template <class Handler>
  auto of_this_attempt(Handler handler) {
    // Constrained, because Asio asks what it can be called with.
    return [ weak = this->weak_from_this(), number = attempt, handler ](
        const auto&... arguments) requires std::is_invocable_v<const Handler&, Core&, decltype(arguments)...> {
      const auto self = weak.lock();
      if (self != nullptr && !self->is_over && self->attempt == number) handler(*self, arguments...);
    };
  }

  // Begins an attempt: to find the name, which may take a resolver long, and then to be connected. Neither goes beyond
  // `end`.
  void dial(Deadline end) {
    ++attempt;
    until = end;
    limit_attempt(kNameTime, "its name was not found in time; ask the resolver of this host for it, with getent hosts");
    boost::system::error_code error;
    const auto number = boost::asio::ip::make_address(address.host, error);
    const std::string port = std::to_string(address.port);
    if (!error) {
      return connect(boost::asio::ip::tcp::resolver::results_type::create(
          {number, static_cast<unsigned short>(address.port)}, address.host, port));
    }
    resolver.async_resolve(address.host, port,
                           of_this_attempt([](Core& self, const boost::system::error_code& failure,
                                              const boost::asio::ip::tcp::resolver::results_type& found) {
                             if (failure) return self.fail("its name is not known: " + failure.message());
                             self.connect(found);
                           }));
  }

  void limit_attempt(std::chrono::milliseconds limit, const std::string& why) {
    timer.expires_at(std::min(Deadline::after(limit).moment(), until.moment()));
    timer.async_wait(of_this_attempt([why](Core& self, const boost::system::error_code& error) {
      if (!error) self.fail(why);
    }));
  }

  void connect(const boost::asio::ip::tcp::resolver::results_type& endpoints) {
    limit_attempt(kConnectTime, "there was no answer in time");
    socket = boost::asio::ip::tcp::socket(io);
    boost::asio::async_connect(socket, endpoints,
                               of_this_attempt([](Core& self, const boost::system::error_code& failure,
                                                  const boost::asio::ip::tcp::endpoint&) {
                                 if (failure) return self.fail(failure.message());
                                 self.connected();
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

}  // namespace holdfast::recovery
