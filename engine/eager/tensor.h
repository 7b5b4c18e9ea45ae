// Tensor: a handle to elements of one type in a storage. To copy a Tensor copies the handle. Views (reshape, transpose,
// slice) share the storage. Several threads may read one handle. A default-constructed Tensor is undefined: it may be held
// and tested, but using it is an error.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/ir/type.h>
#include <tapedeck/kernels/export.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

namespace detail {
struct TensorImpl;
void retain(TensorImpl* impl) noexcept;
void release(TensorImpl* impl) noexcept;
}  // namespace detail

class Arg;
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

  // The memory of this tensor's elements. Reading it inside an open capture is a CaptureError, because a replay would use the
  // value of the recording.
  const void* data() const;
  void* mutable_data(Site site = {__builtin_FILE(),
                                  __builtin_LINE()});  // raises the version; errors about stale values name `site`
  // The only element of the tensor, converted to double. Throws CaptureError inside a capture, and TypeError unless there is
  // exactly one element, and if it is an i64 that no double equals.
  double item(Site site = {__builtin_FILE(), __builtin_LINE()}) const;
  // The only element as it is. T must be the C++ type of the dtype, as for to_vector(). Throws what item() and to_vector()
  // throw.
  template <class T>
  T item(Site site = {__builtin_FILE(), __builtin_LINE()}) const {
    if (!dtype_holds<T>(dtype())) refuse_elements("item", site);
    require_one(site);
    T value{};
    copy_to(&value, sizeof value, sizeof value);
    return value;
  }
  // All elements in row-major order. T must be the C++ type of the dtype: unsigned char for bool and u8, std::uint16_t for the
  // bits of f16 and bf16. Throws TypeError for any other T.
  template <class T>
  std::vector<T> to_vector(Site site = {__builtin_FILE(), __builtin_LINE()}) const {
    if (!dtype_holds<T>(dtype())) refuse_elements("to_vector", site);
    std::vector<T> out(static_cast<std::size_t>(numel()));
    copy_to(out.data(), out.size() * sizeof(T), sizeof(T));
    return out;
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
  [[noreturn]] void refuse_elements(const char* what, Site site) const;
  void require_one(Site site) const;

  detail::TensorImpl* impl_ = nullptr;
};

// ---- making tensors (nothing is recorded) ----
Tensor empty(const Type& type);
Tensor from_bytes(const Type& type, const void* bytes);  // copies the bytes, which must be dense and row-major
Tensor tensor(std::initializer_list<float> values);      // 1-d f32
Tensor from_vector(const std::vector<float>& values, const Shape& shape);  // TypeError if the number of values differs
Tensor from_vector(const std::vector<std::int32_t>& values, const Shape& shape);
Tensor from_vector(const std::vector<double>& values, const Shape& shape);
Tensor from_vector(const std::vector<std::int64_t>& values, const Shape& shape);
// 0-d. A fraction becomes the integer towards zero. Throws TypeError if the value does not fit an integer dtype; a negative
// number of u8 wraps, as in PyTorch.
Tensor scalar(double value, DType dtype = DType::f32);
Tensor integer_scalar(std::int64_t value, DType dtype = DType::i64);  // the same, for integers that no double equals
// An integer of the author, for an attribute that is a double. Throws TypeError "[op] ..." if no double equals it.
double exact_double(const char* op, std::int64_t value, Site site);
Tensor abstract_tensor(const Type& type);
bool bit_equal(const Tensor& a, const Tensor& b);  // whether both have the same type and the same bits

// An operand, with the place of the user's call. It is made implicitly from a Tensor or a C++ number. A number takes the
// dtype of the other operand (a fraction with integers makes both f32). Arg is for parameters only: it points to the caller's
// tensor and does not count as a reference.
class Arg {
 public:
  Arg(const Tensor& t, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : tensor_(&t), site_{file, line} {}
  Arg(double v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : scalar_(v), site_{file, line} {}
  Arg(float v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : Arg(static_cast<double>(v), file, line) {}
  Arg(int v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : scalar_(v), integer_(v), site_{file, line}, is_integer_(true) {}
  Arg(std::int64_t v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : scalar_(static_cast<double>(v)), integer_(v), site_{file, line}, is_integer_(true) {}

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
