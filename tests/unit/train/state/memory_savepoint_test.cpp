#include "holdfast/train/memory_savepoint.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "train/state/resume.h"
#include "train/state/snapshot.h"

namespace holdfast {
namespace {

// Has one array.
class KeptArray final : public Trainable {
 public:
  std::string graph() const override { return "{}"; }
  std::string configuration() const override { return "{}"; }
  std::string arithmetic() const override { return ""; }
  Shape feature_shape() const override { return {1}; }
  Shape target_shape() const override { return {1}; }
  Shape output_shape() const override { return {1}; }
  void prepare(const Workers&) override {}
  void initialize(std::uint64_t) override {}
  std::vector<StateSpan> state() override { return {{"model/w", StateKind::parameter, Shape{2}, weights_}}; }
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return 2; }
  void compute_gradients(const ShardBatch&, GradientSink&, std::span<float>) override {}
  void compute_sums(const ShardBatch&, std::span<float>) override {}
  void predict(const ShardBatch&, std::span<float>) override {}
  void apply_update(const Update&) override {}

 private:
  std::vector<float> weights_ = {1, 2};
};

// What a replica leaves in the memory of its watchdog.
std::vector<std::byte> kept_image(std::int64_t step, int trainer) {
  KeptArray model;
  TrainState state;
  state.graph = model.graph();
  state.configuration = model.configuration();
  state.step = step;
  state.trainer = trainer;
  const StateImage image = image_of(state, model);
  std::vector<std::byte> bytes(image.size_bytes());
  image.copy(0, bytes);
  return bytes;
}

}  // namespace

TEST(MemorySavepoint, IsInTheFolderOfItsTrainer) {
  const TemporaryFolder folder;

  // The watchdog counts the steps of both Trainers.
  EXPECT_EQ(save_from_memory(folder.path(), 7, kept_image(7, 0)), folder / savepoint_name(7));
  EXPECT_EQ(save_from_memory(folder.path(), 11, kept_image(4, 1)), folder / ("trainer2/" + savepoint_name(4)));

  EXPECT_EQ(read_savepoint(posix_file_system(), folder / ("trainer2/" + savepoint_name(4))).state.trainer, 1);
}

TEST(MemorySavepoint, IsNotWrittenWhereANewerOneIs) {
  const TemporaryFolder folder;
  save_from_memory(folder.path(), 7, kept_image(7, 0));

  EXPECT_EQ(save_from_memory(folder.path(), 5, kept_image(5, 0)), std::nullopt);
  EXPECT_EQ(save_from_memory(folder.path(), 9, kept_image(9, 0)), folder / savepoint_name(9));
}

}  // namespace holdfast
