#pragma once

// One encrypted connection between the agent of a host and the head, or its attempt. It is a state machine on the
// thread of its io_context:
//
//   handshake --> introducing --> open --> closed           any of them --> closed
//
// Messages and beats go both ways. A peer that acknowledges no beat for HostTimes::host is given up. Until it is open,
// time and sizes are limited closely, because a stranger may be at the other end. docs/decisions/host-connections.md

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "hosts/tls.h"  // first, for the sake of Asio

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "hosts/beats.h"
#include "hosts/frames.h"

namespace holdfast::recovery {

class AgentConnection : public std::enable_shared_from_this<AgentConnection> {
 public:
  enum class Side { agent, head };

  struct Limits {
    HostTimes times{};
    // For handshake and introduction together.
    std::chrono::milliseconds introduction{2000};
    // The most bytes of messages that the other has not taken yet.
    std::size_t queued_bytes = 4 * kMostFrameBytes;
  };
  // All are called on the io_context's thread, and none from within a function of this class that is not a callback.
  struct Handlers {
    std::function<void()> on_secured{};                       // the handshake has ended, and the peer has the secret
    std::function<void(const nlohmann::json&)> on_message{};  // beats excluded
    // The last one, once. Not called after close().
    std::function<void(const std::string& why)> on_closed{};
  };

  // Begins the handshake on a connected socket. The object lives at least until it is closed.
  static std::shared_ptr<AgentConnection> start(Side side, boost::asio::ip::tcp::socket socket,
                                                std::shared_ptr<boost::asio::ssl::context> tls, const Limits& limits,
                                                Handlers handlers);
  ~AgentConnection();
  AgentConnection(const AgentConnection&) = delete;
  AgentConnection& operator=(const AgentConnection&) = delete;

  void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }
  // The introductions are over: beats begin, and messages may be as long as any.
  void open();
  // Never blocks. A peer that does not take its messages is closed when they are too many. Throws as frame_of() does.
  void send(const nlohmann::json& message);
  // Sends what is queued, and closes when the peer has taken it and closed, or when the time of an introduction is
  // over. No handler but `when_closed` is called afterwards.
  void close_when_sent(std::function<void()> when_closed = {});
  // Ends the connection at once. No handler is called any more.
  void close();

  bool is_open() const { return stage_ == Stage::open; }
  const Beats& beats() const { return beats_; }
  // The address of the other end, such as "10.0.0.7:41234".
  const std::string& peer() const { return peer_; }

 private:
  enum class Stage { handshake, introducing, open, closing, closed };

  AgentConnection(boost::asio::ip::tcp::socket socket, std::shared_ptr<boost::asio::ssl::context> tls,
                  const Limits& limits, Handlers handlers);

  void shake_hands(Side side);
  void read();
  void take_messages();
  void take(const nlohmann::json& message);
  void queue(std::string frame);
  void write();
  void wait_for_close();
  void wait_for_beat();
  void limit_time(std::chrono::milliseconds time, std::string what);
  void fail(const std::string& why);

  const std::shared_ptr<boost::asio::ssl::context> tls_;
  const Limits limits_;
  Handlers handlers_;
  TlsStream stream_;
  const std::string peer_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer beat_timer_;
  Stage stage_ = Stage::handshake;
  FrameReader reader_{kMostFirstFrameBytes};
  std::array<std::byte, 64 * 1024> received_{};
  std::deque<std::string> to_send_;  // the first is being sent
  std::size_t queued_bytes_ = 0;
  Beats beats_;
};

}  // namespace holdfast::recovery
