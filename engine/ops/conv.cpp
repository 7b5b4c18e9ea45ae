// Inference, gradients and cost of convolutions, and the functions for authors. One template serves two and three spatial
// dimensions. One-dimensional calls become two-dimensional ones with a first dimension of size 1:
//
//       conv1d: x [n,c,w], w [co,ci,k]    ->    conv2d: x [n,c,1,w], w [co,ci,1,k]
//
// A transposed convolution is the gradient op of a convolution for its input.
#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>
#include <tapedeck/engine/ops/windows.h>
#include <tapedeck/kernels/cpu/convolution/conv.h>

#include <fmt/format.h>

namespace tapedeck {

void check_spatial(const Infer& f, const char* name, const Ints& list, int dims, std::int64_t low, bool twice) {
  if (list.size != 1 && list.size != dims && !(twice && list.size == 2 * dims)) {
    std::string most = fmt::format("1 or {} numbers", dims);
    if (dims == 1) most = twice ? "1 or 2 numbers" : "one number";
    if (dims > 1 && twice) most = fmt::format("1, {} or {} numbers", dims, 2 * dims);
    f.fail(fmt::format("{} takes {}, got {}", name, most, list.size));
  }
  for (const std::int64_t v : list) {
    if (v < low)
      f.fail(low == 0 ? fmt::format("{} must not be negative", name) : fmt::format("{} must be at least {}", name, low));
    if (v > kMaxWindowStep) f.fail(fmt::format("{} {} is too large", name, v));
  }
}

Ints for_each_dimension(const Ints& list, int dims) {
  if (list.size != 1) return list;
  Ints each;
  for (int i = 0; i < dims; ++i) each.push_back(list[0]);
  return each;
}

namespace {

using kernels::cpu::ConvPass;
using kernels::cpu::item;
using kernels::cpu::padding_after;
using kernels::cpu::padding_before;

// ---- types ----

void require_images(const Infer& f, const Type& a, const Type& b, int dims) {
  static constexpr const char* kDimensions[] = {"three", "four", "five"};
  if (a.shape.rank != dims + 2 || b.shape.rank != dims + 2)
    f.fail(fmt::format("operands need {} dimensions: {} and {}", kDimensions[dims - 1], to_string(a), to_string(b)));
  if (a.dtype != b.dtype) f.fail(fmt::format("operands differ in dtype: {} and {}", to_string(a), to_string(b)));
  infer_require_float(f, a);
}

template <class Attrs>
void check_geometry(const Infer& f, int dims, const Attrs& a) {
  check_spatial(f, "stride", a.stride, dims, 1);
  check_spatial(f, "padding", a.padding, dims, 0, true);
  check_spatial(f, "dilation", a.dilation, dims, 1);
  if (a.groups < 1) f.fail("groups must be at least 1");
}

void check_channels(const Infer& f, const Type& x, const Type& w, std::int64_t groups) {
  if (w.shape[0] % groups != 0) f.fail(fmt::format("weights {} do not divide into {} groups", to_string(w), groups));
  if (x.shape[1] % groups == 0 && x.shape[1] / groups == w.shape[1]) return;
  const std::string each = groups == 1 ? "" : fmt::format(" in each of {} groups", groups);
  f.fail(fmt::format("channels differ: x {} has {}, weights {} take {}{}", to_string(x), x.shape[1], to_string(w), w.shape[1],
                     each));
}

// The type of the convolution of x with w. Calls f.fail if they do not fit.
template <class Attrs>
Type conv_type(const Infer& f, int dims, const Type& x, const Type& w, const Attrs& a) {
  check_geometry(f, dims, a);
  check_channels(f, x, w, a.groups);
  Type y{x.dtype, x.shape};
  y.shape[1] = w.shape[0];
  for (int i = 0; i < dims; ++i) {
    const std::int64_t padded = x.shape[2 + i] + padding_before(a.padding, i) + padding_after(a.padding, i, dims);
    const std::int64_t room = window_room(padded, w.shape[2 + i], item(a.dilation, i));
    if (room < 0 || w.shape[2 + i] < 1)
      f.fail(fmt::format("the window of {} does not fit into {}", to_string(w), to_string(x)));
    y.shape[2 + i] = room / item(a.stride, i) + 1;
  }
  return y;
}

template <int kDims>
void infer_conv(Infer& f) {
  require_images(f, f.inputs[0], f.inputs[1], kDims);
  f.outputs.assign(1, conv_type(f, kDims, f.inputs[0], f.inputs[1], f.attributes<ConvAttrs>()));
}

// The type [first, channels, size...] with the dtype of `like`. `whose` names the tensor in error messages.
Type sized(const Infer& f, const Type& like, std::int64_t first, std::int64_t channels, const Ints& size, int dims,
           const char* whose) {
  if (size.size != dims) f.fail(fmt::format("size takes {} numbers, those of the {}", dims, whose));
  Type t{like.dtype, like.shape};
  t.shape[0] = first, t.shape[1] = channels;
  for (int i = 0; i < dims; ++i) t.shape[2 + i] = size[i];
  if (checked_bytes(t.dtype, {t.shape.sizes, static_cast<std::size_t>(t.shape.rank)}) < 0)
    f.fail(fmt::format("size does not fit a type: {}", to_string(t)));
  return t;
}

template <int kDims>
void infer_conv_input_grad(Infer& f) {
  const auto& a = f.attributes<ConvInputGradAttrs>();
  const Type &dy = f.inputs[0], &w = f.inputs[1];
  require_images(f, dy, w, kDims);
  check_geometry(f, kDims, a);
  if (a.groups > w.shape[0] && w.shape[0] > 0)
    f.fail(fmt::format("weights {} do not divide into {} groups", to_string(w), a.groups));
  const std::int64_t groups = w.shape[0] > 0 ? a.groups : 1;
  const Type x = sized(f, dy, dy.shape[0], w.shape[1] * groups, a.size, kDims, "input");
  const Type fitting = conv_type(f, kDims, x, w, a);
  if (fitting != dy)
    f.fail(fmt::format("the gradient {} does not fit weights {} and input {}, which give {}", to_string(dy), to_string(w),
                       to_string(x), to_string(fitting)));
  f.outputs.assign(1, x);
}

template <int kDims>
void infer_conv_weight_grad(Infer& f) {
  const auto& a = f.attributes<ConvWeightGradAttrs>();
  const Type &dy = f.inputs[0], &x = f.inputs[1];
  require_images(f, dy, x, kDims);
  check_geometry(f, kDims, a);
  const Type w = sized(f, dy, dy.shape[1], x.shape[1] / a.groups, a.size, kDims, "kernel");
  const Type fitting = conv_type(f, kDims, x, w, a);
  if (fitting != dy)
    f.fail(fmt::format("the gradient {} does not fit input {} and weights {}, which give {}", to_string(dy), to_string(x),
                       to_string(w), to_string(fitting)));
  f.outputs.assign(1, w);
}

// ---- gradients: each of the three ops is the gradient of the others, with the same attributes ----

template <class To, class From>
To with_size(const From& a, const Shape& images) {
  To to{a.stride, a.padding, a.dilation, a.groups, {}};
  for (int i = 2; i < images.rank; ++i) to.size.push_back(images[i]);
  return to;
}

using InputGrad = Tensor (*)(const Arg&, const Tensor&, const ConvInputGradAttrs&);
using WeightGrad = Tensor (*)(const Arg&, const Tensor&, const ConvWeightGradAttrs&);
using Forward = Tensor (*)(const Arg&, const Tensor&, const ConvAttrs&);

template <InputGrad input_grad, WeightGrad weight_grad>
void vjp_conv(Vjp& b) {
  const auto& a = b.attributes<ConvAttrs>();
  if (b.needs(0)) b.dx(0, input_grad(b.dy(), b.x(1), with_size<ConvInputGradAttrs>(a, b.x(0).shape())));
  if (b.needs(1)) b.dx(1, weight_grad(b.dy(), b.x(0), with_size<ConvWeightGradAttrs>(a, b.x(1).shape())));
}

template <Forward forward, WeightGrad weight_grad>
void vjp_conv_input_grad(Vjp& b) {
  const auto& a = b.attributes<ConvInputGradAttrs>();
  if (b.needs(0)) b.dx(0, forward(b.dy(), b.x(1), {a.stride, a.padding, a.dilation, a.groups}));
  if (b.needs(1)) b.dx(1, weight_grad(b.x(0), b.dy(), with_size<ConvWeightGradAttrs>(a, b.x(1).shape())));
}

template <Forward forward, InputGrad input_grad>
void vjp_conv_weight_grad(Vjp& b) {
  const auto& a = b.attributes<ConvWeightGradAttrs>();
  if (b.needs(0)) b.dx(0, forward(b.x(1), b.dy(), {a.stride, a.padding, a.dilation, a.groups}));
  if (b.needs(1)) b.dx(1, input_grad(b.x(0), b.dy(), with_size<ConvInputGradAttrs>(a, b.x(1).shape())));
}

// ---- cost and workspace ----

// The three convolution ops do the same multiplications: one for each element of y and each tap of w that it reads.
Cost cost_of(std::span<const Type> in, std::span<const Type> out, const Type& y, const Type& w) {
  Cost cost = cost_like_copy(in, out, nullptr);
  double taps = 1;
  for (int i = 1; i < w.shape.rank; ++i) taps *= static_cast<double>(w.shape[i]);
  cost.flops = 2.0 * static_cast<double>(y.numel()) * taps;
  return cost;
}
Cost cost_conv(std::span<const Type> in, std::span<const Type> out, const void*) { return cost_of(in, out, out[0], in[1]); }
Cost cost_conv_input_grad(std::span<const Type> in, std::span<const Type> out, const void*) {
  return cost_of(in, out, in[0], in[1]);
}
Cost cost_conv_weight_grad(std::span<const Type> in, std::span<const Type> out, const void*) {
  return cost_of(in, out, in[0], out[0]);
}

template <int kDims, class Attrs>
std::int64_t workspace_of(ConvPass pass, const Type& x, const Type& w, const void* attrs) {
  const auto& a = *static_cast<const Attrs*>(attrs);
  return kernels::cpu::convolution_workspace(pass, kernels::cpu::conv_shape(kDims, x.shape.sizes, w.shape.sizes, a), x.dtype);
}
template <int kDims>
std::int64_t workspace_conv(std::span<const Type> in, std::span<const Type>, const void* attrs) {
  return workspace_of<kDims, ConvAttrs>(ConvPass::forward, in[0], in[1], attrs);
}
template <int kDims>
std::int64_t workspace_conv_input_grad(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  return workspace_of<kDims, ConvInputGradAttrs>(ConvPass::input_grad, out[0], in[1], attrs);
}
template <int kDims>
std::int64_t workspace_conv_weight_grad(std::span<const Type> in, std::span<const Type> out, const void* attrs) {
  return workspace_of<kDims, ConvWeightGradAttrs>(ConvPass::weight_grad, in[1], out[0], attrs);
}

// ---- functions for authors ----

// Checks a call of a function that is made of other ops. f(Infer&) checks the author's own types under the author's function
// name, so errors name the function that the author called.
template <class F>
void check_call(const char* name, Site site, const Tensor& x, const Tensor& w, F&& f) {
  if (!x.defined() || !w.defined()) throw TypeError(error_text(name, "an operand is undefined", site));
  Op op;
  op.name = name;
  const Type inputs[] = {x.type(), w.type()};
  std::vector<Type> outputs;
  Infer infer{op, inputs, nullptr, outputs};
  try {
    f(infer);
  } catch (const TypeError& error) {
    throw TypeError(error_text(name, error.message(), site));
  }
}

Tensor with_bias(const char* name, const Tensor& y, const Tensor& bias, Site site) {
  if (!bias.defined() || bias.shape() != Shape{y.size(1)}) {
    const std::string got = bias.defined() ? to_string(bias.type()) : "an undefined tensor";
    throw TypeError(error_text(name, fmt::format("bias needs {} numbers, got {}", y.size(1), got), site));
  }
  Shape shape;
  for (shape.rank = 0; shape.rank < y.rank() - 1; ++shape.rank) shape.sizes[shape.rank] = shape.rank == 0 ? y.size(1) : 1;
  return add(at(y, site), reshape(at(bias, site), shape));
}

template <class Attrs>
Attrs for_conv_dims(Attrs a, int dims) {
  a.stride = for_each_dimension(a.stride, dims);
  a.padding = for_each_dimension(a.padding, dims);
  a.dilation = for_each_dimension(a.dilation, dims);
  return a;
}

template <class Attrs>
Tensor convolve(const Op& op, int dims, const Arg& a, const Tensor& b, const Attrs& attrs) {
  const Attrs each = for_conv_dims(attrs, dims);
  return apply(op, {&a.tensor(), &b}, &each, a.site());
}

// behind() puts a trivial dimension in front of a list for one dimension. as_rows makes [n,c,1,w] of [n,c,w], and
// as_lines does the opposite.
Ints behind(std::int64_t first, const Ints& list) {
  return list.size == 2 ? Ints{first, list[0], first, list[1]} : Ints{first, list[0]};
}
Tensor as_rows(const Tensor& t, Site site) { return reshape(at(t, site), Shape{t.size(0), t.size(1), 1, t.size(2)}); }
Tensor as_lines(const Tensor& t, Site site) { return reshape(at(t, site), Shape{t.size(0), t.size(1), t.size(3)}); }

// The attributes with which the gradient op is this transposed convolution. Calls f.fail if the operands do not fit.
ConvInputGradAttrs transposed(const Infer& f, int dims, const ConvTransposeOptions& o) {
  const Type &x = f.inputs[0], &w = f.inputs[1];
  require_images(f, x, w, dims);
  check_geometry(f, dims, o);
  check_spatial(f, "output_padding", o.output_padding, dims, 0);
  if (x.shape[1] != w.shape[0])
    f.fail(fmt::format("channels differ: x {} has {}, weights {} take {}", to_string(x), x.shape[1], to_string(w), w.shape[0]));
  if (w.shape[0] % o.groups != 0) f.fail(fmt::format("weights {} do not divide into {} groups", to_string(w), o.groups));
  ConvInputGradAttrs a{o.stride, o.padding, o.dilation, o.groups, {}};
  for (int i = 0; i < dims; ++i) {
    const std::int64_t stride = item(o.stride, i), more = item(o.output_padding, i), k = w.shape[2 + i], in = x.shape[2 + i];
    if (more >= stride) f.fail(fmt::format("output_padding {} must be less than the stride {}", more, stride));
    if (k < 1 || in < 1) f.fail(fmt::format("no elements to convolve in {} and {}", to_string(x), to_string(w)));
    if (in > kMaxTypeBytes / stride || k > kMaxTypeBytes / item(o.dilation, i)) f.fail("the result is too large");
    const std::int64_t cut = padding_before(o.padding, i) + padding_after(o.padding, i, dims);
    const std::int64_t size = (in - 1) * stride - cut + item(o.dilation, i) * (k - 1) + 1 + more;
    if (size < 1) f.fail(fmt::format("padding leaves nothing of the result of {} and {}", to_string(x), to_string(w)));
    a.size.push_back(size);
  }
  return for_conv_dims(a, dims);
}

Tensor conv_transpose(const char* name, int dims, const Op& op, const Arg& x, const Tensor& w,
                      const ConvTransposeOptions& options) {
  ConvInputGradAttrs attrs;
  check_call(name, x.site(), x.tensor(), w, [&](Infer& f) { attrs = transposed(f, dims, options); });
  return apply(op, {&x.tensor(), &w}, &attrs, x.site());
}

}  // namespace

Tensor conv1d(const Arg& x, const Tensor& w, const ConvAttrs& attrs) {
  check_call("conv1d", x.site(), x.tensor(), w, [&](Infer& f) {
    require_images(f, f.inputs[0], f.inputs[1], 1);
    conv_type(f, 1, f.inputs[0], f.inputs[1], attrs);
  });
  const ConvAttrs flat{behind(1, attrs.stride), behind(0, attrs.padding), behind(1, attrs.dilation), attrs.groups};
  return as_lines(conv2d(at(as_rows(x.tensor(), x.site()), x.site()), as_rows(w, x.site()), flat), x.site());
}
Tensor conv1d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvAttrs& attrs) {
  return with_bias("conv1d", conv1d(x, w, attrs), bias, x.site());
}

Tensor conv2d(const Arg& x, const Tensor& w, const ConvAttrs& attrs) { return convolve(ops::conv2d, 2, x, w, attrs); }
Tensor conv2d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvAttrs& attrs) {
  return with_bias("conv2d", conv2d(x, w, attrs), bias, x.site());
}
Tensor conv3d(const Arg& x, const Tensor& w, const ConvAttrs& attrs) { return convolve(ops::conv3d, 3, x, w, attrs); }
Tensor conv3d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvAttrs& attrs) {
  return with_bias("conv3d", conv3d(x, w, attrs), bias, x.site());
}

Tensor conv2d_input_grad(const Arg& dy, const Tensor& w, const ConvInputGradAttrs& attrs) {
  return convolve(ops::conv2d_input_grad, 2, dy, w, attrs);
}
Tensor conv2d_weight_grad(const Arg& dy, const Tensor& x, const ConvWeightGradAttrs& attrs) {
  return convolve(ops::conv2d_weight_grad, 2, dy, x, attrs);
}
Tensor conv3d_input_grad(const Arg& dy, const Tensor& w, const ConvInputGradAttrs& attrs) {
  return convolve(ops::conv3d_input_grad, 3, dy, w, attrs);
}
Tensor conv3d_weight_grad(const Arg& dy, const Tensor& x, const ConvWeightGradAttrs& attrs) {
  return convolve(ops::conv3d_weight_grad, 3, dy, x, attrs);
}

Tensor conv_transpose1d(const Arg& x, const Tensor& w, const ConvTransposeOptions& o) {
  ConvInputGradAttrs a;
  check_call("conv_transpose1d", x.site(), x.tensor(), w, [&](Infer& f) { a = transposed(f, 1, o); });
  const ConvInputGradAttrs flat{behind(1, a.stride), behind(0, a.padding), behind(1, a.dilation), a.groups, behind(1, a.size)};
  return as_lines(conv2d_input_grad(at(as_rows(x.tensor(), x.site()), x.site()), as_rows(w, x.site()), flat), x.site());
}
Tensor conv_transpose1d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvTransposeOptions& options) {
  return with_bias("conv_transpose1d", conv_transpose1d(x, w, options), bias, x.site());
}
Tensor conv_transpose2d(const Arg& x, const Tensor& w, const ConvTransposeOptions& options) {
  return conv_transpose("conv_transpose2d", 2, ops::conv2d_input_grad, x, w, options);
}
Tensor conv_transpose2d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvTransposeOptions& options) {
  return with_bias("conv_transpose2d", conv_transpose2d(x, w, options), bias, x.site());
}
Tensor conv_transpose3d(const Arg& x, const Tensor& w, const ConvTransposeOptions& options) {
  return conv_transpose("conv_transpose3d", 3, ops::conv3d_input_grad, x, w, options);
}
Tensor conv_transpose3d(const Arg& x, const Tensor& w, const Tensor& bias, const ConvTransposeOptions& options) {
  return with_bias("conv_transpose3d", conv_transpose3d(x, w, options), bias, x.site());
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/conv.h>
