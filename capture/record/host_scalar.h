// A number of the host that a step reads. In a capture it is an input of the graph: every replay reads its value anew.
#pragma once

#include <tapedeck/engine/eager/tensor.h>

#include <cstring>
#include <string>

namespace tapedeck TAPEDECK_API {

// Make it once, outside the step; set it between calls:
//     HostScalar scale(1.0, "scale");
//     auto step = capture([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * scale.tensor()}; });
//     scale.set(0.5);
// set() inside a step is a CaptureError: a replay would not run it. Not thread safe.
class HostScalar {
 public:
  explicit HostScalar(double value, const std::string& name = "scalar", DType dtype = DType::f32)
      : tensor_(scalar(value, dtype)) {
    tensor_.name(name).role(Role::input);
  }
  HostScalar(const HostScalar&) = delete;  // a copy would be the same number
  void set(double value, Site site = {__builtin_FILE(), __builtin_LINE()}) {
    void* to = tensor_.mutable_data(site);
    const Tensor now = scalar(value, tensor_.dtype());
    std::memcpy(to, now.data(), static_cast<std::size_t>(now.bytes()));
  }
  double value() const { return tensor_.item(); }
  const Tensor& tensor() const { return tensor_; }  // 0-d

 private:
  Tensor tensor_;
};

}  // namespace TAPEDECK_API
