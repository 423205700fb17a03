#pragma once

// A network between an agent and the head that a test can cut: connections that were made before the cut stay open at
// both ends and carry nothing more, as when a cable is pulled. Connections that are made after it work.

#include <array>
#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

namespace holdfast::recovery {

class Relay {
 public:
  using Tcp = boost::asio::ip::tcp;
  enum class Cut { to_head, to_agent, both };

  // Listens on a free port of `address`, and dials `port` of the same address for each connection.
  Relay(boost::asio::io_context& io, const char* address, int port)
      : io_(io),
        to_({boost::asio::ip::make_address(address), static_cast<unsigned short>(port)}),
        acceptor_(io, Tcp::endpoint(to_.address(), 0)) {
    accept();
  }
  ~Relay() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    close();
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int port() const { return acceptor_.local_endpoint().port(); }
  std::size_t connections() const { return pairs_.size(); }

  void cut(Cut how) {
    for (const auto& pair : pairs_) {
      pair->is_cut_to_head |= how != Cut::to_agent;
      pair->is_cut_to_agent |= how != Cut::to_head;
    }
  }
  // Both ends see the end of all connections.
  void close() {
    for (const auto& pair : pairs_) pair->close();
    pairs_.clear();
  }

 private:
  struct Pair {
    explicit Pair(boost::asio::io_context& io, Tcp::socket from_agent) : agent(std::move(from_agent)), head(io) {}

    void close() {
      boost::system::error_code ignored;
      agent.close(ignored);
      head.close(ignored);
    }

    Tcp::socket agent;
    Tcp::socket head;
    bool is_cut_to_head = false;
    bool is_cut_to_agent = false;
    std::array<char, 16384> up{};
    std::array<char, 16384> down{};
  };

  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, Tcp::socket socket) {
      if (error) return;
      const auto pair = std::make_shared<Pair>(io_, std::move(socket));
      boost::system::error_code refused;
      pair->head.connect(to_, refused);
      if (!refused) {
        pairs_.push_back(pair);
        pass(pair, pair->agent, pair->head, pair->up, pair->is_cut_to_head);
        pass(pair, pair->head, pair->agent, pair->down, pair->is_cut_to_agent);
      }
      accept();
    });
  }

  static void pass(const std::shared_ptr<Pair>& pair, Tcp::socket& from, Tcp::socket& to, std::array<char, 16384>& room,
                   const bool& is_cut) {
    from.async_read_some(boost::asio::buffer(room),
                         [pair, &from, &to, &room, &is_cut](const boost::system::error_code& error, std::size_t bytes) {
                           // Not even the end of the one connection is told to the other.
                           if (is_cut) return;
                           if (error) return pair->close();
                           boost::system::error_code failure;
                           boost::asio::write(to, boost::asio::buffer(room, bytes), failure);
                           if (failure) return pair->close();
                           pass(pair, from, to, room, is_cut);
                         });
  }

  boost::asio::io_context& io_;
  const Tcp::endpoint to_;
  Tcp::acceptor acceptor_;
  std::list<std::shared_ptr<Pair>> pairs_;
};

}  // namespace holdfast::recovery
