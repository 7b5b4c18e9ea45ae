#include <tapedeck/tests/gpu/harness/op_call.h>

#include <tapedeck/engine/ir/strides.h>

#include <algorithm>
#include <cstring>

namespace tapedeck::gpu {
namespace {

constexpr std::size_t kGuard = 256;
constexpr unsigned char kPoison = 0xff;  // a NaN in every floating type

std::size_t rounded(std::size_t bytes) { return (bytes + kGuard - 1) / kGuard * kGuard; }

// The strides of a shape in an arrangement. Returns the elements that it spans, without the offset in front.
std::int64_t strides_of(const Shape& shape, const Arrangement& a, std::int64_t* strides) {
  std::int64_t extent = a.gap;
  for (int k = 0; k < shape.rank; ++k) {
    const int place = a.columns && shape.rank >= 2 && k < 2 ? 1 - k : k;  // counted from the innermost dimension
    const int d = a.reversed ? place : shape.rank - 1 - place;
    strides[d] = extent;
    if (a.rows_apart && d == 0) strides[d] = extent += 5;
    extent = extent * std::max<std::int64_t>(shape[d], 1) + (a.offset && !a.rows_apart ? 1 : 0);
  }
  return extent;
}

std::int64_t packed_strides(const Shape& shape, std::int64_t* strides) { return strides_of(shape, {}, strides); }

// The two numbers of a random state are never repeated.
bool repeats(const Op& op, const Type& type, const Arrangement& a) {
  return a.repeated != 0 && !(op.is(kRandom) && type.dtype == DType::i64);
}

}  // namespace

OpCall::OpCall(const Op& op, const void* attrs, const std::vector<Tensor>& operands, const std::vector<Type>& results,
               const Arrangement& arrangement)
    : op_(op), attrs_(attrs), n_operands_(static_cast<int>(operands.size())) {
  for (int i = 0; i < n_operands_; ++i) place_operand(i, operands[static_cast<std::size_t>(i)], arrangement);
  for (std::size_t k = 0; k < results.size(); ++k) place_result(static_cast<int>(k), results[k], arrangement);
  if (results.empty()) return;
  for (int i = 0; i < n_operands_; ++i) broadcast(&places_[static_cast<std::size_t>(i)].view, results[0].shape);
}

// Reserves memory behind a guard. The first element lies `offset` elements after an aligned address.
OpCall::Place OpCall::place(const Type& type, const std::int64_t* strides, std::int64_t offset, std::int64_t extent) {
  Place p;
  p.view.dtype = type.dtype;
  p.view.rank = type.shape.rank;
  for (int d = 0; d < type.shape.rank; ++d) {
    p.view.sizes[d] = type.shape.sizes[d];
    p.view.strides[d] = strides[d];
  }
  const std::size_t size = dtype_size(type.dtype), begin = rounded(image_.size()) + kGuard;
  p.at = begin + static_cast<std::size_t>(offset) * size;
  image_.resize(rounded(p.at + static_cast<std::size_t>(extent) * size) + kGuard, kPoison);
  may_change_.resize(image_.size(), 0);
  return p;
}

void OpCall::place_operand(int i, const Tensor& dense, const Arrangement& a) {
  const Type type = dense.type();
  std::int64_t strides[kMaxRank] = {}, offset = a.offset, extent = strides_of(type.shape, a, strides);
  if (repeats(op_, type, a)) {
    for (int d = 0; d < type.shape.rank; ++d)
      if (a.repeated >> d & 1) strides[d] = 0;
  }
  if (!takes_strides(op_, i, type.shape, strides)) extent = packed_strides(type.shape, strides);
  differs_ |= !is_dense(type.shape, strides) || offset != 0;
  const Place p = place(type, strides, offset, extent);
  const std::size_t size = dtype_size(type.dtype);
  const auto* from = static_cast<const unsigned char*>(dense.data());
  for_runs(p.view, [&](std::int64_t at, std::int64_t n) {
    std::memcpy(image_.data() + p.at + static_cast<std::size_t>(at) * size, from, static_cast<std::size_t>(n) * size);
    from += static_cast<std::size_t>(n) * size;
  });
  places_.push_back(p);
}

// Whether the result lies on the bytes of an operand. Then its place is that of the operand.
bool OpCall::shares(int k, const Arrangement& a) {
  if (!a.in_place) return false;
  for (const InplacePair& pair : op_.inplace) {
    if (pair.output != k || pair.input < 0 || pair.input >= n_operands_) continue;
    places_.push_back(places_[static_cast<std::size_t>(pair.input)]);
    return true;
  }
  return false;
}

void OpCall::place_result(int k, const Type& type, const Arrangement& a) {
  const auto same_type = [&] {
    const View& v = places_.back().view;
    return v.dtype == type.dtype && v.rank == type.shape.rank && std::equal(v.sizes, v.sizes + v.rank, type.shape.sizes);
  };
  if (shares(k, a)) {
    if (same_type()) {
      differs_ = true;
      return allow(places_.back());
    }
    places_.pop_back();
  }
  std::int64_t strides[kMaxRank] = {}, offset = 0, extent = packed_strides(type.shape, strides);
  if (a.strided_results) {
    std::int64_t wished[kMaxRank] = {};
    const std::int64_t wished_extent = strides_of(type.shape, a, wished);
    if (writes_strides(op_, k, type.shape, wished)) {
      std::copy(wished, wished + kMaxRank, strides);
      extent = wished_extent, offset = a.offset;
      differs_ |= !is_dense(type.shape, strides);
    }
  }
  places_.push_back(place(type, strides, offset, extent));
  allow(places_.back());
}

void OpCall::allow(const Place& place) {
  const std::size_t size = dtype_size(place.view.dtype);
  for_runs(place.view, [&](std::int64_t at, std::int64_t n) {
    std::memset(may_change_.data() + place.at + static_cast<std::size_t>(at) * size, 1, static_cast<std::size_t>(n) * size);
  });
}

// Broadcasts an operand as eager dispatch does: all dimensions of an elementwise op, the leading ones of a product.
void OpCall::broadcast(View* view, const Shape& result) const {
  Shape shape = result;
  if (op_.is(kMatrixStrides) && view->rank >= 2 && shape.rank >= 2) {
    for (int i = 1; i <= 2; ++i) shape.sizes[shape.rank - i] = view->sizes[view->rank - i];
  } else if (!op_.is(kElementwise)) {
    return;
  }
  View wide = *view;
  wide.rank = shape.rank;
  for (int d = shape.rank - 1; d >= 0; --d) {
    const int own = d - (shape.rank - view->rank);
    const bool repeated = own < 0 || (view->sizes[own] == 1 && shape.sizes[d] != 1);
    wide.sizes[d] = shape.sizes[d];
    wide.strides[d] = repeated ? 0 : view->strides[own];
  }
  *view = wide;
}

std::vector<View> OpCall::views_in(unsigned char* block) const {
  std::vector<View> views;
  for (const Place& p : places_) {
    views.push_back(p.view);
    views.back().data = block ? block + p.at : nullptr;
  }
  return views;
}

// Says which byte has changed that must not change; empty if there is none.
std::string OpCall::touched(const Bytes& after, std::size_t workspace_end) const {
  for (std::size_t i = 0; i < image_.size(); ++i)
    if (!may_change_[i] && after[i] != image_[i]) {
      std::size_t place = 0;
      while (place + 1 < places_.size() && places_[place + 1].at <= i) ++place;
      return "byte " + std::to_string(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(places_[place].at)) + " of " +
             (place < static_cast<std::size_t>(n_operands_) ? "operand " + std::to_string(place)
                                                            : "result " + std::to_string(place - n_operands_)) +
             " was written, which is none of its elements to write";
    }
  for (std::size_t i = workspace_end; i < after.size(); ++i)
    if (after[i] != kPoison) return "byte " + std::to_string(i - workspace_end) + " behind the workspace was written";
  return {};
}

namespace {

// Device memory that is released at the end of the scope.
class DeviceBlock {
 public:
  DeviceBlock(Device& device, std::size_t bytes) : device_(device), memory_(device.allocate(bytes)) {}
  ~DeviceBlock() { device_.release(memory_); }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  unsigned char* data() const { return memory_; }

 private:
  Device& device_;
  unsigned char* memory_;
};

}  // namespace

Outcome OpCall::run(Device& device) const {
  KernelFault* fault = device.fault();
  fault->what = nullptr;
  fault->value = 0;
  KernelCall call;
  std::vector<View> views = views_in(nullptr);  // the rule for the workspace reads no data
  const auto set_views = [&] {
    call.inputs = views.data();
    call.outputs = views.data() + n_operands_;
  };
  set_views();
  call.n_inputs = n_operands_;
  call.n_outputs = static_cast<std::int32_t>(views.size()) - n_operands_;
  call.attrs = attrs_;
  call.fault = fault;
  const std::int64_t workspace = device.workspace(op_, call);
  if (workspace < 0)
    return {.error = "the rule for the workspace gives " + std::to_string(workspace) + " bytes", .results = {}};
  Bytes before = image_;
  const std::size_t workspace_at = rounded(before.size()), workspace_end = workspace_at + static_cast<std::size_t>(workspace);
  before.resize(rounded(workspace_end) + kGuard, kPoison);

  const DeviceBlock block(device, before.size());
  device.write(block.data(), before.data(), before.size());
  views = views_in(block.data());
  set_views();
  call.workspace = workspace > 0 ? block.data() + workspace_at : nullptr;
  call.workspace_bytes = static_cast<std::size_t>(workspace);
  device.run(op_, call);
  device.wait();
  if (const std::string text = fault_text(*fault); !text.empty())
    return {.error = "the kernel reports: " + text, .results = {}};

  Bytes after(before.size());
  device.read(after.data(), block.data(), after.size());
  Outcome outcome{.error = touched(after, workspace_end), .results = {}};
  for (std::size_t k = static_cast<std::size_t>(n_operands_); k < places_.size(); ++k) {
    const std::size_t size = dtype_size(places_[k].view.dtype);
    Bytes elements;
    elements.reserve(static_cast<std::size_t>(places_[k].view.numel()) * size);
    for_runs(places_[k].view, [&](std::int64_t at, std::int64_t n) {
      const unsigned char* from = after.data() + places_[k].at + static_cast<std::size_t>(at) * size;
      elements.insert(elements.end(), from, from + static_cast<std::size_t>(n) * size);
    });
    outcome.results.push_back(std::move(elements));
  }
  return outcome;
}

}  // namespace tapedeck::gpu
