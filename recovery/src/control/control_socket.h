#pragma once

// The Unix socket in the run directory by which other processes talk to the watchdog, in lines of JSON
// (holdfast/recovery/run_control.h). A peer can only make requests: lines, clients and the time of each client are
// bounded, and anything else is answered with a sentence.

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

// The address of the socket, also when the run directory's path is longer than an address may be. Valid as long as
// the object lives. Throws Error that names the directory.
class ControlAddress {
 public:
  explicit ControlAddress(const std::string& run_directory);

  const sockaddr_un& value() const { return value_; }

 private:
  FileDescriptor folder_;
  sockaddr_un value_{};
};

// The answer to a request that is not met.
nlohmann::json refusal(const std::string& sentence);

class ControlSocket {
 public:
  // Call it once, from the io_context's thread, now or later. It may outlive the peer and the socket, but not the
  // io_context.
  using Answer = std::function<void(const nlohmann::json&)>;
  using Handler = std::function<void(const nlohmann::json& request, const Answer& answer)>;

  struct Limits {
    std::size_t line_bytes = 4096;  // of a request
    std::size_t clients = 32;
    std::chrono::milliseconds idle =
        std::chrono::seconds(10);  // that a peer has to send its line, or to read its answer
  };

  // For the owner of the run directory: replaces the socket of a watchdog that died. Throws Error, also when the name
  // belongs to something that is not a socket.
  ControlSocket(boost::asio::io_context& io, const std::string& run_directory, Handler handler, Limits limits);
  // Closes all connections and removes the socket.
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  class Client;

  void wait_for_peers();
  void accept_one();
  void rest();
  bool make_room();

  boost::asio::io_context& io_;
  const std::string path_;
  const Handler handler_;
  const Limits limits_;
  boost::asio::posix::stream_descriptor listener_;
  boost::asio::steady_timer rest_;
  std::list<std::weak_ptr<Client>> clients_;  // the oldest first; they may have ended
};

}  // namespace holdfast::recovery
