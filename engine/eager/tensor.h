// Tensor: a handle with value semantics on a typed window of shared storage.
//
// Copying a Tensor copies the handle; views (reshape, transpose, slice) share storage. Handles may be shared between threads
// for reading. An undefined Tensor (default-constructed) is legal to hold and to test, and an error to use.
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

// Sees a gradient when it is complete; what it returns takes its place (an undefined tensor leaves it as it is).
using GradHook = std::function<Tensor(const Tensor& grad)>;

// What backward() does with a leaf's gradient: add it to grad(), write it over grad(), or not compute it.
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
  std::int64_t size(int dim) const;  // negative counts from the end
  std::int64_t numel() const { return shape().numel(); }
  std::int64_t bytes() const;
  const std::int64_t* strides() const;  // in elements
  bool dense() const;
  bool abstract() const;  // a type without data

  // Raw memory of this window. Reading inside an open capture is a CaptureError (a host read bakes a value in).
  const void* data() const;
  void* mutable_data(Site site = {__builtin_FILE(),
                                  __builtin_LINE()});  // bumps the version; `site` is named if that makes a saved value stale
  // The one element of a 0-d or single-element tensor, converted. CaptureError inside a capture; TypeError if there are more.
  double item(Site site = {__builtin_FILE(), __builtin_LINE()}) const;
  // All elements in row-major order. T must be the C++ type of the dtype (bool as unsigned char).
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> out(static_cast<std::size_t>(numel()));
    copy_to(out.data(), out.size() * sizeof(T), sizeof(T));
    return out;
  }
  void copy_to(void* dst, std::size_t bytes, std::size_t element_size) const;

  // Autograd.
  bool requires_grad() const;
  Tensor& requires_grad(bool on);  // leaves only; floating types only
  Tensor grad() const;             // undefined until backward() has written it
  void set_grad(Tensor g);
  GradRequest grad_request() const;
  Tensor& grad_request(GradRequest request);
  Tensor detach() const;           // same storage, no history
  Tensor& detach_();               // no gradient goes further back from here, also from what was computed of it before
  Tensor& on_grad(GradHook hook);  // hooks run in the order they were added; the tensor must need a gradient
  Tensor& retain_grad();           // makes backward() fill grad() of a tensor that is no leaf

  // Names, roles: parameters are named by their module; state in a capture bears these.
  Name name() const;
  Tensor& name(Name n);
  Role role() const;
  Tensor& role(Role r);

  detail::TensorImpl* impl() const { return impl_; }

 private:
  detail::TensorImpl* impl_ = nullptr;
};

// ---- making tensors (plain data; recorded nowhere) ----
Tensor empty(const Type& type);
Tensor from_bytes(const Type& type, const void* bytes);                    // copies; a dense row-major image
Tensor tensor(std::initializer_list<float> values);                        // 1-d f32
Tensor from_vector(const std::vector<float>& values, const Shape& shape);  // TypeError if the count differs
Tensor from_vector(const std::vector<std::int32_t>& values, const Shape& shape);
Tensor scalar(double value, DType dtype = DType::f32);  // 0-d
Tensor abstract_tensor(const Type& type);
bool bit_equal(const Tensor& a, const Tensor& b);  // same type, same bits

// An operand with the place of the user's call: made implicitly from a Tensor or a C++ number. A number takes the other
// operand's dtype (a fraction beside integers makes both f32). For parameters only: it points at the caller's tensor and counts
// no reference.
class Arg {
 public:
  Arg(const Tensor& t, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : tensor_(&t), site_{file, line} {}
  Arg(double v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : scalar_(v), site_{file, line} {}
  Arg(float v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : Arg(static_cast<double>(v), file, line) {}
  Arg(int v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : scalar_(v), site_{file, line}, is_integer_(true) {}
  Arg(std::int64_t v, const char* file = __builtin_FILE(), int line = __builtin_LINE())  // NOLINT
      : scalar_(static_cast<double>(v)), site_{file, line}, is_integer_(true) {}

  const Tensor& tensor() const { return tensor_ ? *tensor_ : undefined(); }  // undefined for a number
  bool is_scalar() const { return tensor_ == nullptr; }
  bool is_integer() const { return is_integer_; }
  double number() const { return scalar_; }
  Site site() const { return site_; }

 private:
  static const Tensor& undefined();
  const Tensor* tensor_ = nullptr;
  double scalar_ = 0;
  Site site_;
  bool is_integer_ = false;
};

}  // namespace TAPEDECK_API
