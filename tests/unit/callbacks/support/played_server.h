#pragma once

// A server of HTTP on this host that answers as the test says, and remembers what it was sent.

#include <array>
#include <boost/asio.hpp>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast {

class PlayedServer {
 public:
  struct Request {
    std::string head;  // with the empty line
    std::string body;
  };

  // Answers with these statuses, and then always with 200. "hang" reads a request and never answers it.
  explicit PlayedServer(std::deque<std::string> statuses = {})
      : statuses_(std::move(statuses)),
        acceptor_(context_, {boost::asio::ip::address_v4::loopback(), 0}),
        port_(acceptor_.local_endpoint().port()),
        thread_([this] { serve(); }) {}

  ~PlayedServer() {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    // A connection of our own ends the wait for one.
    boost::system::error_code ignored;
    boost::asio::ip::tcp::socket last(context_);
    last.connect({boost::asio::ip::address_v4::loopback(), port_}, ignored);
    thread_.join();
  }
  PlayedServer(const PlayedServer&) = delete;
  PlayedServer& operator=(const PlayedServer&) = delete;

  std::string root() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;

  bool is_ending() const {
    const std::lock_guard lock(mutex_);
    return is_ending_;
  }

  void serve() {
    while (!is_ending()) {
      Socket socket(context_);
      boost::system::error_code failed;
      acceptor_.accept(socket, failed);
      if (!failed && !is_ending()) answer(std::move(socket));
    }
  }

  // One request a connection.
  void answer(Socket socket) {
    boost::system::error_code failed;
    std::string text;
    boost::asio::read_until(socket, boost::asio::dynamic_buffer(text), "\r\n\r\n", failed);
    if (failed) return;
    const std::size_t head = text.find("\r\n\r\n") + 4;
    const std::size_t length = text.find("Content-Length: ");
    const std::size_t bytes = length > head ? 0 : std::stoul(text.substr(length + 16));
    if (text.size() < head + bytes) {
      boost::asio::read(socket, boost::asio::dynamic_buffer(text),
                        boost::asio::transfer_exactly(head + bytes - text.size()), failed);
    }
    std::string status = "200 OK";
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back({text.substr(0, head), text.substr(head)});
      if (!statuses_.empty()) {
        status = statuses_.front();
        statuses_.pop_front();
      }
    }
    if (status == "hang") {
      held_.push_back(std::move(socket));
      return;
    }
    const std::string answer = "HTTP/1.1 " + status + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    boost::asio::write(socket, boost::asio::buffer(answer), failed);
  }

  mutable std::mutex mutex_;
  std::deque<std::string> statuses_;  // guarded by mutex_
  std::vector<Request> requests_;     // guarded by mutex_
  bool is_ending_ = false;            // guarded by mutex_
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<Socket> held_;  // of its thread
  std::uint16_t port_;
  std::thread thread_;
};

}  // namespace holdfast
