#pragma once

// Sends the logs of each epoch to a server by HTTP (keras.callbacks.RemoteMonitor):
//
//   RemoteMonitor{{.root = "https://monitor.example.com", .headers_file = "/etc/monitor.headers"}}
//
// The body is {"run": ..., "call": ..., "epoch": ..., "loss": ...}, and the header Idempotency-Key has the
// first three as "run/call/epoch". The second Trainer of a run and those after it add "trainer": 2, and the key is
// "run/trainer2/call/epoch". Each epoch is delivered at least once, also where failures end the
// training in between; after a failure one may arrive twice, with the same key and the same numbers. NaN and
// infinities are the texts "nan", "inf" and "-inf".
//
// A thread of the primary rank sends. A server that is slow, gone or refuses never delays a step and never
// fails the training: a request is tried again after 1, 2, 4, ... up to 60 s. What does not fit into the
// queue, what the server refuses (statuses of 300 and 400, except 408 and 429), and what is left when
// fit() has ended and flush_limit has passed is dropped, counted and said in the log.
//
// The certificate of an https server and its name are verified. Redirections are not followed, and proxies
// and credentials of the environment are not used. Needs a Holdfast that was built with libcurl.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/observe/epoch_record.h"
#include "holdfast/train/callback.h"

namespace holdfast {

struct RemoteMonitorOptions {
  std::string root = "http://localhost:9000";  // http:// or https://, without credentials
  std::string path = "/publish/epoch/end/";    // below the root; begins with /
  // Names the run in the key. Default: the name of the run directory. Two runs need two names: without them, or with
  // Replica::alone() and no name, a server takes the second one's epochs for repetitions.
  std::string run{};
  // A file of lines "Name: value" that are sent as headers, such as an Authorization. It is read when fit()
  // begins, and nothing of it is logged or saved. With http, only for a server on this host.
  std::string headers_file{};
  // Certificates (PEM) that the server's must lead to. Default: those of the system.
  std::string ca_file{};
  // Sends JSON. If false, a form with JSON in `field`, as Keras does by default.
  bool send_as_json = true;
  std::string field = "data";                   // of the form
  std::size_t queue = 256;                      // epochs that may wait; then the oldest are dropped
  std::chrono::milliseconds timeout{5000};      // of one request
  std::chrono::milliseconds flush_limit{5000};  // how long the end of fit() waits for the queue
  std::chrono::milliseconds first_pause{1000};  // before a failed request is tried again; then doubled
};

class RemoteMonitor final : public EpochRecord {
 public:
  // Throws Error{invalid_argument} for a root that is not such a URL, a path that does not begin with / or has blanks,
  // and a limit or queue of 0; Error{unsupported} if Holdfast was built without libcurl.
  explicit RemoteMonitor(RemoteMonitorOptions options = {});
  ~RemoteMonitor() override;
  RemoteMonitor(RemoteMonitor&&) noexcept;

  std::string name() const override;
  // Begins with a new call, also where the callback has served another Trainer before.
  void on_fit_begin(TrainingContext& context) override;

  // Counts those of this process so far, over all calls of fit(). Any thread may ask.
  std::uint64_t delivered() const;
  std::uint64_t dropped() const;  // epochs that were not sent

 private:
  class Sender;
  struct Counts;

  void write(const TrainingContext& context, const std::vector<Logs>& epochs) override;
  void finish(const TrainingContext& context) override;

  RemoteMonitorOptions options_;
  std::shared_ptr<Counts> counts_;
  std::unique_ptr<Sender> sender_;  // of the fit() under way; made by its first write()
};

}  // namespace holdfast
