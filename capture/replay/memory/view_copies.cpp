#include <tapedeck/capture/replay/memory/view_copies.h>

#include <tapedeck/engine/eager/tensor_impl.h>
#include <tapedeck/engine/ir/op.h>

#include <algorithm>
#include <cstring>

namespace tapedeck::replay {

namespace {

void copy_view(const View& from, const View& to) {
  static const Op* const copy = find_op("copy");
  KernelFault fault;
  KernelCall call;
  call.inputs = &from;
  call.outputs = &to;
  call.n_inputs = call.n_outputs = 1;
  call.fault = &fault;
  copy->kernels[static_cast<int>(DeviceType::cpu)](call);
}

// A view of a dense tensor with the dtype and the sizes of `like`.
View dense_view(const Tensor& tensor, const View& like) {
  View view = like;
  view.data = tensor.impl()->data();
  std::copy_n(tensor.strides(), view.rank, view.strides);
  return view;
}

}  // namespace

Tensor copy_of_view(const View& from, const Type& type) {
  Tensor out = empty(type);
  if (out.numel() == 0) return out;
  const View to = dense_view(out, from);
  if (from.dense())
    std::memcpy(to.data, from.data, static_cast<std::size_t>(out.bytes()));
  else
    copy_view(from, to);
  return out;
}

void copy_to_view(const Tensor& from, const View& to) {
  if (from.numel() == 0) return;
  if (to.dense())
    std::memcpy(to.data, from.impl()->data(), static_cast<std::size_t>(from.bytes()));
  else
    copy_view(dense_view(from, to), to);
}

Reach reach_of(const View& v) {
  if (v.numel() == 0) return {};
  std::int64_t below = 0, above = 0;  // elements
  for (int d = 0; d < v.rank; ++d) {
    const std::int64_t last = (v.sizes[d] - 1) * v.strides[d];
    (last < 0 ? below : above) += last;
  }
  const auto item = static_cast<std::int64_t>(dtype_size(v.dtype));
  return {-below * item, (above - below + 1) * item};
}

}  // namespace tapedeck::replay
