// Compares saving and loading a state with plain file operations on the same disk. Each round does everything once, so
// that a busy moment of the machine affects all operations alike. Medians and ratios are over the rounds.
//
//   bench_checkpoint [--mib 1024] [--rounds 5] [--threads 0] [--open-gib 0] [--folder DIR] [--json]

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "holdfast/base/digest.h"
#include "holdfast/base/file_system.h"
#include "holdfast/format/array_file.h"
#include "support/temporary_folder.h"

namespace holdfast {
namespace {

using format::ArrayFile;
using format::ArrayView;
using format::Compression;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// The default state is larger than most caches, and small enough for a laptop.
struct Options {
  std::size_t mib = 1024;
  int rounds = 5;
  int threads = 0;
  int open_gib = 0;
  std::string folder;
  bool as_json = false;
};

// Normally distributed numbers, as many weights are. Each thread fills a part.
// One seed for each part, so that every run saves the same bytes.
std::vector<float> make_weights(std::size_t count) {
  std::vector<float> values(count);
  std::vector<std::jthread> threads;
  constexpr std::size_t kParts = 8;
  for (std::size_t part = 0; part < kParts; ++part) {
    threads.emplace_back([&, part] {
      std::mt19937 random(static_cast<unsigned>(part));
      std::normal_distribution<float> normal(0.0F, 0.02F);
      for (std::size_t i = count * part / kParts; i < count * (part + 1) / kParts; ++i) values[i] = normal(random);
    });
  }
  return values;
}

// Rounded to even, as frameworks convert weights.
std::vector<std::uint16_t> to_bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &values[i], sizeof bits);
    result[i] = static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
  }
  return result;
}

// Views of the values as layers of 4096 x 1024 and a rest.
template <typename Element>
std::vector<ArrayView> as_layers(const std::vector<Element>& values, DType dtype) {
  constexpr std::size_t kLayer = std::size_t{4096} * 1024;
  std::vector<ArrayView> views;
  for (std::size_t begin = 0; begin < values.size(); begin += kLayer) {
    const std::size_t count = std::min(kLayer, values.size() - begin);
    std::vector<std::uint64_t> shape =
        count == kLayer ? std::vector<std::uint64_t>{4096, 1024} : std::vector<std::uint64_t>{count};
    views.push_back({"model/layer" + std::to_string(views.size()) + "/kernel", dtype, std::move(shape),
                     std::as_bytes(std::span(values).subspan(begin, count))});
  }
  return views;
}

// The plain operations get as many threads as saving takes by itself.
int threads_of(const Options& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
}

// Calls `work` for each piece of `bytes` bytes, on as many threads.
void for_each_piece(std::size_t bytes, int threads,
                    const std::function<void(std::size_t begin, std::size_t count)>& work) {
  // Threads take pieces as they come, so a thread that is held up does not hold up the rest.
  std::atomic<std::size_t> next = 0;
  const auto work_through = [&] {
    for (std::size_t begin = next.fetch_add(kPieceBytes); begin < bytes; begin = next.fetch_add(kPieceBytes)) {
      work(begin, std::min(kPieceBytes, bytes - begin));
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work_through);
  work_through();
}

void write_raw(const std::string& path, std::span<const std::byte> bytes, int threads) {
  const auto file = posix_file_system().create(path);
  for_each_piece(bytes.size(), threads, [&](std::size_t begin, std::size_t count) {
    file->write_at(begin, bytes.subspan(begin, count));
    // As the writer of savepoints does it: otherwise the disk would be idle until the sync.
    file->start_write_back(begin, count);
  });
  file->sync();
}

void read_raw(const std::string& path, std::span<std::byte> out, int threads) {
  const auto file = posix_file_system().open_for_reading(path);
  for_each_piece(out.size(), threads,
                 [&](std::size_t begin, std::size_t count) { file->read_at(begin, out.subspan(begin, count)); });
}

// What the digests cost without reading: digests every piece once, in memory. While a file is read, most of this time
// is hidden.
void digest_pieces(std::span<const std::byte> bytes, int threads) {
  std::atomic<unsigned> sink = 0;
  for_each_piece(bytes.size(), threads,
                 [&](std::size_t begin, std::size_t count) { sink += digest(bytes.subspan(begin, count)).bytes[0]; });
}

// All arrays in one call, as a resume reads them.
void load(const std::string& path, const std::vector<ArrayView>& views, std::span<std::byte> out, int threads) {
  // Into memory that is there already, since allocating it does not belong to loading.
  const ArrayFile file = ArrayFile::open(posix_file_system(), path, {.threads = threads});
  std::vector<ArrayFile::Target> targets;
  for (const ArrayView& view : views) {
    targets.push_back({view.name, out.first(view.bytes.size())});
    out = out.subspan(view.bytes.size());
  }
  file.read_into(targets);
}

// Makes the next read come from the disk.
void drop_from_cache(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  // Pages that are not yet on the disk would stay. All files are synced by those that wrote them.
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The median, since a busy moment of the machine spoils a mean.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Comparison {
 public:
  explicit Comparison(const Options& options)
      : options_(options), weights_(make_weights((options.mib << 20) / sizeof(float))), half_(to_bf16(weights_)) {
    fp32_ = as_layers(weights_, DType::f32);
    bf16_ = as_layers(half_, DType::bf16);
    out_.resize(weights_.size() * sizeof(float));
  }

  void run() {
    for (int round = 0; round < options_.rounds; ++round) run_round();
  }

  void print() const { options_.as_json ? print_json() : print_table(); }

 private:
  std::string path(const std::string& name) const { return folder() + "/" + name; }
  std::string folder() const { return options_.folder.empty() ? temporary_.path() : options_.folder; }

  // The order of the first round is that of the table.
  void measure(const std::string& name, std::uint64_t bytes, const std::function<void()>& work) {
    times_[name].push_back(seconds(work));
    bytes_[name] = bytes;
    if (std::find(order_.begin(), order_.end(), name) == order_.end()) order_.push_back(name);
  }

  void save(const std::string& name, const std::vector<ArrayView>& views, Compression compression,
            std::uint64_t bytes) {
    // A new file each time: writing over an old one spares the file system work.
    remove(path(name));
    measure("save " + name, bytes, [&] {
      format::write_array_file(posix_file_system(), path(name), "{}", views,
                               {.compression = compression, .threads = options_.threads});
    });
    const ArrayFile file = ArrayFile::open(posix_file_system(), path(name));
    ratios_["save " + name] = static_cast<double>(bytes) / static_cast<double>(file.file_bytes());
  }

  static void remove(const std::string& path) {
    if (posix_file_system().exists(path)) posix_file_system().remove(path);
  }

  // Each operation comes first in turn, since storage may be faster at the start of a round, or after reads.
  void run_in_turns(std::vector<std::function<void()>> operations) {
    std::rotate(operations.begin(), operations.begin() + round_ % static_cast<int>(operations.size()),
                operations.end());
    for (const auto& operation : operations) operation();
  }

  // Saving comes first, since loading needs its files.
  void run_round() {
    const auto raw = std::as_bytes(std::span(weights_));
    run_in_turns({[&] {
                    remove(path("raw"));
                    measure("raw write", raw.size(), [&] { write_raw(path("raw"), raw, threads_of(options_)); });
                  },
                  [&] { save("fp32 none", fp32_, Compression::none, raw.size()); },
                  [&] { save("fp32 fast", fp32_, Compression::fast, raw.size()); },
                  [&] { save("fp32 zstd 1", fp32_, Compression::zstd, raw.size()); },
                  [&] { save("bf16 fast", bf16_, Compression::fast, raw.size() / 2); }});
    load_all(" cold");
    load_all(" warm");
    measure("digest alone", raw.size(), [&] { digest_pieces(raw, threads_of(options_)); });
    // No rate: opening reads no elements, so a number of bytes would say nothing.
    measure("open (inspect)", 0, [&] { ArrayFile::open(posix_file_system(), path("fp32 fast")); });
    if (options_.open_gib > 0) open_large();
    ++round_;
  }

  void load_all(const std::string& warmth) {
    const std::span<std::byte> out = out_;
    // Both are measured, since a resume after a crash mostly finds the file in the cache.
    const auto read = [&](const std::string& name, const std::string& file, std::size_t bytes,
                          const std::function<void()>& work) {
      if (warmth == " cold") drop_from_cache(path(file));
      measure(name + warmth, bytes, work);
    };
    const auto load_file = [&](const std::string& file, const std::vector<ArrayView>& views, const auto& expected) {
      const auto bytes = std::as_bytes(std::span(expected));
      std::fill(out.begin(), out.end(), std::byte{0});
      read("load " + file, file, bytes.size(), [&] { load(path(file), views, out, options_.threads); });
      // Speed counts only for right bytes.
      if (std::memcmp(out.data(), bytes.data(), bytes.size()) != 0) throw std::runtime_error("loaded other bytes");
    };
    run_in_turns(
        {[&] { read("raw read", "raw", out.size(), [&] { read_raw(path("raw"), out, threads_of(options_)); }); },
         [&] { read("raw read, 1 thread", "raw", out.size(), [&] { read_raw(path("raw"), out, 1); }); },
         [&] { load_file("fp32 none", fp32_, weights_); }, [&] { load_file("fp32 fast", fp32_, weights_); },
         [&] { load_file("fp32 zstd 1", fp32_, weights_); }, [&] { load_file("bf16 fast", bf16_, half_); }});
  }

  // Whether the file has as many arrays and bytes. An earlier run in the same folder may have had other options.
  static bool holds(const std::string& path, const std::vector<ArrayView>& views) {
    if (!posix_file_system().exists(path)) return false;
    const ArrayFile file = ArrayFile::open(posix_file_system(), path);
    std::uint64_t missing = 0;
    for (const ArrayView& view : views) missing += view.bytes.size();
    for (const format::ArrayInfo& array : file.arrays()) missing -= size_bytes(array);
    return file.arrays().size() == views.size() && missing == 0;
  }

  // The file holds one state under many names, since its size may exceed memory. Writing it takes minutes, so it is
  // kept for later rounds and runs.
  void open_large() {
    std::vector<ArrayView> views;
    for (std::uint64_t bytes = 0; bytes < static_cast<std::uint64_t>(options_.open_gib) << 30;) {
      for (ArrayView view : fp32_) {
        view.name = "copy" + std::to_string(views.size()) + "/" + view.name;
        bytes += view.bytes.size();
        views.push_back(std::move(view));
      }
    }
    if (!holds(path("large"), views)) {
      format::write_array_file(posix_file_system(), path("large"), "{}", views, {.compression = Compression::none});
    }
    drop_from_cache(path("large"));
    measure("open large cold", 0, [&] { ArrayFile::open(posix_file_system(), path("large")); });
    measure("open large warm", 0, [&] { ArrayFile::open(posix_file_system(), path("large")); });
  }

  // The median of the ratios to the plain operation of the same round.
  double ratio_to(const std::string& name, const std::string& peer) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < times_.at(name).size(); ++i) {
      const double own = static_cast<double>(bytes_.at(name)) / times_.at(name)[i];
      ratios.push_back(own / (static_cast<double>(bytes_.at(peer)) / times_.at(peer)[i]));
    }
    return median(ratios);
  }

  // What cannot be faster than the disk is compared with the plain operation on it.
  static std::string peer_of(const std::string& name) {
    if (name.starts_with("save")) return "raw write";
    if (!name.starts_with("load")) return "";
    return name.ends_with("cold") ? "raw read cold" : "raw read warm";
  }

  void print_table() const {
    std::printf("%zu MiB of normal numbers, %d threads, %d rounds, medians\n\n", options_.mib, threads_of(options_),
                options_.rounds);
    std::printf("%-24s %10s %10s %12s %8s\n", "", "seconds", "GB/s", "x plain", "ratio");
    for (const std::string& name : order_) {
      const double time = median(times_.at(name));
      const std::string peer = peer_of(name);
      std::printf("%-24s %10.4f %10s", name.c_str(), time,
                  bytes_.at(name) == 0 ? "" : text(static_cast<double>(bytes_.at(name)) / time / 1e9).c_str());
      std::printf(" %12s", peer.empty() ? "" : text(ratio_to(name, peer)).c_str());
      std::printf(" %8s\n", ratios_.contains(name) ? text(ratios_.at(name)).c_str() : "");
    }
  }

  void print_json() const {
    nlohmann::ordered_json result;
    for (const std::string& name : order_) {
      result[name] = {{"seconds", times_.at(name)}, {"bytes", bytes_.at(name)}};
      if (ratios_.contains(name)) result[name]["ratio"] = ratios_.at(name);
    }
    std::cout << result.dump(2) << "\n";
  }

  static std::string text(double value) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.3f", value);
    return buffer;
  }

  Options options_;
  TemporaryFolder temporary_;
  int round_ = 0;
  std::vector<float> weights_;
  std::vector<std::uint16_t> half_;
  std::vector<ArrayView> fp32_;
  std::vector<ArrayView> bf16_;
  std::vector<std::byte> out_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> times_;
  std::map<std::string, std::uint64_t> bytes_;
  std::map<std::string, double> ratios_;
};

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  holdfast::Options options;
  CLI::App app("Compares saving and loading a state with plain file operations.", "bench_checkpoint");
  app.add_option("--mib", options.mib, "Size of the state, in MiB")->check(CLI::Range(1, 1 << 20));
  app.add_option("--rounds", options.rounds, "Number of rounds")->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
  app.add_option("--open-gib", options.open_gib, "Also open an uncompressed file of this size, in GiB")
      ->check(CLI::Range(0, 1024));
  app.add_option("--folder", options.folder, "Folder for the files (default: a temporary folder)");
  app.add_flag("--json", options.as_json, "Print all times as JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    holdfast::Comparison comparison(options);
    comparison.run();
    comparison.print();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "bench_checkpoint: " << error.what() << "\n";
    return 1;
  }
}
