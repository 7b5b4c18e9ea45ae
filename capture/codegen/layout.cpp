// The walk of a fused kernel, and the argument of its launch.
//
//     x f32[8,1,100] + b f32[100]      ->  rank 2, sizes 8 100: x linear, b row, the result linear; 4 lanes of 4 bytes
//     x f32[8,1,100] + y f32[8,1,100]  ->  rank 1, size 800: all linear
#include <tapedeck/capture/codegen/layout.h>

#include <algorithm>
#include <limits>

namespace tapedeck::codegen {

namespace {

constexpr std::int64_t kAccessBytes = 16;  // the widest access of a thread
constexpr std::int64_t kMostBlocks = 4096;

const View& view_at(std::span<const View> inputs, std::span<const View> outputs, std::size_t k) {
  return k < inputs.size() ? inputs[k] : outputs[k - inputs.size()];
}

// Appends dimension d of the views to the walk, or merges it with the last dimension.
void add_dimension(FusedLayout* l, std::span<const View> inputs, std::span<const View> outputs, int d) {
  const std::int64_t size = outputs[0].sizes[d];
  if (size == 1) return;
  bool merges = l->rank > 0;
  for (std::size_t k = 0; merges && k < l->views.size(); ++k)
    merges = l->views[k].strides[l->rank - 1] == view_at(inputs, outputs, k).strides[d] * size;
  if (!merges) ++l->rank;
  l->sizes[l->rank - 1] = merges ? l->sizes[l->rank - 1] * size : size;
  for (std::size_t k = 0; k < l->views.size(); ++k) l->views[k].strides[l->rank - 1] = view_at(inputs, outputs, k).strides[d];
}

Access access_of(const FusedLayout& l, const FusedLayout::Walked& v, bool is_result) {
  bool linear = true;
  std::int64_t expected = 1;
  for (int d = l.rank - 1; d >= 0; --d) {
    linear = linear && v.strides[d] == expected;
    expected *= l.sizes[d];
  }
  if (linear) return Access::linear;
  if (v.strides[l.rank - 1] == 1) return Access::row;
  return v.strides[l.rank - 1] == 0 && !is_result ? Access::repeated : Access::gathered;
}

bool side_by_side(const FusedLayout::Walked& v) { return v.access == Access::linear || v.access == Access::row; }

std::int64_t element_bytes(const FusedLayout::Walked& v) { return static_cast<std::int64_t>(dtype_size(v.dtype)); }

// The lanes with which the widest view is read 16 bytes at a time, or 1 if some group of lanes would cross a row.
int lanes_of(const FusedLayout& l) {
  std::int64_t widest = 1;
  for (const auto& v : l.views)
    if (side_by_side(v)) widest = std::max(widest, element_bytes(v));
  const std::int64_t lanes = kAccessBytes / widest;
  if (l.n < lanes || (l.rank > 1 && l.sizes[l.rank - 1] % lanes != 0)) return 1;
  for (std::size_t k = 0; k < l.views.size(); ++k) {
    const auto& v = l.views[k];
    if (static_cast<int>(k) >= l.n_inputs && !side_by_side(v)) return 1;
    for (int d = 0; d < l.rank - 1; ++d)
      if (v.access == Access::row && v.strides[d] % lanes != 0) return 1;
  }
  return static_cast<int>(lanes);
}

}  // namespace

FusedLayout fused_layout(std::span<const View> inputs, std::span<const View> outputs) {
  FusedLayout l;
  l.n_inputs = static_cast<int>(inputs.size());
  l.n = outputs[0].numel();
  l.views.resize(inputs.size() + outputs.size());
  for (std::size_t k = 0; k < l.views.size(); ++k) l.views[k].dtype = view_at(inputs, outputs, k).dtype;
  l.rank = 0;
  for (int d = 0; d < outputs[0].rank; ++d) add_dimension(&l, inputs, outputs, d);
  if (l.rank == 0) {  // one element
    l.rank = 1;
    l.sizes[0] = 1;
    for (auto& v : l.views) v.strides[0] = 1;
  }
  for (std::size_t k = 0; k < l.views.size(); ++k)
    l.views[k].access = access_of(l, l.views[k], static_cast<int>(k) >= l.n_inputs);
  l.lanes = lanes_of(l);
  l.long_index = l.n > std::numeric_limits<std::int32_t>::max();
  return l;
}

ArgumentPlaces argument_places(const FusedLayout& l) {
  ArgumentPlaces p;
  p.data = p.sizes + l.rank;
  p.strides = p.data + static_cast<int>(l.views.size());
  const auto walked = std::count_if(l.views.begin(), l.views.end(), [](const auto& v) { return v.access != Access::linear; });
  p.words = p.strides + static_cast<int>(walked) * l.rank;
  return p;
}

namespace {

bool aligned(const FusedLayout& l, const FusedLayout::Walked& v, const void* data) {
  return !side_by_side(v) ||
         reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(element_bytes(v) * l.lanes) == 0;
}

}  // namespace

void fill_launch(const FusedLayout& l, const KernelCall& call, FusedLaunch* launch) {
  const ArgumentPlaces p = argument_places(l);
  launch->words[0] = static_cast<std::uint64_t>(l.n);
  for (int d = 0; d < l.rank; ++d) launch->words[p.sizes + d] = static_cast<std::uint64_t>(l.sizes[d]);
  launch->wide = l.lanes > 1;
  int stride = p.strides;
  for (int k = 0; k < static_cast<int>(l.views.size()); ++k) {
    void* const data = k < l.n_inputs ? call.inputs[k].data : call.outputs[k - l.n_inputs].data;
    launch->words[p.data + k] = reinterpret_cast<std::uintptr_t>(data);
    launch->wide = launch->wide && aligned(l, l.views[k], data);
    if (l.views[k].access == Access::linear) continue;
    for (int d = 0; d < l.rank; ++d) launch->words[stride++] = static_cast<std::uint64_t>(l.views[k].strides[d]);
  }
  const std::int64_t items = launch->wide ? (l.n + l.lanes - 1) / l.lanes : l.n;
  launch->blocks = static_cast<unsigned>(std::min((items + kFusedThreads - 1) / kFusedThreads, kMostBlocks));
}

}  // namespace tapedeck::codegen
