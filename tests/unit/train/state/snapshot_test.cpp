// The ways of a state: into a copy, a file, an image in memory, and back into a model. What is damaged or of another
// model must be refused without a trace in the model.

#include "train/state/snapshot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "holdfast/base/error.h"
#include "holdfast/base/whole_file.h"
#include "holdfast/format/array_file.h"
#include "holdfast/train/trainer.h"
#include "support/program.h"
#include "support/thrown.h"
#include "unit/train/support/held_by_a_test.h"

namespace holdfast {
namespace {

// Has two arrays and computes nothing.
class TwoArrays final : public Trainable {
 public:
  std::string graph() const override { return R"({"class_name":"TwoArrays"})"; }
  std::string configuration() const override { return "{}"; }
  std::string arithmetic() const override { return "none"; }
  Shape feature_shape() const override { return {1}; }
  Shape target_shape() const override { return {1}; }
  Shape output_shape() const override { return {1}; }
  void prepare(const Workers&) override {}
  void initialize(std::uint64_t) override {}
  std::vector<StateSpan> state() override {
    return {{"model/z", StateKind::parameter, Shape{static_cast<std::int64_t>(z.size())}, z},
            {"model/a", StateKind::buffer, Shape{2, 1}, a}};
  }
  std::vector<std::string> sum_names() const override { return {"loss"}; }
  std::size_t gradient_count() const override { return 1; }
  void compute_gradients(const ShardBatch&, GradientSink&, std::span<float>) override {}
  void compute_sums(const ShardBatch&, std::span<float>) override {}
  void predict(const ShardBatch&, std::span<float>) override {}
  void apply_update(const Update&) override {}

  std::vector<float> z = {1, 2, 3};
  std::vector<float> a = {4, 5};
};

TrainState some_state() {
  TrainState state;
  state.graph = R"({"class_name":"TwoArrays"})";
  state.configuration = "{}";
  state.step = 5;
  return state;
}

std::vector<std::byte> joined(const StateImage& image) {
  std::vector<std::byte> bytes(image.size_bytes());
  // Small pieces, so that some begin or end exactly where header and arrays do.
  constexpr std::size_t kPieceBytes = 4;
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
    image.copy(begin, std::span(bytes).subspan(begin, std::min(kPieceBytes, bytes.size() - begin)));
  }
  return bytes;
}

std::vector<float> values_of(const SnapshotArray& array) {
  return {array.values.begin(), array.values.end()};
}

std::string refusal(const Snapshot& snapshot, Trainable& trainable) {
  try {
    restore_arrays(snapshot, trainable, "that savepoint");
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::incompatible);
    return failure.what();
  }
  return "";
}

}  // namespace

TEST(Snapshot, IsACopyThatComesBackThroughAFile) {
  const TemporaryFolder folder;
  TwoArrays model;
  const Snapshot taken = take_snapshot(some_state(), model);
  model.z = {0, 0, 0};
  model.a = {0, 0};
  write_savepoint(posix_file_system(), folder / "file.h5", taken);

  const Snapshot read = read_savepoint(posix_file_system(), folder / "file.h5");
  restore_arrays(read, model, "the file");

  EXPECT_EQ(read.state.step, 5);
  EXPECT_EQ(model.z, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(model.a, (std::vector<float>{4, 5}));
}

TEST(Snapshot, ShowsTheStateItselfIfItIsAView) {
  TwoArrays model;

  const Snapshot view = view_of(some_state(), model);
  model.z = {7, 8, 9};

  EXPECT_EQ(values_of(view.arrays[0]), (std::vector<float>{7, 8, 9}));
  EXPECT_TRUE(view.memory.empty());
}

TEST(Snapshot, HasTheValuesOfADeviceAfterItHasArrived) {
  TwoArrays model;
  const auto held = std::make_shared<HeldByATest>(std::vector<std::vector<float>>{{9, 8, 7}, {6, 5}});

  const Snapshot sent = send_snapshot(some_state(), model, held);
  sent.arrive();

  EXPECT_EQ(sent.arrays[0].name, "model/z");
  EXPECT_EQ(values_of(sent.arrays[0]), (std::vector<float>{9, 8, 7}));
  EXPECT_EQ(values_of(sent.arrays[1]), (std::vector<float>{6, 5}));
}

TEST(Snapshot, ThatArrivesAsAnotherIsRefused) {
  TwoArrays model;
  const auto held = std::make_shared<HeldByATest>(std::vector<std::vector<float>>{{9, 8, 7}, {6, 5}});
  held->arrive_as({{9, 8, 7}, {6, 4}});

  const Snapshot sent = send_snapshot(some_state(), model, held);

  try {
    sent.arrive();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
  }
}

TEST(Snapshot, KeepsItsValuesWhenItIsMoved) {
  TwoArrays model;
  Snapshot taken = take_snapshot(some_state(), model);

  const Snapshot moved = std::move(taken);

  EXPECT_EQ(values_of(moved.arrays[0]), model.z);
}

TEST(Snapshot, ComesBackThroughAnImageInMemory) {
  TwoArrays model;
  const StateImage image = image_of(some_state(), model);
  const std::vector<std::byte> bytes = joined(image);
  std::vector<std::byte> at_once(bytes.size());
  image.copy(0, at_once);
  EXPECT_EQ(bytes, at_once);

  const Snapshot read = view_of_image(bytes);

  EXPECT_EQ(to_json(read.state), to_json(some_state()));
  ASSERT_EQ(read.arrays.size(), 2U);
  EXPECT_EQ(read.arrays[0].name, "model/z");
  EXPECT_EQ(values_of(read.arrays[0]), model.z);
  EXPECT_EQ(read.arrays[1].shape, (Shape{2, 1}));
  EXPECT_EQ(values_of(read.arrays[1]), model.a);
}

TEST(Snapshot, RefusesAnImageThatIsCutOff) {
  TwoArrays model;
  const std::vector<std::byte> bytes = joined(image_of(some_state(), model));

  for (std::size_t length = 0; length < bytes.size(); ++length) {
    try {
      view_of_image(std::span(bytes).first(length));
      ADD_FAILURE() << length << " of " << bytes.size() << " bytes were taken";
    } catch (const Error& failure) {
      EXPECT_EQ(failure.code(), ErrorCode::invalid_file);
    }
  }
}

// With the header that says this of one array, and no array.
std::vector<std::byte> image_of_one_array(const std::string& entry) {
  std::string text = nlohmann::json{{"state", to_json(some_state())},
                                    {"arrays", nlohmann::json::array({nlohmann::json::parse(entry)})}}
                         .dump();
  const std::uint64_t bytes = text.size();
  text.resize((bytes + 7) / 8 * 8, ' ');
  std::vector<std::byte> image(sizeof bytes + text.size());
  std::memcpy(image.data(), &bytes, sizeof bytes);
  std::memcpy(image.data() + sizeof bytes, text.data(), text.size());
  return image;
}

TEST(Snapshot, RefusesAnImageWhoseHeaderHasNoSuchArrays) {
  EXPECT_NO_THROW(view_of_image(image_of_one_array(R"({"name":"model/z","shape":[0]})")));
  for (const char* const entry :
       {R"({"name":"model/z","shape":[-1]})", R"({"name":"model/z","shape":[-2,-2]})",
        R"({"name":"model/z","shape":[4611686018427387904,4]})", R"({"name":"model/z","shape":[9223372036854775807]})",
        R"({"name":"model/z","shape":"wide"})", R"({"name":7,"shape":[0]})", R"({"shape":[0]})"}) {
    EXPECT_EQ(code_thrown_by([&] { view_of_image(image_of_one_array(entry)); }), ErrorCode::invalid_file) << entry;
  }
}

TEST(Snapshot, RefusesAnotherModelAndChangesNothing) {
  TwoArrays model;
  Snapshot missing = take_snapshot(some_state(), model);
  missing.arrays.pop_back();
  Snapshot reshaped = take_snapshot(some_state(), model);
  reshaped.arrays[1].shape = Shape{1, 2};
  Snapshot more = take_snapshot(some_state(), model);
  more.add("model/b", Shape{1})[0] = 0;
  model.z = {7, 7, 7};

  EXPECT_NE(refusal(missing, model).find("model/a"), std::string::npos);
  EXPECT_NE(refusal(reshaped, model).find("[1, 2]"), std::string::npos);
  EXPECT_NE(refusal(more, model).find("3 arrays"), std::string::npos);
  EXPECT_EQ(model.z, (std::vector<float>{7, 7, 7}));
}

TEST(Snapshot, RefusesAnArrayOfAnotherType) {
  const TemporaryFolder folder;
  const std::vector<double> values = {1, 2};
  const format::ArrayView view{"model/z", DType::f64, {2}, std::as_bytes(std::span(values))};
  format::write_array_file(posix_file_system(), folder / "file.h5", to_json(some_state()), std::span(&view, 1));
  TwoArrays model;

  EXPECT_THROW(read_savepoint(posix_file_system(), folder / "file.h5"), Error);
  EXPECT_THROW(load_savepoint(posix_file_system(), folder / "file.h5", model, [](const TrainState&) {}), Error);
}

TEST(Snapshot, IsLoadedIntoTheModel) {
  const TemporaryFolder folder;
  TwoArrays model;
  write_savepoint(posix_file_system(), folder / "file.h5", take_snapshot(some_state(), model));
  model.z = {0, 0, 0};
  model.a = {0, 0};
  std::int64_t accepted_step = 0;

  const TrainState state = load_savepoint(posix_file_system(), folder / "file.h5", model,
                                          [&](const TrainState& found) { accepted_step = found.step; });

  EXPECT_EQ(to_json(state), to_json(some_state()));
  EXPECT_EQ(accepted_step, 5);
  EXPECT_EQ(model.z, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(model.a, (std::vector<float>{4, 5}));
}

TEST(Snapshot, ThatIsDamagedGivesTheModelNothingThatWasNotChecked) {
  const TemporaryFolder folder;
  TwoArrays model;
  // Large enough to be read without a buffer in between.
  model.z.resize(64 * 1024);
  std::iota(model.z.begin(), model.z.end(), 1.0F);
  write_savepoint(posix_file_system(), folder / "file.h5", take_snapshot(some_state(), model),
                  {.compression = SavepointCompression::none});
  std::string content = read_text_file(posix_file_system(), folder / "file.h5");
  const std::string z(reinterpret_cast<const char*>(model.z.data()), model.z.size() * sizeof(float));
  const std::size_t at = content.find(z);
  ASSERT_NE(at, std::string::npos);
  content[at + 5] ^= 1;
  write_whole_file(posix_file_system(), folder / "file.h5", std::as_bytes(std::span(content)));
  std::fill(model.z.begin(), model.z.end(), 7.0F);

  try {
    load_savepoint(posix_file_system(), folder / "file.h5", model, [](const TrainState&) {});
    FAIL() << "damage was not noticed";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::invalid_file) << failure.what();
  }

  EXPECT_EQ(std::count(model.z.begin(), model.z.end(), 7.0F), 64 * 1024);
}

TEST(Snapshot, ThatIsNotAcceptedOrOfAnotherModelChangesNothingWhenItIsLoaded) {
  const TemporaryFolder folder;
  TwoArrays model;
  write_savepoint(posix_file_system(), folder / "same.h5", take_snapshot(some_state(), model));
  Snapshot more = take_snapshot(some_state(), model);
  more.add("model/b", Shape{1})[0] = 0;
  write_savepoint(posix_file_system(), folder / "other.h5", more);
  model.z = {7, 7, 7};
  const auto accept = [](const TrainState&) {};
  const auto refuse = [](const TrainState&) { throw Error(ErrorCode::incompatible, "other choices"); };

  EXPECT_THROW(load_savepoint(posix_file_system(), folder / "same.h5", model, refuse), Error);
  EXPECT_THROW(load_savepoint(posix_file_system(), folder / "other.h5", model, accept), Error);

  EXPECT_EQ(model.z, (std::vector<float>{7, 7, 7}));
}

TEST(Snapshot, CannotBeLoadedAsSequentialForAnApplicationsOwnModel) {
  const TemporaryFolder folder;
  TwoArrays model;
  write_savepoint(posix_file_system(), folder / "file.h5", take_snapshot(some_state(), model));

  try {
    load_model(folder / "file.h5");
    FAIL() << "it is not a Sequential";
  } catch (const Error& failure) {
    EXPECT_EQ(failure.code(), ErrorCode::unsupported) << failure.what();
  }
}

}  // namespace holdfast
