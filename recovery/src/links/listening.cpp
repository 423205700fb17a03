// One connection is accepted at a time, and a failure to accept one is not the end: a machine that is out of
// descriptors has some again later, and a run may not lose its hosts by that.

#include "links/listening.h"

#include <chrono>

#include <fmt/format.h>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

// After a failure to accept, such as too many open files.
constexpr std::chrono::milliseconds kPauseAfterFailure(100);

tcp::acceptor listen_on(asio::io_context& io, int port, const std::string& what) {
  boost::system::error_code error;
  for (const tcp& protocol : {tcp::v6(), tcp::v4()}) {
    tcp::acceptor acceptor(io);
    error = {};
    acceptor.open(protocol, error);
    // A system without IPv6 refuses the first socket. The error that is thrown is that of the second.
    if (error) continue;
    // A head that starts again must not wait until the connections of the one before it are forgotten.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    boost::system::error_code ignored;
    if (protocol == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), ignored);
    if (!error) acceptor.bind(tcp::endpoint(protocol, static_cast<unsigned short>(port)), error);
    if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
    if (!error) return acceptor;
  }
  throw Error(ErrorCode::input_output, fmt::format("{}: {}", what, error.message()));
}

}  // namespace

struct Listening::Core : std::enable_shared_from_this<Core> {
  Core(tcp::acceptor listening, OnSocket handler)
      : acceptor(std::move(listening)), pause(acceptor.get_executor()), on_socket(std::move(handler)) {}

  tcp::acceptor acceptor;
  asio::steady_timer pause;
  const OnSocket on_socket;

  void accept() {
    acceptor.async_accept([weak = weak_from_this()](const boost::system::error_code& error, tcp::socket socket) {
      const auto self = weak.lock();
      if (self == nullptr || error == asio::error::operation_aborted) return;
      if (error) return self->accept_later();
      self->on_socket(std::move(socket));
      self->accept();
    });
  }

  // At once it would fail again, and keep the thread busy.
  void accept_later() {
    pause.expires_after(kPauseAfterFailure);
    pause.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (!error && self != nullptr) self->accept();
    });
  }
};

Listening::Listening(asio::io_context& io, int port, const std::string& what, OnSocket on_socket)
    : core_(std::make_shared<Core>(listen_on(io, port, what), std::move(on_socket))) {
  core_->accept();
}

Listening::~Listening() {
  boost::system::error_code ignored;
  // The accept that waits is told that it was aborted, and begins no other one.
  core_->acceptor.close(ignored);
  core_->pause.cancel();
}

int Listening::port() const {
  return core_->acceptor.local_endpoint().port();
}

}  // namespace holdfast::recovery
