// Attributes of ops: one plain struct per op, or per family of ops. Each struct lists its fields once, with ATTR_FIELDS.
// Code that does not know the C++ type works from this list: the printer, the parser, the hash and the comparison. A kernel
// reads the members of its struct. The structs are trivially copyable, and they live in the attribute pools of tapes and
// graphs.
//
// A default-constructed struct holds the default values. A field that has no sensible default is listed with ATTR_REQUIRED: the
// parser refuses a text that leaves this field out.
// never_size(), size_list() and may_scale() around a field state its FieldUse; added_later() says that files exist which lack
// it.
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

// Throws std::length_error, which names the place of the call.
[[noreturn]] void refuse_long_list(std::size_t size, const char* file, int line);

// A list of at most kMaxRank integers, stored inside the object: axes, sizes or strides. More integers are a std::length_error.
struct Ints {
  std::int32_t size = 0;
  std::int64_t items[kMaxRank] = {};

  Ints() = default;
  Ints(std::initializer_list<std::int64_t> values, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (values.size() > static_cast<std::size_t>(kMaxRank)) refuse_long_list(values.size(), file, line);
    for (std::int64_t v : values) items[size++] = v;
  }
  std::int64_t operator[](int i) const { return items[i]; }
  const std::int64_t* begin() const { return items; }
  const std::int64_t* end() const { return items + size; }
  void push_back(std::int64_t v, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (size == kMaxRank) refuse_long_list(kMaxRank + 1, file, line);
    items[size++] = v;
  }
  bool operator==(const Ints& o) const {
    if (size != o.size) return false;
    for (int i = 0; i < size; ++i)
      if (items[i] != o.items[i]) return false;
    return true;
  }
};

// An interned string: two Names of equal text hold the same pointer. The text lives until the process ends. A
// default-constructed Name is the empty text. Thread safe.
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

// The number of a constant in the pool of tensor data that a tape or graph keeps beside its nodes. -1 means no tensor.
struct TensorIndex {
  std::int32_t index = -1;
};

// The type of a field: int64, double, bool, Name, DType, Ints, TensorIndex. field_kind() gives the kind of a C++ type.
enum class FieldKind : std::uint8_t { integer, real, boolean, string, dtype, ints, tensor };

constexpr FieldKind field_kind(const std::int64_t*) { return FieldKind::integer; }
constexpr FieldKind field_kind(const double*) { return FieldKind::real; }
constexpr FieldKind field_kind(const bool*) { return FieldKind::boolean; }
constexpr FieldKind field_kind(const Name*) { return FieldKind::string; }
constexpr FieldKind field_kind(const DType*) { return FieldKind::dtype; }
constexpr FieldKind field_kind(const Ints*) { return FieldKind::ints; }
constexpr FieldKind field_kind(const TensorIndex*) { return FieldKind::tensor; }

// Whether the author of a program computes an attribute from the size of a tensor. If one graph serves several sizes, such an
// attribute has to follow (capture/sizes).
enum class FieldUse : std::uint8_t {
  any,         // an integer may hold a size; a real number holds none
  never_size,  // it numbers axes, or says how windows move
  size_list,   // the sizes or the ends of a result, one for each axis: a gradient repeats them
  may_scale,   // a real number that may be a size n, or 1/n
};

// One field of an attribute struct: its name in the text, its type, its offset in bytes, and whether a text must state it.
struct Field {
  const char* name;
  FieldKind kind;
  std::uint16_t offset;
  bool required;
  FieldUse use = FieldUse::any;
  bool added_later = false;  // a text has it only where it differs from its default, so that older texts stay as they are
};

constexpr Field with_use(Field field, FieldUse use) {
  field.use = use;
  return field;
}
constexpr Field never_size(const Field& field) { return with_use(field, FieldUse::never_size); }
constexpr Field size_list(const Field& field) { return with_use(field, FieldUse::size_list); }
constexpr Field may_scale(const Field& field) { return with_use(field, FieldUse::may_scale); }
constexpr Field added_later(Field field) {
  field.added_later = true;
  return field;
}

// The description of one attribute struct for code that does not know its C++ type: the fields, the size in bytes, and a
// pointer to a default-constructed struct.
struct AttrSchema {
  const Field* fields = nullptr;
  int n_fields = 0;
  std::size_t size = 0;
  const void* defaults = nullptr;
};

// ATTR_FIELD(struct, field) describes a field with a default, and ATTR_REQUIRED a field that a text must state.
#define ATTR_FIELD(S, f) \
  ::tapedeck::Field { #f, ::tapedeck::field_kind(static_cast <const decltype(S::f)*>(nullptr)), offsetof(S, f), false }
#define ATTR_REQUIRED(S, f) \
  ::tapedeck::Field { #f, ::tapedeck::field_kind(static_cast <const decltype(S::f)*>(nullptr)), offsetof(S, f), true }

// The schema of the attribute struct A. Made at the first call; lives until the process ends. Thread safe.
template <class A>
const AttrSchema& attr_schema() {
  static const A defaults{};
  static const AttrSchema schema{A::fields().begin(), static_cast<int>(A::fields().size()), sizeof(A), &defaults};
  return schema;
}

// ATTR_FIELDS(...) stands inside an attribute struct and lists its fields.
#define ATTR_FIELDS(...)                                                        \
  static const std::initializer_list<::tapedeck::Field>& fields() {             \
    static const std::initializer_list<::tapedeck::Field> list = {__VA_ARGS__}; \
    return list;                                                                \
  }

// ---- the attribute structs, by family ----

// sum mean max and other reductions. Empty `axes` means all axes. The axes are normalised (0 <= axis < rank, ascending) before
// a kernel sees them.
struct ReduceAttrs {
  Ints axes;
  bool keepdims = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(ReduceAttrs, axes)), ATTR_FIELD(ReduceAttrs, keepdims))
};

// softmax log_softmax concat argmax. The axis is normalised (0 <= axis < rank) before a kernel sees it.
struct AxisAttrs {
  std::int64_t axis = -1;
  ATTR_FIELDS(never_size(ATTR_FIELD(AxisAttrs, axis)))
};

// reshape broadcast_to: `shape` holds the sizes of the result.
struct ShapeAttrs {
  Ints shape;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(ShapeAttrs, shape)))
};

// transpose: dimension i of the result is dimension axes[i] of the input.
struct PermuteAttrs {
  Ints axes;
  ATTR_FIELDS(never_size(ATTR_REQUIRED(PermuteAttrs, axes)))
};

// slice slice_assign: x[starts[i] : stops[i] : steps[i]] in every dimension i. Starts and stops are normalised. An empty
// `steps` means a step of 1 in every dimension.
struct SliceAttrs {
  Ints starts;
  Ints stops;
  Ints steps;
  ATTR_FIELDS(ATTR_REQUIRED(SliceAttrs, starts), size_list(ATTR_REQUIRED(SliceAttrs, stops)),
              never_size(ATTR_FIELD(SliceAttrs, steps)))
};

// pad: before[i] zeros in front of dimension i, and after[i] zeros behind it.
struct PadAttrs {
  Ints before;
  Ints after;
  ATTR_FIELDS(ATTR_REQUIRED(PadAttrs, before), ATTR_REQUIRED(PadAttrs, after))
};

// cast: the element type of the result.
struct CastAttrs {
  DType dtype = DType::f32;
  ATTR_FIELDS(ATTR_REQUIRED(CastAttrs, dtype))
};

// full: a tensor in which every element equals `value`.
struct FullAttrs {
  Ints shape;
  DType dtype = DType::f32;
  double value = 0;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(FullAttrs, shape)), ATTR_REQUIRED(FullAttrs, dtype),
              may_scale(ATTR_REQUIRED(FullAttrs, value)))
};

// one_hot: the number of classes and the element type of the result.
struct OneHotAttrs {
  std::int64_t classes = 0;
  DType dtype = DType::f32;
  ATTR_FIELDS(ATTR_REQUIRED(OneHotAttrs, classes), ATTR_FIELD(OneHotAttrs, dtype))
};

// conv2d conv3d: x [n,ci,spatial...] with weights [co,ci/groups,spatial...].
//
// The lists of convolutions and pools hold one number for all spatial dimensions, or one number for each. `padding` may also
// hold two numbers for each: first the padding in front of every dimension, then the padding behind every dimension.
struct ConvAttrs {
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  ATTR_FIELDS(never_size(ATTR_FIELD(ConvAttrs, stride)), never_size(ATTR_FIELD(ConvAttrs, padding)),
              never_size(ATTR_FIELD(ConvAttrs, dilation)), never_size(ATTR_FIELD(ConvAttrs, groups)))
};

// conv2d_input_grad and conv3d_input_grad: the gradient with respect to x. `size` holds the spatial sizes of x, because the
// other operands do not determine them.
struct ConvInputGradAttrs {
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  Ints size;
  ATTR_FIELDS(never_size(ATTR_FIELD(ConvInputGradAttrs, stride)), never_size(ATTR_FIELD(ConvInputGradAttrs, padding)),
              never_size(ATTR_FIELD(ConvInputGradAttrs, dilation)), never_size(ATTR_FIELD(ConvInputGradAttrs, groups)),
              size_list(ATTR_REQUIRED(ConvInputGradAttrs, size)))
};

// conv2d_weight_grad and conv3d_weight_grad: the gradient with respect to the weights. `size` holds the spatial sizes of the
// weights, because the other operands do not determine them.
struct ConvWeightGradAttrs {
  Ints stride = {1};
  Ints padding = {0};
  Ints dilation = {1};
  std::int64_t groups = 1;
  Ints size;
  ATTR_FIELDS(never_size(ATTR_FIELD(ConvWeightGradAttrs, stride)), never_size(ATTR_FIELD(ConvWeightGradAttrs, padding)),
              never_size(ATTR_FIELD(ConvWeightGradAttrs, dilation)), never_size(ATTR_FIELD(ConvWeightGradAttrs, groups)),
              size_list(ATTR_REQUIRED(ConvWeightGradAttrs, size)))
};

// max_pool2d max_pool3d, and the ops that return the indices of the maxima. An empty `stride` means the stride of the window.
struct PoolAttrs {
  Ints window = {2};
  Ints stride = {};
  Ints padding = {0};
  Ints dilation = {1};
  bool ceil_mode = false;
  ATTR_FIELDS(never_size(ATTR_FIELD(PoolAttrs, window)), never_size(ATTR_FIELD(PoolAttrs, stride)),
              never_size(ATTR_FIELD(PoolAttrs, padding)), never_size(ATTR_FIELD(PoolAttrs, dilation)),
              ATTR_FIELD(PoolAttrs, ceil_mode))
};

// dropout alpha_dropout.
struct DropoutAttrs {
  double p = 0.5;  // the probability that an element becomes zero
  Name path;       // the name of the random stream; see kernels/philox.h
  ATTR_FIELDS(ATTR_FIELD(DropoutAttrs, p), ATTR_FIELD(DropoutAttrs, path))
};

// uniform draws from [low, high). normal draws with mean `low` and standard deviation `high`.
struct RandomAttrs {
  Ints shape;
  DType dtype = DType::f32;
  double low = 0;
  double high = 1;
  Name path;
  ATTR_FIELDS(size_list(ATTR_REQUIRED(RandomAttrs, shape)), ATTR_FIELD(RandomAttrs, dtype),
              may_scale(ATTR_FIELD(RandomAttrs, low)), may_scale(ATTR_FIELD(RandomAttrs, high)), ATTR_FIELD(RandomAttrs, path))
};

// sgd. For sgd with momentum see MomentumAttrs (attrs/optimizer.h).
struct SgdAttrs {
  double momentum = 0;
  double weight_decay = 0;
  ATTR_FIELDS(ATTR_FIELD(SgdAttrs, momentum), ATTR_FIELD(SgdAttrs, weight_decay))
};

// adam adamw and their variants: the decay rates of both moments, the constant in the denominator, and the weight decay.
struct AdamAttrs {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  ATTR_FIELDS(ATTR_FIELD(AdamAttrs, beta1), ATTR_FIELD(AdamAttrs, beta2), ATTR_FIELD(AdamAttrs, eps),
              ATTR_FIELD(AdamAttrs, weight_decay))
};

// constant: the tensor that the node yields.
struct ConstantAttrs {
  TensorIndex value;
  ATTR_FIELDS(ATTR_REQUIRED(ConstantAttrs, value))
};

// opaque: a placeholder for any computation. The cost model charges exactly `us` microseconds; the kernel itself takes almost
// no time.
struct OpaqueAttrs {
  double us = 0;
  ATTR_FIELDS(ATTR_FIELD(OpaqueAttrs, us))
};

}  // namespace TAPEDECK_API
