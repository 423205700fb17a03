#pragma once

// Listening on all addresses of this host.

#include <functional>
#include <memory>
#include <string>
#include <utility>  // before Asio 1.74, which does not include what it uses

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace holdfast::recovery {

// For the thread that runs the io_context.
class Listening {
 public:
  using OnSocket = std::function<void(boost::asio::ip::tcp::socket socket)>;

  // Takes connections of IPv6 and, by it, of IPv4 where the system has both. Port 0 is a free one. Throws
  // Error{input_output}: "WHAT: the reason". `io` outlives the object, and after that `on_socket` is not called.
  Listening(boost::asio::io_context& io, int port, const std::string& what, OnSocket on_socket);
  ~Listening();
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;

  int port() const;

 private:
  struct Core;

  std::shared_ptr<Core> core_;  // completions that are queued when the object goes hold weak pointers to it
};

}  // namespace holdfast::recovery
