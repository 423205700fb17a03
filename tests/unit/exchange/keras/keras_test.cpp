// Whole Keras files through the public functions, without Keras itself; tests/interop has the tests with Keras.

#include "holdfast/format/exchange/keras.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foreign_hdf5/tree.h"
#include "support/temporary_folder.h"
#include "unit/exchange/support/keras_trees.h"
#include "unit/exchange/support/zip_builder.h"
#include "zip/zip.h"

namespace holdfast::format {
namespace {

using testing::bytes_of;
using ::testing::ElementsAre;
using testing::error_of;
using testing::floats;
using ::testing::HasSubstr;
using testing::names;
using Names = std::vector<std::string>;

class KerasFile : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  FileSystem& files() const { return posix_file_system(); }

  std::string write_archive(const std::string& config, std::vector<ZipMember> more = {}) const {
    const Hdf5Tree weights = testing::tree({}, {floats("layers/dense/vars/0", {2, 3})});
    more.push_back({"config.json", bytes_of(config)});
    more.push_back({"metadata.json", bytes_of("{\"keras_version\": \"3.15.1\"}")});
    more.push_back({"model.weights.h5", compose_hdf5_tree("weights", weights)});
    write_zip(files(), path("model.keras"), more);
    return path("model.keras");
  }

  const TemporaryFolder folder_;
  const std::string config_ = testing::sequential({testing::layer("Dense", "mine", {{"use_bias", false}})}).dump();
};

TEST_F(KerasFile, IsAnArchiveWhateverItsName) {
  const std::string file = write_archive(config_);
  files().rename(file, path("model.h5"));

  EXPECT_THAT(names(read_keras(files(), path("model.h5")).arrays), ElementsAre("model/mine/kernel"));
}

TEST_F(KerasFile, IsRefusedWithTextsInsteadOfLosingThem) {
  Hdf5Tree weights = testing::tree({}, {floats("layers/dense/vars/0", {2, 3})});
  weights.texts.push_back({"notes", "keep me", {}});
  write_hdf5_tree(files(), path("a.weights.h5"), weights);

  EXPECT_THAT(error_of([&] { read_keras(files(), path("a.weights.h5")); }), HasSubstr("holds the text \"notes\""));
}

TEST_F(KerasFile, KeepsTheAssetsOfAnArchive) {
  const ArraySet before =
      read_keras(files(), write_archive(config_, {{"assets/words/list.txt", bytes_of("one\ntwo")}}));
  write_keras(files(), path("again.keras"), before, KerasForm::archive);

  const ArraySet after = read_keras(files(), path("again.keras"));

  EXPECT_THAT(names(after.arrays), ElementsAre("assets/words/list.txt", "model/mine/kernel"));
  EXPECT_EQ(testing::find(after.arrays, "assets/words/list.txt")->bytes, bytes_of("one\ntwo"));
  EXPECT_EQ(after.metadata, before.metadata);
}

TEST_F(KerasFile, HasTheSameBytesWhenItIsWrittenAgain) {
  const ArraySet set = read_keras(files(), write_archive(config_));
  write_keras(files(), path("a.weights.h5"), set, KerasForm::weights);
  write_keras(files(), path("b.weights.h5"), read_keras(files(), path("a.weights.h5")), KerasForm::weights);

  const auto content = [&](const std::string& name) {
    const auto file = files().open_for_reading(path(name));
    std::vector<std::byte> bytes(file->size_bytes());
    file->read_at(0, bytes);
    return bytes;
  };
  EXPECT_TRUE(content("a.weights.h5") == content("b.weights.h5"));
}

TEST_F(KerasFile, IsRefusedWithAnInvalidConfiguration) {
  for (const std::string config : {"{", "3", "{\"class_name\": \"Sequential\", \"config\": {\"layers\": [3]}}"}) {
    EXPECT_THAT(error_of([&] { read_keras(files(), write_archive(config)); }), HasSubstr("invalid_file: ")) << config;
    files().remove(path("model.keras"));
  }
}

TEST_F(KerasFile, IsRefusedWithUnknownMembers) {
  EXPECT_THAT(error_of([&] {
                read_keras(files(), write_archive(config_, {{"model.weights.npz", {}}}));
              }),
              HasSubstr("unsupported: "));
  write_zip(files(), path("empty.keras"), std::vector<ZipMember>{{"config.json", bytes_of(config_)}});
  EXPECT_THAT(error_of([&] { read_keras(files(), path("empty.keras")); }), HasSubstr("lacks config.json or"));
}

TEST_F(KerasFile, IsRefusedWithoutSignsOfKeras) {
  write_hdf5_tree(files(), path("other.h5"), testing::tree({}, {floats("weights/a", {2})}));

  EXPECT_THAT(error_of([&] { read_keras(files(), path("other.h5")); }), HasSubstr("is not a Keras file"));
}

TEST_F(KerasFile, SaysHowOftenItWasReplicated) {
  const Names layers = {"input_1", "lambda_1", "lambda_2", "model_1", "dense_1"};
  std::vector<Hdf5Group> groups = {{"", {{"layer_names", layers}}}};
  for (const std::string& layer : layers) groups.push_back({layer, {{"weight_names", Names{}}}});
  groups[4].attributes = {{"weight_names", Names{"dense_1/kernel:0"}}};
  write_hdf5_tree(files(), path("old.h5"), testing::tree(groups, {floats("model_1/dense_1/kernel:0", {2})}));

  const ArraySet set = read_keras(files(), path("old.h5"));

  EXPECT_THAT(names(set.arrays), ElementsAre("model/dense_1/kernel"));
  EXPECT_EQ(Json::parse(set.metadata)["keras"]["replicated"], 1);
}

TEST_F(KerasFile, LeavesNoFileWhenItCannotBeWritten) {
  ArraySet set = read_keras(files(), write_archive(config_));
  set.arrays[0].bytes.pop_back();

  for (const KerasForm form : {KerasForm::weights, KerasForm::archive, KerasForm::legacy_weights}) {
    EXPECT_THAT(error_of([&] { write_keras(files(), path("out"), set, form); }), HasSubstr("invalid_argument: "));
  }
  EXPECT_THAT(files().list(folder_.path()), ElementsAre("model.keras"));
}

TEST(KerasForm, IsFoundByItsName) {
  for (const KerasForm form :
       {KerasForm::weights, KerasForm::archive, KerasForm::legacy_weights, KerasForm::legacy_model}) {
    EXPECT_EQ(keras_form_from_name(name(form)), form);
  }
  EXPECT_THAT(error_of([] { keras_form_from_name("keras"); }), HasSubstr("invalid_argument: \"keras\""));
}

}  // namespace
}  // namespace holdfast::format
