// Attributes: one plain struct per op (or family of ops) with one field list, which the printer, the parser, hashing and the
// kernels all share. The structs are trivially copyable and live in the attribute pools of tapes and graphs.
//
// A struct lists its fields with ATTR_FIELDS; a default-constructed struct holds the defaults. A field without a sensible
// default is marked required with ATTR_REQUIRED, and text that leaves it out is refused.
#pragma once

#include <tapedeck/kernels/dtype.h>
#include <tapedeck/kernels/export.h>
#include <tapedeck/kernels/kernel.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

// A short list of integers with inline storage: axes, sizes, strides.
struct Ints {
  std::int32_t size = 0;
  std::int64_t items[kMaxRank] = {};

  Ints() = default;
  Ints(std::initializer_list<std::int64_t> values) {
    for (std::int64_t v : values)
      if (size < kMaxRank) items[size++] = v;
  }
  std::int64_t operator[](int i) const { return items[i]; }
  const std::int64_t* begin() const { return items; }
  const std::int64_t* end() const { return items + size; }
  void push_back(std::int64_t v) { items[size++] = v; }
  bool operator==(const Ints& o) const {
    if (size != o.size) return false;
    for (int i = 0; i < size; ++i)
      if (items[i] != o.items[i]) return false;
    return true;
  }
};

// An interned string: equal text, equal pointer; lives for the whole process. Empty by default. Thread safe.
class Name {
 public:
  Name() = default;
  Name(std::string_view text);  // NOLINT: implicit on purpose
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const std::string& text) : Name(std::string_view(text)) {}
  std::string_view view() const { return text_ ? std::string_view(*text_) : std::string_view(); }
  std::string str() const { return std::string(view()); }
  bool empty() const { return text_ == nullptr; }
  bool operator==(const Name& o) const { return text_ == o.text_; }
  bool operator!=(const Name& o) const { return text_ != o.text_; }
  const void* id() const { return text_; }

 private:
  const std::string* text_ = nullptr;
};

// A number in a pool of tensor data kept beside the nodes (constants). -1 = none.
struct TensorIndex {
  std::int32_t index = -1;
};

enum class FieldKind : std::uint8_t { integer, real, boolean, string, dtype, ints, tensor };

constexpr FieldKind field_kind(const std::int64_t*) { return FieldKind::integer; }
constexpr FieldKind field_kind(const double*) { return FieldKind::real; }
constexpr FieldKind field_kind(const bool*) { return FieldKind::boolean; }
constexpr FieldKind field_kind(const Name*) { return FieldKind::string; }
constexpr FieldKind field_kind(const DType*) { return FieldKind::dtype; }
constexpr FieldKind field_kind(const Ints*) { return FieldKind::ints; }
constexpr FieldKind field_kind(const TensorIndex*) { return FieldKind::tensor; }

struct Field {
  const char* name;
  FieldKind kind;
  std::uint16_t offset;
  bool required;
};

// The type-erased face of an attribute struct.
struct AttrSchema {
  const Field* fields = nullptr;
  int n_fields = 0;
  std::size_t size = 0;
  const void* defaults = nullptr;
};

#define ATTR_FIELD(S, f) \
  ::tapedeck::Field { #f, ::tapedeck::field_kind(static_cast <const decltype(S::f)*>(nullptr)), offsetof(S, f), false }
#define ATTR_REQUIRED(S, f) \
  ::tapedeck::Field { #f, ::tapedeck::field_kind(static_cast <const decltype(S::f)*>(nullptr)), offsetof(S, f), true }

template <class A>
const AttrSchema& attr_schema() {
  static const A defaults{};
  static const AttrSchema schema{A::fields().begin(), static_cast<int>(A::fields().size()), sizeof(A), &defaults};
  return schema;
}

#define ATTR_FIELDS(...)                                                        \
  static const std::initializer_list<::tapedeck::Field>& fields() {             \
    static const std::initializer_list<::tapedeck::Field> list = {__VA_ARGS__}; \
    return list;                                                                \
  }

// ---- the attribute structs, by family ----

struct ReduceAttrs {  // sum mean max; axes empty = all; axes are normalised (0 <= a < rank, ascending) before a kernel sees
                      // them
  Ints axes;
  bool keepdims = false;
  ATTR_FIELDS(ATTR_FIELD(ReduceAttrs, axes), ATTR_FIELD(ReduceAttrs, keepdims))
};

struct AxisAttrs {  // softmax log_softmax concat argmax: one axis, normalised
  std::int64_t axis = -1;
  ATTR_FIELDS(ATTR_FIELD(AxisAttrs, axis))
};

struct ShapeAttrs {  // reshape broadcast_to: the result's sizes
  Ints shape;
  ATTR_FIELDS(ATTR_REQUIRED(ShapeAttrs, shape))
};

struct PermuteAttrs {  // transpose: result dimension i is input dimension axes[i]
  Ints axes;
  ATTR_FIELDS(ATTR_REQUIRED(PermuteAttrs, axes))
};

struct SliceAttrs {  // slice, slice_assign: x[starts[i] : stops[i] : steps[i]] in every dimension, normalised; no steps = all 1
  Ints starts;
  Ints stops;
  Ints steps;
  ATTR_FIELDS(ATTR_REQUIRED(SliceAttrs, starts), ATTR_REQUIRED(SliceAttrs, stops), ATTR_FIELD(SliceAttrs, steps))
};

struct PadAttrs {  // pad: zeros before and after every dimension
  Ints before;
  Ints after;
  ATTR_FIELDS(ATTR_REQUIRED(PadAttrs, before), ATTR_REQUIRED(PadAttrs, after))
};

struct CastAttrs {
  DType dtype = DType::f32;
  ATTR_FIELDS(ATTR_REQUIRED(CastAttrs, dtype))
};

struct FullAttrs {  // full: every element equals value
  Ints shape;
  DType dtype = DType::f32;
  double value = 0;
  ATTR_FIELDS(ATTR_REQUIRED(FullAttrs, shape), ATTR_REQUIRED(FullAttrs, dtype), ATTR_REQUIRED(FullAttrs, value))
};

struct OneHotAttrs {
  std::int64_t classes = 0;
  DType dtype = DType::f32;
  ATTR_FIELDS(ATTR_REQUIRED(OneHotAttrs, classes), ATTR_FIELD(OneHotAttrs, dtype))
};

// Lists of convolutions and pools: one number for all spatial dimensions, or one for each; padding also twice as many, those
// before every dimension and then those after.
struct ConvAttrs {  // conv2d conv3d: x [n,ci,spatial] with weights [co,ci/groups,spatial]
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  ATTR_FIELDS(ATTR_FIELD(ConvAttrs, stride), ATTR_FIELD(ConvAttrs, padding), ATTR_FIELD(ConvAttrs, dilation),
              ATTR_FIELD(ConvAttrs, groups))
};

struct ConvInputGradAttrs {  // must be told the input's spatial sizes
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  Ints size;
  ATTR_FIELDS(ATTR_FIELD(ConvInputGradAttrs, stride), ATTR_FIELD(ConvInputGradAttrs, padding),
              ATTR_FIELD(ConvInputGradAttrs, dilation), ATTR_FIELD(ConvInputGradAttrs, groups),
              ATTR_REQUIRED(ConvInputGradAttrs, size))
};

struct ConvWeightGradAttrs {  // must be told the kernel's spatial sizes
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  Ints size;
  ATTR_FIELDS(ATTR_FIELD(ConvWeightGradAttrs, stride), ATTR_FIELD(ConvWeightGradAttrs, padding),
              ATTR_FIELD(ConvWeightGradAttrs, dilation), ATTR_FIELD(ConvWeightGradAttrs, groups),
              ATTR_REQUIRED(ConvWeightGradAttrs, size))
};

struct PoolAttrs {  // max_pool2d max_pool3d and their indices; no stride = the window
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  Ints dilation = {1};
  bool ceil_mode = false;
  ATTR_FIELDS(ATTR_FIELD(PoolAttrs, window), ATTR_FIELD(PoolAttrs, stride), ATTR_FIELD(PoolAttrs, padding),
              ATTR_FIELD(PoolAttrs, dilation), ATTR_FIELD(PoolAttrs, ceil_mode))
};

struct DropoutAttrs {
  double p = 0.5;  // probability of dropping
  Name path;       // names the random stream; see kernels/philox.h
  ATTR_FIELDS(ATTR_FIELD(DropoutAttrs, p), ATTR_FIELD(DropoutAttrs, path))
};

struct RandomAttrs {  // uniform: [low, high); normal: mean low, deviation high
  Ints shape;
  DType dtype = DType::f32;
  double low = 0;
  double high = 1;
  Name path;
  ATTR_FIELDS(ATTR_REQUIRED(RandomAttrs, shape), ATTR_FIELD(RandomAttrs, dtype), ATTR_FIELD(RandomAttrs, low),
              ATTR_FIELD(RandomAttrs, high), ATTR_FIELD(RandomAttrs, path))
};

struct SgdAttrs {
  double momentum = 0;
  double weight_decay = 0;
  ATTR_FIELDS(ATTR_FIELD(SgdAttrs, momentum), ATTR_FIELD(SgdAttrs, weight_decay))
};

struct AdamAttrs {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  ATTR_FIELDS(ATTR_FIELD(AdamAttrs, beta1), ATTR_FIELD(AdamAttrs, beta2), ATTR_FIELD(AdamAttrs, eps),
              ATTR_FIELD(AdamAttrs, weight_decay))
};

struct ConstantAttrs {
  TensorIndex value;
  ATTR_FIELDS(ATTR_REQUIRED(ConstantAttrs, value))
};

struct OpaqueAttrs {  // stands for any computation; costs exactly `us` microseconds in the model, takes none when replayed
  double us = 0;
  ATTR_FIELDS(ATTR_FIELD(OpaqueAttrs, us))
};

}  // namespace TAPEDECK_API
