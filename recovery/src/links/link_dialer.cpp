// The other host closes a connection that it does not expect yet, so this one dials until it does. A replica that waits
// for it has a deadline of its own (Worker::exchange_arenas()), and its failure ends the generation, and with it this.

#include "links/link_dialer.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "links/dialing.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

// Between attempts. A port that refuses at once would otherwise keep the thread busy.
constexpr std::chrono::milliseconds kDialPause(50);
// For the answer. Longer than a connection that comes too early may wait there.
constexpr std::chrono::seconds kAnswerTimeout(8);

}  // namespace

struct LinkDialer::Core : Dialing<Core> {
  Core(asio::io_context& context, HostAddress of_peer, const LinkToken& token, std::chrono::milliseconds limit,
       Handlers given)
      : Dialing(context, std::move(of_peer)),
        bytes(token.bytes()),
        patience(limit),
        handlers(std::move(given)),
        deadline(Deadline::after(limit)) {}

  const std::array<std::uint8_t, LinkToken::kBytes> bytes;
  const std::chrono::milliseconds patience;
  const Handlers handlers;
  Deadline deadline;  // to reach the other host; put off each time it was reached
  std::uint8_t answer = 0;

  void connected() {
    // The other host is there. It may take its time until it expects this connection, so patience begins anew.
    deadline = Deadline::after(patience);
    until = deadline;
    limit_attempt(kAnswerTimeout, "there was no answer in time");
    // Written and read at once. A failure of one ends the attempt, and with it the other: of_this_attempt() drops it.
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
    FileDescriptor link(socket.release(error));
    if (error) return fail(error.message());
    // Before the call, which may destroy the dialer.
    is_over = true;
    timer.cancel();
    handlers.on_link(std::move(link));
  }

  void fail(const std::string& why) {
    stop();
    if (deadline.has_passed()) {
      is_over = true;
      return handlers.on_given_up(fmt::format("{} cannot be reached: {}", to_string(address), why));
    }
    timer.expires_after(kDialPause);
    timer.async_wait(of_this_attempt([](Core& self, const boost::system::error_code& error) {
      if (!error) self.dial(self.deadline);
    }));
  }
};

LinkDialer::LinkDialer(asio::io_context& io, HostAddress address, const LinkToken& token,
                       std::chrono::milliseconds patience, Handlers handlers)
    : core_(std::make_shared<Core>(io, std::move(address), token, patience, std::move(handlers))) {
  // Later, so that no handler is called within this constructor.
  asio::post(io, core_->of_this_attempt([](Core& self) { self.dial(self.deadline); }));
}

LinkDialer::~LinkDialer() {
  core_->is_over = true;
  core_->stop();
}

}  // namespace holdfast::recovery
