// Everything that a peer can do is an event here: it is slow, silent, sends garbage, or goes away. Each closes the
// connection with a sentence, and costs the io_context's thread no wait. docs/decisions/host-connections.md

#include "hosts/agent_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/write.hpp>

#include "holdfast/base/error.h"

namespace holdfast::recovery {
namespace {

namespace asio = boost::asio;

constexpr const char* kBeat = "beat";

std::string name_of_peer(const asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  return error ? "a peer that is gone" : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

}  // namespace

std::shared_ptr<AgentConnection> AgentConnection::start(Side side, asio::ip::tcp::socket socket,
                                                        std::shared_ptr<asio::ssl::context> tls, const Limits& limits,
                                                        Handlers handlers) {
  // The constructor cannot begin: shared_from_this() works only when a shared_ptr owns the object.
  std::shared_ptr<AgentConnection> connection(
      new AgentConnection(std::move(socket), std::move(tls), limits, std::move(handlers)));
  connection->shake_hands(side);
  return connection;
}

AgentConnection::AgentConnection(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                                 const Limits& limits, Handlers handlers)
    : tls_(std::move(tls)),
      limits_(limits),
      handlers_(std::move(handlers)),
      stream_(std::move(socket), *tls_),
      peer_(name_of_peer(stream_.next_layer())),
      deadline_(stream_.get_executor()),
      beat_timer_(stream_.get_executor()),
      beats_(boot_time_now()) {
  boost::system::error_code ignored;
  // Messages are short, and each is waited for.
  stream_.next_layer().set_option(asio::ip::tcp::no_delay(true), ignored);
  // Should the beats fail to notice: by itself TCP waits a quarter of an hour for a peer that answers nothing.
  const auto patience = static_cast<unsigned>(2 * limits_.times.host.count());
  ::setsockopt(stream_.next_layer().native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
}

AgentConnection::~AgentConnection() {
  boost::system::error_code ignored;
  stream_.next_layer().close(ignored);
}

void AgentConnection::shake_hands(Side side) {
  limit_time(limits_.introduction, "it did not introduce itself");
  const auto role = side == Side::head ? asio::ssl::stream_base::server : asio::ssl::stream_base::client;
  stream_.async_handshake(role, [self = shared_from_this()](const boost::system::error_code& error) {
    if (self->stage_ != Stage::handshake) return;
    if (error) return self->fail(describe_handshake(error));
    if (!is_authenticated(self->stream_)) return self->fail("it did not show that it has the secret of the run");
    self->stage_ = Stage::introducing;
    // Asked before it reads: the first message may have come with the end of the handshake.
    const auto on_secured = self->handlers_.on_secured;
    if (on_secured) on_secured();
    if (self->stage_ != Stage::closed) self->read();
  });
}

void AgentConnection::open() {
  if (stage_ != Stage::introducing) return;
  stage_ = Stage::open;
  reader_.set_most_bytes(kMostFrameBytes);
  deadline_.cancel();
  // The connection may have been made long before the head took it.
  beats_ = Beats(boot_time_now());
  wait_for_beat();
}

void AgentConnection::send(const nlohmann::json& message) {
  if (stage_ == Stage::introducing || stage_ == Stage::open) queue(frame_of(message));
}

void AgentConnection::close_when_sent(std::function<void()> when_closed) {
  if (stage_ != Stage::introducing && stage_ != Stage::open) {
    // Nothing is on its way. The caller counts on the call all the same, and not within this one.
    if (when_closed) asio::post(stream_.get_executor(), std::move(when_closed));
    return;
  }
  handlers_ = {};
  if (when_closed) {
    handlers_.on_closed = [when_closed = std::move(when_closed)](const std::string&) { when_closed(); };
  }
  stage_ = Stage::closing;
  beat_timer_.cancel();
  limit_time(limits_.introduction, "it did not take its last message");
  if (to_send_.empty()) wait_for_close();
}

// Closing a socket that holds bytes of the peer would reset the connection, and what was sent last might never arrive.
// So only this direction ends. The peer closes when it has read all, and reading sees that.
void AgentConnection::wait_for_close() {
  boost::system::error_code ignored;
  stream_.next_layer().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void AgentConnection::close() {
  if (std::exchange(stage_, Stage::closed) == Stage::closed) return;
  handlers_ = {};
  deadline_.cancel();
  beat_timer_.cancel();
  boost::system::error_code ignored;
  // Not TLS's own farewell, which would wait for the peer. A cut connection is told by its missing beats.
  stream_.next_layer().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.next_layer().close(ignored);
}

void AgentConnection::read() {
  stream_.async_read_some(asio::buffer(received_),
                          [self = shared_from_this()](const boost::system::error_code& error, std::size_t bytes) {
                            if (self->stage_ == Stage::closed) return;
                            if (error) return self->fail(fmt::format("the connection was closed: {}", error.message()));
                            // Nothing is kept of a peer that was sent home.
                            if (self->stage_ != Stage::closing) {
                              self->reader_.take(std::span(self->received_).first(bytes));
                              self->take_messages();
                            }
                            if (self->stage_ != Stage::closed) self->read();
                          });
}

void AgentConnection::take_messages() {
  try {
    // A handler may close the connection.
    while (stage_ == Stage::introducing || stage_ == Stage::open) {
      const std::optional<nlohmann::json> message = reader_.next();
      if (!message) return;
      take(*message);
    }
  } catch (const Error& error) {
    fail(error.what());
  } catch (const nlohmann::json::exception&) {
    fail("it sent a message that lacks something");
  }
}

void AgentConnection::take(const nlohmann::json& message) {
  if (message.at("kind") == kBeat) {
    // A beat before the introductions is as wrong as any other message.
    if (stage_ == Stage::open) return beats_.take(message.get<Beat>(), boot_time_now());
    return fail("it sent a beat before it was introduced");
  }
  // Copied, because the handler may replace all handlers, and with them the function that is running.
  const auto on_message = handlers_.on_message;
  if (on_message) on_message(message);
}

void AgentConnection::queue(std::string frame) {
  queued_bytes_ += frame.size();
  to_send_.push_back(std::move(frame));
  if (queued_bytes_ > limits_.queued_bytes) {
    // Later: the caller holds no reference for a handler that would be called here.
    return asio::post(stream_.get_executor(), [self = shared_from_this()] {
      self->fail(fmt::format("it does not take its messages; {} bytes are waiting", self->queued_bytes_));
    });
  }
  // One write at a time: a TLS stream allows no second one, and the frame must stay until it is sent.
  if (to_send_.size() == 1) write();
}

void AgentConnection::write() {
  asio::async_write(stream_, asio::buffer(to_send_.front()),
                    [self = shared_from_this()](const boost::system::error_code& error, std::size_t) {
                      if (self->stage_ == Stage::closed) return;
                      // The peer may have said why it has gone: reading ends the connection, after its last message.
                      if (error) return;
                      self->queued_bytes_ -= self->to_send_.front().size();
                      self->to_send_.pop_front();
                      if (!self->to_send_.empty()) return self->write();
                      if (self->stage_ == Stage::closing) self->wait_for_close();
                    });
}

void AgentConnection::wait_for_beat() {
  const BootTime now = boot_time_now();
  if (now - beats_.acknowledged() >= limits_.times.host) {
    return fail(fmt::format("it did not answer for {} ms", limits_.times.host.count()));
  }
  nlohmann::json message = beats_.next(now);
  message["kind"] = kBeat;
  send(message);
  beat_timer_.expires_after(limits_.times.beat);
  beat_timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->stage_ == Stage::open) self->wait_for_beat();
  });
}

void AgentConnection::limit_time(std::chrono::milliseconds time, std::string what) {
  deadline_.expires_after(time);
  deadline_.async_wait(
      [self = shared_from_this(), time, what = std::move(what)](const boost::system::error_code& error) {
        if (error || self->stage_ == Stage::open) return;
        self->fail(fmt::format("{} within {} ms", what, time.count()));
      });
}

void AgentConnection::fail(const std::string& why) {
  if (stage_ == Stage::closed) return;
  // Called last, since it may drop the owner's reference to this connection.
  const auto on_closed = std::exchange(handlers_, {}).on_closed;
  close();
  if (on_closed) on_closed(why);
}

}  // namespace holdfast::recovery
