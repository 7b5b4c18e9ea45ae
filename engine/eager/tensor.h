// Tensor: a handle to elements of one type in a storage. To copy a Tensor copies the handle. Views (reshape, transpose,
// slice) share the storage. Several threads may read one handle. A default-constructed Tensor is undefined: it may be held
// and tested, but using it is an error.
#pragma once

#include <tapedeck/engine/eager/elements.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

namespace detail {
struct TensorImpl;
void retain(TensorImpl* impl) noexcept;
void release(TensorImpl* impl) noexcept;
}  // namespace detail

class Arg;
class Index;  // ops/subscript.h
class Tensor;

// A function that gets a gradient when it is complete. The gradient is replaced by the returned tensor, or stays as it is if
// that is undefined.
using GradHook = std::function<Tensor(const Tensor& grad)>;

// How backward() treats the gradient of a leaf: add it to grad(), write it over grad(), or not compute it.
enum class GradRequest : std::uint8_t { add, write, none };

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(detail::TensorImpl* owned) noexcept : impl_(owned) {}  // takes over one reference
  Tensor(const Tensor& o) noexcept : impl_(o.impl_) {
    if (impl_) detail::retain(impl_);
  }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_) detail::release(impl_);
  }

  bool defined() const { return impl_ != nullptr; }
  DType dtype() const;
  const Shape& shape() const;
  Type type() const;
  int rank() const { return shape().rank; }
  std::int64_t size(int dim) const;  // a negative dim counts from the end
  std::int64_t numel() const { return shape().numel(); }
  std::int64_t bytes() const;
  const std::int64_t* strides() const;  // in elements
  bool dense() const;
  bool abstract() const;  // whether it has a type but no data

  // Elements by position, range, tensor or mask: x[0], x[Range{1, 3}], x[{0, rows}]. ops/subscript.h says which, and must be
  // included. Inside the brackets, braces enclose several subscripts: x[0, 1] would be x[1].
  Tensor operator[](const Index& at) const;
  Tensor operator[](std::initializer_list<Index> at) const;

  // The memory of this tensor's elements. Reading it inside an open capture is a CaptureError, because a replay would use the
  // value of the recording.
  const void* data() const;
  void* mutable_data(Site site = {__builtin_FILE(),
                                  __builtin_LINE()});  // raises the version; errors about stale values name `site`
  // The only element of the tensor, converted to double. Throws CaptureError inside a capture, and TypeError unless there is
  // exactly one element, and if it is an i64 that no double equals.
  double item(Site site = {__builtin_FILE(), __builtin_LINE()}) const;
  // The only element as it is. T is one that to_vector() takes. Throws what item() and to_vector() throw.
  template <class T>
  T item(Site site = {__builtin_FILE(), __builtin_LINE()}) const {
    if (!gives<T>(dtype())) refuse_elements("item", site);
    require_one(site);
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, float>) return static_cast<T>(item(site));
    T value{};
    copy_to(&value, sizeof value, sizeof value);
    return value;
  }
  // All elements in row-major order, none of them changed. T must be the C++ type of the dtype:
  //     f32   float                    i32   std::int32_t
  //     f64   double                   i64   std::int64_t
  //     f16   float, or std::uint16_t for the bits; bf16 likewise
  //     u8    unsigned char            bool  bool or unsigned char
  // Throws TypeError for any other T.
  template <class T>
  std::vector<T> to_vector(Site site = {__builtin_FILE(), __builtin_LINE()}) const {
    if (!gives<T>(dtype())) refuse_elements("to_vector", site);
    if constexpr (std::is_same_v<T, bool>) {
      const std::vector<unsigned char> bytes = to_vector<unsigned char>(site);
      return std::vector<bool>(bytes.begin(), bytes.end());
    } else {
      std::vector<T> out(static_cast<std::size_t>(numel()));
      if constexpr (std::is_same_v<T, float>) {
        if (dtype() != DType::f32) {
          widen(to_vector<std::uint16_t>(site), out.data());
          return out;
        }
      }
      copy_to(out.data(), out.size() * sizeof(T), sizeof(T));
      return out;
    }
  }
  void copy_to(void* dst, std::size_t bytes, std::size_t element_size) const;

  // ---- gradients ----
  bool requires_grad() const;
  Tensor& requires_grad(bool on);  // leaves only; floating types only
  Tensor grad() const;             // undefined until backward() has set it
  void set_grad(Tensor g);
  GradRequest grad_request() const;
  Tensor& grad_request(GradRequest request);
  Tensor detach() const;           // shares the storage, but has no history
  Tensor& detach_();               // no gradient passes through this tensor any more, even from tensors computed before
  Tensor& on_grad(GradHook hook);  // hooks run in the order in which they were added; REQUIRES: the tensor needs a gradient
  Tensor& retain_grad();           // makes backward() set grad() of a tensor that is not a leaf

  // ---- names and roles: modules name their parameters; the state of a capture has these names and roles ----
  Name name() const;
  Tensor& name(Name n);
  Role role() const;
  Tensor& role(Role r);

  detail::TensorImpl* impl() const { return impl_; }

 private:
  template <class T>
  static constexpr bool gives(DType dtype) {
    if constexpr (std::is_same_v<T, bool>) return dtype == DType::boolean;
    if constexpr (std::is_same_v<T, float>) return is_floating(dtype) && dtype != DType::f64;
    return dtype_holds<T>(dtype);
  }
  void widen(const std::vector<std::uint16_t>& bits, float* out) const;  // of f16 or bf16
  [[noreturn]] void refuse_elements(const char* what, Site site) const;
  void require_one(Site site) const;

  detail::TensorImpl* impl_ = nullptr;
};

// ---- making tensors (nothing is recorded) ----
Tensor empty(const Type& type);
Tensor from_bytes(const Type& type, const void* bytes);  // copies the bytes, which must be dense and row-major
// tensor({1, 2}), tensor({{1, 2}, {3, 4}}, DType::i64), tensor(5): a list of numbers, or of lists of equal shape, nested as
// deep as the tensor has dimensions. Without a dtype, a list of bools makes bool, and all other numbers make f32, integers too.
// A number that is not a value of the dtype is a TypeError (elements.h), and so is a list of another length than the lists
// before.
Tensor tensor(const Elements& elements, std::optional<DType> dtype = {}, Site site = {__builtin_FILE(), __builtin_LINE()});
template <CppNumber T>
Tensor tensor(std::initializer_list<T> values, std::optional<DType> dtype = {},
              Site site = {__builtin_FILE(), __builtin_LINE()}) {
  const Type type{dtype.value_or(std::is_same_v<T, bool> ? DType::boolean : DType::f32),
                  {static_cast<std::int64_t>(values.size())}};
  if (detail::dtype_of<T>() == type.dtype) return from_bytes(type, values.begin());
  return detail::tensor_of_numbers(
      "tensor", values.begin(), values.size(),
      [](const void* all, std::size_t i) { return detail::number_of(static_cast<const T*>(all)[i]); }, type, site);
}

// The values in row-major order. TypeError if there are not as many as the shape has elements, and if one of them is not a
// value of the dtype (elements.h). A vector of std::uint16_t holds bits if the dtype is f16 or bf16, as that of to_vector().
template <CppNumber T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, DType dtype,
                   Site site = {__builtin_FILE(), __builtin_LINE()}) {
  if constexpr (!std::is_same_v<T, bool>)
    if (dtype_holds<T>(dtype) && dtype != DType::boolean && static_cast<std::int64_t>(values.size()) == shape.numel())
      return from_bytes({dtype, shape}, values.data());
  return detail::tensor_of_numbers(
      "from_vector", &values, values.size(),
      [](const void* all, std::size_t i) { return detail::number_of<T>((*static_cast<const std::vector<T>*>(all))[i]); },
      {dtype, shape}, site);
}
// The same, with the dtype whose elements are of type T: bool, u8 (unsigned char), i32, i64, f32 or f64.
template <CppNumber T>
requires(detail::dtype_of<T>().has_value()) Tensor
    from_vector(const std::vector<T>& values, const Shape& shape, Site site = {__builtin_FILE(), __builtin_LINE()}) {
  return from_vector(values, shape, *detail::dtype_of<T>(), site);
}
// 0-d. A fraction becomes the integer towards zero. Throws TypeError if the value does not fit an integer dtype; a negative
// number of u8 wraps, as in PyTorch.
Tensor scalar(double value, DType dtype = DType::f32);
Tensor integer_scalar(std::int64_t value, DType dtype = DType::i64);  // the same, for integers that no double equals
// An integer of the author, for an attribute that is a double. Throws TypeError "[op] ..." if no double equals it.
double exact_double(const char* op, std::int64_t value, Site site);
Tensor abstract_tensor(const Type& type);
bool bit_equal(const Tensor& a, const Tensor& b);  // whether both have the same type and the same bits

// An operand, with the place of the user's call. It is made implicitly from a Tensor or any C++ number. A number takes the
// dtype of the other operand (a fraction with integers makes both f32). Arg is for parameters only: it points to the caller's
// tensor and does not count as a reference.
class Arg {
 public:
  Arg(const Tensor& t, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : tensor_(&t), site_{file, line} {}
  // A bool counts as the integer 0 or 1. Throws TypeError for an unsigned integer that no i64 equals.
  template <class Value>
  requires(CppNumber<Value> || (std::is_enum_v<Value> && std::is_convertible_v<Value, std::int64_t>))
      Arg(Value v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : site_{file, line} {
    if constexpr (std::is_floating_point_v<Value>) {
      scalar_ = static_cast<double>(v);
    } else {
      if constexpr (std::is_enum_v<Value>)
        integer_ = detail::exact_integer(static_cast<std::underlying_type_t<Value>>(v), site_);
      else
        integer_ = detail::exact_integer(v, site_);
      scalar_ = static_cast<double>(integer_);
      is_integer_ = true;
    }
  }

  const Tensor& tensor() const { return tensor_ ? *tensor_ : undefined(); }  // undefined for a number
  bool is_scalar() const { return tensor_ == nullptr; }
  bool is_integer() const { return is_integer_; }
  double number() const { return scalar_; }
  std::int64_t integer() const { return integer_; }  // the number exactly, if is_integer()
  Site site() const { return site_; }

 private:
  static const Tensor& undefined();
  const Tensor* tensor_ = nullptr;
  double scalar_ = 0;
  std::int64_t integer_ = 0;
  Site site_;
  bool is_integer_ = false;
};

}  // namespace TAPEDECK_API
