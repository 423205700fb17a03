// Each class gives its name and its number of axes, and pooling.h does the rest. Readers use private constructors,
// which take windows of any rank and which std::make_shared() cannot call. The layers of two axes have sources of their
// own, max_pooling2d.cpp and average_pooling2d.cpp.

#include "holdfast/nn/pooling_layers.h"

#include "nn/layers/convolution/pooling.h"

namespace holdfast {

// Windows are checked in the private constructors, because those of a file come here, too.
MaxPooling1D::MaxPooling1D(const PoolingWindows& windows, const std::string& name) : LayerOf(name), windows_(windows) {
  check_pooling("MaxPooling1D", windows);
}

MaxPooling1D::MaxPooling1D(std::int64_t pool_size, const MaxPooling1DOptions& options)
    : MaxPooling1D(pooling_windows(pool_size, options), options.name) {}

// The rank of the input is checked by build_pooling(), since options alone do not tell it.
std::vector<Value> MaxPooling1D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::maximum, windows_);
}

void MaxPooling1D::write_config(ConfigWriter& config) const {
  write_pooling(config, windows_);
}

// A file does not say how many axes its windows have: the class does.
std::shared_ptr<const Layer> MaxPooling1D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new MaxPooling1D(read_pooling(config, 1), name));
}

MaxPooling3D::MaxPooling3D(const PoolingWindows& windows, const std::string& name) : LayerOf(name), windows_(windows) {
  check_pooling("MaxPooling3D", windows);
}

MaxPooling3D::MaxPooling3D(Extent3D pool_size, const MaxPooling3DOptions& options)
    : MaxPooling3D(pooling_windows(pool_size, options), options.name) {}

std::vector<Value> MaxPooling3D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::maximum, windows_);
}

void MaxPooling3D::write_config(ConfigWriter& config) const {
  write_pooling(config, windows_);
}

std::shared_ptr<const Layer> MaxPooling3D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new MaxPooling3D(read_pooling(config, 3), name));
}

AveragePooling1D::AveragePooling1D(const PoolingWindows& windows, const std::string& name)
    : LayerOf(name), windows_(windows) {
  check_pooling("AveragePooling1D", windows);
}

AveragePooling1D::AveragePooling1D(std::int64_t pool_size, const AveragePooling1DOptions& options)
    : AveragePooling1D(pooling_windows(pool_size, options), options.name) {}

// The divisor of a mean counts no padding, as in Keras: compute/arithmetic/pooling.h.
std::vector<Value> AveragePooling1D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::average, windows_);
}

void AveragePooling1D::write_config(ConfigWriter& config) const {
  write_pooling(config, windows_);
}

std::shared_ptr<const Layer> AveragePooling1D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new AveragePooling1D(read_pooling(config, 1), name));
}

AveragePooling3D::AveragePooling3D(const PoolingWindows& windows, const std::string& name)
    : LayerOf(name), windows_(windows) {
  check_pooling("AveragePooling3D", windows);
}

AveragePooling3D::AveragePooling3D(Extent3D pool_size, const AveragePooling3DOptions& options)
    : AveragePooling3D(pooling_windows(pool_size, options), options.name) {}

std::vector<Value> AveragePooling3D::build(LayerBuilder&, std::span<const Value> inputs) const {
  return build_pooling(inputs, compute::PoolingKind::average, windows_);
}

void AveragePooling3D::write_config(ConfigWriter& config) const {
  write_pooling(config, windows_);
}

std::shared_ptr<const Layer> AveragePooling3D::from_config(const std::string& name, ConfigReader& config) {
  return std::shared_ptr<const Layer>(new AveragePooling3D(read_pooling(config, 3), name));
}

}  // namespace holdfast
