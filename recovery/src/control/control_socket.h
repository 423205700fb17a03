#pragma once

// The watchdog's ear for other processes: a Unix stream socket in the run directory that speaks lines of JSON
// (holdfast/recovery/run_control.h). Whoever may write to it can do no more than ask: lines, clients and the time that
// each has are bounded, and what is no request is answered with a sentence.

#include <sys/un.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "holdfast/base/shared_memory.h"

namespace holdfast::recovery {

// The socket's address, also where the run directory's path is longer than an address may be. Throws Error naming the
// directory. Valid as long as the object.
class ControlAddress {
 public:
  explicit ControlAddress(const std::string& run_directory);

  const sockaddr_un& value() const { return value_; }

 private:
  FileDescriptor folder_;
  sockaddr_un value_{};
};

// The answer to what is not done.
nlohmann::json refusal(const std::string& sentence);

class ControlSocket {
 public:
  // To be called once, from the io_context's thread, now or later; it may outlive the peer and the socket, but not the
  // io_context.
  using Answer = std::function<void(const nlohmann::json&)>;
  using Handler = std::function<void(const nlohmann::json& request, const Answer& answer)>;

  struct Limits {
    std::size_t line_bytes = 4096;  // of a request
    std::size_t clients = 32;
    std::chrono::milliseconds idle = std::chrono::seconds(10);  // for a peer to send its line, or to read its answer
  };

  // For the owner of the run directory: the socket of a watchdog that died is replaced. Throws Error, also where
  // something else has that name.
  ControlSocket(boost::asio::io_context& io, const std::string& run_directory, Handler handler, Limits limits);
  // Hangs up, and removes the socket.
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  class Client;

  void wait_for_peers();
  void accept_one();
  void accept(FileDescriptor peer);
  void rest();
  bool make_room();

  boost::asio::io_context& io_;
  const std::string path_;
  const Handler handler_;
  const Limits limits_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer rest_;
  std::list<std::weak_ptr<Client>> clients_;  // the oldest first; may have ended
};

}  // namespace holdfast::recovery
