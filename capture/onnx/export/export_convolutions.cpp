// Convolutions with their gradients, and windows as columns.
#include <tapedeck/capture/onnx/export/export_ops.h>
#include <tapedeck/capture/onnx/export/window_lists.h>

#include <tapedeck/kernels/attrs/unfold.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

// ---- convolutions ----

template <class A>
Attributes windows_of(const A& a, int dims, const Integers& kernel) {
  return {{"kernel_shape", kernel},
          {"strides", for_each_dim(a.stride, dims)},
          {"pads", pads_of(a.padding, dims)},
          {"dilations", for_each_dim(a.dilation, dims)},
          {"group", a.groups}};
}

Terms conv(N& n) {
  const int dims = n.in(0).shape.rank - 2;
  return {n.add("Conv", {n[0], n[1]}, n.in(0).dtype, windows_of(n.attributes<ConvAttrs>(), dims, spatial(n.in(1).shape)))};
}

// The rows at the end that no window reaches are output padding.
Terms conv_input_grad(N& n) {
  const auto& a = n.attributes<ConvInputGradAttrs>();
  const int dims = n.in(0).shape.rank - 2;
  const Integers kernel = spatial(n.in(1).shape), stride = for_each_dim(a.stride, dims), pads = pads_of(a.padding, dims),
                 dilation = for_each_dim(a.dilation, dims);
  Attributes attributes = windows_of(a, dims, kernel);
  Integers extra;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t reached = (n.in(0).shape[static_cast<int>(i) + 2] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1;
    extra.push_back(n.out().shape[static_cast<int>(i) + 2] - (reached - pads[i] - pads[i + kernel.size()]));
  }
  if (std::any_of(extra.begin(), extra.end(), [](std::int64_t e) { return e != 0; }))
    attributes.emplace_back("output_padding", extra);
  return {n.add("ConvTranspose", {n[0], n[1]}, n.in(0).dtype, attributes)};
}

// [n, groups c, ...] -> [c, groups n, ...]
Term batch_as_channels(const Term& x, const Shape& shape, std::int64_t groups) {
  const Integers sizes = spatial(shape);
  Integers split = {shape[0], groups, shape[1] / groups}, order = {2, 1, 0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    split.push_back(sizes[i]);
    order.push_back(static_cast<std::int64_t>(i) + 3);
  }
  return reshaped(transposed(reshaped(x, split), order), with_spatial(shape[1] / groups, groups * shape[0], sizes));
}

// A convolution of x with dy over the batch: strides and dilations change places, and what is too much at the end is cut off.
Terms conv_weight_grad(N& n) {
  const auto& a = n.attributes<ConvWeightGradAttrs>();
  const Shape &dy = n.in(0).shape, &x = n.in(1).shape, &w = n.out().shape;
  const int dims = dy.rank - 2;
  Integers sizes = spatial(dy), order = {1, 0};
  for (int i = 0; i < dims; ++i) order.push_back(i + 2);
  const Term images = batch_as_channels(n[1], x, a.groups);
  const Term kernels = transposed(n[0], order);  // [n, co, ...] -> [co, n, ...]; the groups of co stand in a row already
  Term all = n.add("Conv", {images, kernels}, n.in(0).dtype,
                   {{"kernel_shape", sizes},
                    {"strides", for_each_dim(a.dilation, dims)},
                    {"pads", pads_of(a.padding, dims)},
                    {"dilations", for_each_dim(a.stride, dims)},
                    {"group", a.groups}});
  const Integers stride = for_each_dim(a.stride, dims), dilation = for_each_dim(a.dilation, dims),
                 pads = pads_of(a.padding, dims);
  for (int i = 0; i < dims; ++i) {
    const auto u = static_cast<std::size_t>(i);
    const std::int64_t room = x[i + 2] + pads[u] + pads[u + static_cast<std::size_t>(dims)] - (sizes[u] - 1) * stride[u] - 1;
    if (room / dilation[u] + 1 > w[i + 2]) all = part_of(all, i + 2, 0, w[i + 2]);
  }
  return {transposed(all, order)};
}

// ---- windows as columns ----

// The flat places, in a padded plane, of the elements of all windows: [kh kw, windows].
template <class A>
Integers places_of_windows(const A& a, std::int64_t height, std::int64_t width) {
  Integers places;
  const std::int64_t rows = windows_along(a, 0, height), columns = windows_along(a, 1, width), line = width + 2 * a.padding[1];
  for (std::int64_t kh = 0; kh < a.window[0]; ++kh)
    for (std::int64_t kw = 0; kw < a.window[1]; ++kw)
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
          places.push_back((r * a.stride[0] + kh * a.dilation[0]) * line + c * a.stride[1] + kw * a.dilation[1]);
  return places;
}

Terms unfold(N& n) {
  const auto& a = n.attributes<UnfoldAttrs>();
  const Shape& x = n.in(0).shape;
  const Integers pads = {0, 0, a.padding[0], a.padding[1]};
  const std::int64_t plane = (x[2] + 2 * a.padding[0]) * (x[3] + 2 * a.padding[1]);
  const Term planes = reshaped(padded(n[0], pads, pads), Integers{x[0], x[1], plane});
  return {reshaped(gathered(planes, n.list(places_of_windows(a, x[2], x[3])), 2), n.out().shape)};
}

Terms fold(N& n) {
  const auto& a = n.attributes<FoldAttrs>();
  const Shape& x = n.out().shape;
  const Integers places = places_of_windows(a, x[2], x[3]);
  const std::int64_t height = x[2] + 2 * a.padding[0], width = x[3] + 2 * a.padding[1];
  const Shape columns = {x[0], x[1], static_cast<std::int64_t>(places.size())};
  const Term zeros = n.filled({x[0], x[1], height * width}, 0, n.out().dtype);
  const Term sums = scattered(zeros, expanded(n.list(places), columns), reshaped(n[0], columns), 2, true);
  Term image = reshaped(sums, Integers{x[0], x[1], height, width});
  if (a.padding[0] > 0) image = part_of(image, 2, a.padding[0], a.padding[0] + x[2]);
  if (a.padding[1] > 0) image = part_of(image, 3, a.padding[1], a.padding[1] + x[3]);
  return {image};
}

}  // namespace

std::vector<ExportOp> convolution_exports() {
  return {
      composed("conv2d", conv),
      composed("conv3d", conv),
      composed("conv2d_input_grad", conv_input_grad),
      composed("conv3d_input_grad", conv_input_grad),
      composed("conv2d_weight_grad", conv_weight_grad),
      composed("conv3d_weight_grad", conv_weight_grad),
      composed("unfold", unfold),
      composed("fold", fold),
  };
}

}  // namespace tapedeck::onnx
