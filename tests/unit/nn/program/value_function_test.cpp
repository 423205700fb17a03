// Configurations are data: a savepoint holds them, and a resume compares them as text. These texts have the bytes of
// savepoints that exist.

#include "nn/program/value_function.h"

#include <gtest/gtest.h>

#include <string>

#include "holdfast/holdfast.h"

namespace holdfast {
namespace {

TEST(ValueFunction, KeepsTheBytesOfConfigurationsOfMetrics) {
  EXPECT_EQ(
      (metrics::IoU(3, {0, 2}, {.ignore_class = 1, .sparse_outputs = false, .name = "i \"j\""})).configuration(),
      R"({"kind":"io_u","num_classes":3,"target_class_ids":[0,2],"sparse_y_true":true,"ignore_class":1,"sparse_y_pred":false,"axis":-1,"name":"i \"j\""})");
  EXPECT_EQ(
      (metrics::MeanIoU(4, {.sparse_targets = false})).configuration(),
      R"({"kind":"mean_io_u","num_classes":4,"sparse_y_true":false,"ignore_class":null,"sparse_y_pred":true,"axis":-1,"name":"mean_io_u"})");
  EXPECT_EQ(
      (metrics::OneHotIoU(3, {1})).configuration(),
      R"({"kind":"one_hot_io_u","num_classes":3,"target_class_ids":[1],"ignore_class":null,"sparse_y_pred":false,"axis":-1,"name":"one_hot_io_u"})");
  EXPECT_EQ(
      (metrics::OneHotMeanIoU(2, {.ignore_class = -1, .sparse_outputs = true})).configuration(),
      R"({"kind":"one_hot_mean_io_u","num_classes":2,"ignore_class":-1,"sparse_y_pred":true,"axis":-1,"name":"one_hot_mean_io_u"})");
  EXPECT_EQ(metrics::BinaryIoU().configuration(),
            R"({"kind":"binary_io_u","target_class_ids":[0,1],"threshold":0.5,"name":"binary_io_u"})");
  EXPECT_EQ((metrics::BinaryIoU({.target_class_ids = {1}, .threshold = 0.3F, .name = "b"})).configuration(),
            R"({"kind":"binary_io_u","target_class_ids":[1],"threshold":0.3,"name":"b"})");
  EXPECT_EQ(metrics::Accuracy().configuration(), R"({"kind":"accuracy","name":"accuracy"})");
  EXPECT_EQ((metrics::TopKCategoricalAccuracy({.k = 3})).configuration(),
            R"({"kind":"top_k_categorical_accuracy","k":3,"name":"top_k_categorical_accuracy"})");
  EXPECT_EQ(metrics::Precision().configuration(), R"({"kind":"precision","thresholds":0.5,"name":"precision"})");
  EXPECT_EQ((metrics::Precision({.top_k = 2, .class_id = 1})).configuration(),
            R"({"kind":"precision","thresholds":null,"top_k":2,"class_id":1,"name":"precision"})");
  EXPECT_EQ((metrics::Recall({.threshold = 0, .top_k = 2, .name = "r"})).configuration(),
            R"({"kind":"recall","thresholds":0,"top_k":2,"name":"r"})");
  EXPECT_EQ((metrics::TruePositives({.thresholds = {0.1F, 0.9F}})).configuration(),
            R"({"kind":"true_positives","thresholds":[0.1,0.9],"name":"true_positives"})");
  EXPECT_EQ(
      (metrics::FBetaScore({.average = metrics::FBetaAverage::micro, .beta = 2, .threshold = 0.25F})).configuration(),
      R"({"kind":"fbeta_score","average":"micro","beta":2.0,"threshold":0.25,"name":"fbeta_score"})");
  EXPECT_EQ((metrics::F1Score({.average = metrics::FBetaAverage::none})).configuration(),
            R"({"kind":"f1_score","average":null,"threshold":null,"name":"f1_score"})");
  EXPECT_EQ(
      metrics::AUC().configuration(),
      R"({"kind":"auc","num_thresholds":200,"curve":"ROC","summation_method":"interpolation","multi_label":false,"label_weights":null,"from_logits":false,"name":"auc"})");
  EXPECT_EQ(
      (metrics::AUC(
           {.curve = metrics::AUCCurve::pr, .thresholds = {0.5F}, .multi_label = true, .label_weights = {1, 0.5F}}))
          .configuration(),
      R"({"kind":"auc","num_thresholds":3,"curve":"PR","summation_method":"interpolation","multi_label":true,"label_weights":[1,0.5],"from_logits":false,"thresholds":[0.5],"name":"auc"})");
  EXPECT_EQ(
      (metrics::PrecisionAtRecall(0.8F, {.num_thresholds = 3})).configuration(),
      R"({"kind":"precision_at_recall","recall":0.8,"num_thresholds":3,"class_id":null,"name":"precision_at_recall"})");
  EXPECT_EQ(
      (metrics::SensitivityAtSpecificity(0.1F, {.class_id = 1})).configuration(),
      R"({"kind":"sensitivity_at_specificity","specificity":0.1,"num_thresholds":200,"class_id":1,"name":"sensitivity_at_specificity"})");
  EXPECT_EQ((metrics::CosineSimilarity({.axis = 0})).configuration(),
            R"({"kind":"cosine_similarity","axis":0,"name":"cosine_similarity"})");
  EXPECT_EQ(metrics::R2Score().configuration(),
            R"({"kind":"r2_score","class_aggregation":"uniform_average","name":"r2_score"})");
  EXPECT_EQ(
      (metrics::R2Score({.class_aggregation = metrics::R2Aggregation::none, .num_regressors = 2})).configuration(),
      R"({"kind":"r2_score","class_aggregation":null,"num_regressors":2,"name":"r2_score"})");
  EXPECT_EQ((metrics::BinaryCrossentropy({.from_logits = true, .label_smoothing = 0.1F})).configuration(),
            R"({"kind":"binary_crossentropy","from_logits":true,"label_smoothing":0.1,"name":"binary_crossentropy"})");
  EXPECT_EQ((metrics::Perplexity({.from_logits = true})).configuration(),
            R"({"kind":"perplexity","from_logits":true,"name":"perplexity"})");
  EXPECT_EQ((metrics::Perplexity({.from_logits = true, .ignore_class = -1})).configuration(),
            R"({"kind":"perplexity","from_logits":true,"ignore_class":-1,"name":"perplexity"})");
}

TEST(ValueFunction, KeepsTheBytesOfConfigurationsOfLosses) {
  EXPECT_EQ(
      (losses::BinaryFocalCrossentropy({.apply_class_balancing = true, .label_smoothing = 0.1F})).configuration(),
      R"({"kind":"binary_focal_crossentropy","apply_class_balancing":true,"alpha":0.25,"gamma":2,"from_logits":false,"label_smoothing":0.1})");
  EXPECT_EQ(
      (losses::CategoricalFocalCrossentropy({.gamma = 1.5F, .from_logits = true})).configuration(),
      R"({"kind":"categorical_focal_crossentropy","alpha":0.25,"gamma":1.5,"from_logits":true,"label_smoothing":0})");
  EXPECT_EQ((losses::CategoricalGeneralizedCrossEntropy({.q = 0.7F})).configuration(),
            R"({"kind":"categorical_generalized_cross_entropy","q":0.7})");
  EXPECT_EQ(losses::Dice().configuration(), R"({"kind":"dice","axis":[]})");
  EXPECT_EQ((losses::Tversky({.alpha = 0.3F, .beta = 1e-7F, .axis = {0, -1}})).configuration(),
            R"({"kind":"tversky","alpha":0.3,"beta":1e-07,"axis":[0,-1]})");
  EXPECT_EQ((losses::Huber({.delta = 2})).configuration(), R"({"kind":"huber","delta":2})");
  EXPECT_EQ((losses::CosineSimilarity({.axis = 1})).configuration(), R"({"kind":"cosine_similarity","axis":1})");
  EXPECT_EQ(losses::Hinge().configuration(), R"({"kind":"hinge"})");
}

TEST(ValueFunction, WritesMembersBetweenTheKindAndTheLastOne) {
  EXPECT_EQ(built_in_configuration("k", ""), R"({"kind":"k"})");
  EXPECT_EQ(built_in_configuration("k", R"("a":1,"b":[2])"), R"({"kind":"k","a":1,"b":[2]})");
  EXPECT_EQ(built_in_configuration("k", "", R"("name":"n")"), R"({"kind":"k","name":"n"})");
  EXPECT_EQ(built_in_configuration("k", R"("a":1)", R"("name":"n")"), R"({"kind":"k","a":1,"name":"n"})");
}

}  // namespace
}  // namespace holdfast
