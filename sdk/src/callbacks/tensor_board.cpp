// TensorBoard keeps every point that it has read, so a new file says from which epoch on it takes back
// earlier ones. It takes them back only from the first epoch that differs; the others keep their times.
// The files are a function of the epochs that the training state knows, so nothing about them is kept
// in the state. See docs/decisions/training.md.

#include "holdfast/observe/tensor_board.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "callbacks/event_file.h"
#include "holdfast/base/file_system.h"

namespace holdfast {
namespace {

constexpr std::string_view kValidationPrefix = "val_";

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// The points of the logs of validation, or of all others. An epoch without such logs has no point.
EventPoints points_of(const std::vector<Logs>& epochs, bool of_validation) {
  EventPoints points;
  for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    std::vector<std::pair<std::string, float>> scalars;
    for (const auto& [name, value] : epochs[epoch]) {
      if (name.starts_with(kValidationPrefix) != of_validation) continue;
      const std::string bare = of_validation ? name.substr(kValidationPrefix.size()) : name;
      scalars.emplace_back("epoch_" + bare, static_cast<float>(value));
    }
    if (!scalars.empty()) points[static_cast<std::int64_t>(epoch)] = scalar_summary(scalars);
  }
  return points;
}

// The first step at which the two differ; empty if they are equal.
std::optional<std::int64_t> first_difference(const EventPoints& left, const EventPoints& right) {
  const auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (l == left.end() && r == right.end()) return std::nullopt;
  if (l == left.end()) return r->first;
  if (r == right.end()) return l->first;
  return std::min(l->first, r->first);
}

}  // namespace

// The points of one folder, and the file that this process began there.
class TensorBoard::Series {
 public:
  explicit Series(std::string folder) : folder_(std::move(folder)) {}

  void bring_to(FileSystem& files, const EventPoints& points) {
    if (is_current(files, points)) return append(files, points);
    name_.clear();
    const std::optional<std::int64_t> from = first_difference(shown_points(files, folder_), points);
    if (from) begin_file(files, *from, points);
  }

 private:
  // Whether missing points can follow what this process wrote last. Another rank may have written
  // since.
  bool is_current(FileSystem& files, const EventPoints& points) const {
    return !name_.empty() && last_event_file(files, folder_) == name_ &&
           std::mismatch(written_.begin(), written_.end(), points.begin(), points.end()).first == written_.end();
  }

  void begin_file(FileSystem& files, std::int64_t from, const EventPoints& points) {
    files.create_folders(folder_);
    const double now = seconds_since_1970();
    const std::string name = next_event_file(files, folder_, static_cast<std::int64_t>(now));
    const auto file = files.create(folder_ + "/" + name);
    std::string records = version_record(now) + start_record(now, from);
    for (auto point = points.lower_bound(from); point != points.end(); ++point) {
      records += summary_record(now, point->first, point->second);
    }
    // Written without an atomic rename: of a file that a kill cut off, the points before the cut
    // are shown, and the next process begins another file.
    file->write_at(0, std::as_bytes(std::span(records)));
    file->sync();
    files.sync_folder(folder_);
    name_ = name;
    bytes_ = records.size();
    written_ = points;
  }

  void append(FileSystem& files, const EventPoints& points) {
    std::string records;
    for (const auto& [step, summary] : points) {
      if (!written_.contains(step)) records += summary_record(seconds_since_1970(), step, summary);
    }
    if (records.empty()) return;
    // If this fails, the file may end in half a record, so the next write begins another file.
    const std::string name = std::exchange(name_, "");
    const auto file = files.open_for_writing(folder_ + "/" + name);
    file->write_at(bytes_, std::as_bytes(std::span(records)));
    file->sync();
    name_ = name;
    bytes_ += records.size();
    written_ = points;
  }

  const std::string folder_;
  std::string name_;         // empty: the next write begins a file
  std::uint64_t bytes_ = 0;  // of that file
  EventPoints written_;      // what the folder shows with that file
};

TensorBoard::TensorBoard(TensorBoardOptions options) : options_(std::move(options)) {}
TensorBoard::~TensorBoard() = default;
TensorBoard::TensorBoard(TensorBoard&&) noexcept = default;

void TensorBoard::write(const TrainingContext& context, const std::vector<Logs>& epochs) {
  if (!training_) {
    const std::string directory = path_in_run(context, options_.directory, "tensorboard", "TensorBoard");
    training_ = std::make_unique<Series>(directory + "/train");
    validation_ = std::make_unique<Series>(directory + "/validation");
  }
  training_->bring_to(context.file_system(), points_of(epochs, false));
  validation_->bring_to(context.file_system(), points_of(epochs, true));
}

}  // namespace holdfast
