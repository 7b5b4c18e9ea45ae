// Tests ops whose kernels read or write images with gaps between them (Op::batch_strides). The bits must be those of dense
// images, and the kernel must not read or write the gaps.
#include <tapedeck/engine/eager/dispatch_parts.h>
#include <tapedeck/engine/ir/strides.h>
#include <tapedeck/tests/engine/layouts.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace tapedeck::testing {
namespace {

constexpr unsigned char kBetween = 0x7f;  // fills the gaps; as an element it is a large number

// A tensor that is a window in a larger one, as if joined with others along the second dimension.
struct Wide {
  Tensor whole, window;
  std::int64_t before = 0;  // elements of each image before the window
};

Wide widened(const Type& type) {
  const Shape& shape = type.shape;
  std::int64_t strides[kMaxRank] = {};
  dense_strides(shape, strides);
  Wide w;
  w.before = shape.rank > 1 ? strides[1] : 1;
  std::int64_t image = 1;
  for (int d = 1; d < shape.rank; ++d) image *= shape[d];
  strides[0] = image + 3 * w.before;
  const Shape whole{shape[0] * strides[0]};
  const std::vector<unsigned char> bytes(static_cast<std::size_t>(whole[0]) * dtype_size(type.dtype) + 8, kBetween);
  w.whole = from_bytes({type.dtype, whole}, bytes.data());
  w.window = Tensor(detail::new_view(*w.whole.impl(), shape, w.before, strides));
  return w;
}

// Copies between a dense tensor and a window whose images are dense.
void copy_images(const Tensor& dense, const Wide& wide, bool into) {
  const std::int64_t n = dense.shape()[0], size = n > 0 ? dense.bytes() / n : 0;
  const std::int64_t step = wide.window.strides()[0] * static_cast<std::int64_t>(dtype_size(dense.dtype()));
  for (std::int64_t i = 0; size > 0 && i < n; ++i) {  // an empty tensor has no data
    char* const there = static_cast<char*>(wide.window.impl()->data()) + i * step;
    char* const here = static_cast<char*>(dense.impl()->data()) + i * size;
    std::memcpy(into ? there : here, into ? here : there, static_cast<std::size_t>(size));
  }
}

// True if every byte outside of the window is unchanged.
bool untouched_between(const Wide& wide, const Shape& shape) {
  const auto item = static_cast<std::int64_t>(dtype_size(wide.whole.dtype()));
  const auto* bytes = static_cast<const unsigned char*>(wide.whole.impl()->data());
  const std::int64_t step = wide.window.strides()[0] * item, begin = wide.before * item;
  const std::int64_t image = shape[0] > 0 ? shape.numel() / shape[0] * item : 0;
  for (std::int64_t i = 0; i < wide.whole.bytes(); ++i)
    if ((i % step < begin || i % step >= begin + image) && bytes[i] != kBetween) return false;
  return true;
}

bool has_bit(std::uint32_t bits, std::size_t i) { return i < 32 && (bits >> i & 1) != 0; }
bool declares(const Op& op) { return op.batch_strides.inputs != 0 || op.batch_strides.outputs != 0; }

// The dense operands and results of one call.
struct Dense {
  std::vector<Tensor> in, out;
};

Dense run_dense(const Example& e, DType real) {
  Dense d{make_operands(e, real, 11), {}};
  const NoGrad no_grad;
  d.out = run(e, d.in);
  return d;
}

// Calls the op with gaps between the images of the operands and results in these bit sets.
void expect_same_apart(const Example& e, const Dense& d, std::uint32_t inputs, std::uint32_t outputs, const std::string& what) {
  SCOPED_TRACE(fmt::format("{}, operands {:b}, results {:b}", what, inputs, outputs));
  std::vector<detail::TensorImpl*> in, out;
  std::vector<Tensor> kept;
  std::vector<Wide> wide(d.out.size());
  for (std::size_t i = 0; i < d.in.size(); ++i) {
    if (has_bit(inputs, i)) {
      const Wide w = widened(d.in[i].type());
      copy_images(d.in[i], w, true);
      EXPECT_TRUE(takes_strides(*e.op, static_cast<int>(i), w.window.shape(), w.window.strides()));
      kept.push_back(w.window);
    } else {
      kept.push_back(d.in[i]);
    }
    in.push_back(kept.back().impl());
  }
  for (std::size_t i = 0; i < d.out.size(); ++i) {
    wide[i] = widened(d.out[i].type());
    const bool apart = has_bit(outputs, i);
    EXPECT_TRUE(!apart || writes_strides(*e.op, static_cast<int>(i), wide[i].window.shape(), wide[i].window.strides()));
    kept.push_back(apart ? wide[i].window : Tensor(detail::new_impl(d.out[i].type(), detail::new_storage(d.out[i].bytes()))));
    out.push_back(kept.back().impl());
  }
  run_kernel(*e.op, in.data(), static_cast<int>(in.size()), e.attrs(), out.data(), static_cast<int>(out.size()),
             {__FILE__, __LINE__});
  for (std::size_t i = 0; i < d.out.size(); ++i) {
    Tensor got = kept[d.in.size() + i];
    if (has_bit(outputs, i)) {
      EXPECT_TRUE(untouched_between(wide[i], d.out[i].shape())) << "result " << i;
      got = Tensor(detail::new_impl(d.out[i].type(), detail::new_storage(d.out[i].bytes())));
      copy_images(got, wide[i], false);
    }
    EXPECT_TRUE(bit_equal(got, d.out[i])) << "result " << i;
  }
}

void check_example(const Example& e) {
  const BatchStrides bits = e.op->batch_strides;
  for (DType real : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    if (usable_real(e, real) != real) continue;
    const Dense d = run_dense(e, real);
    const std::string what = fmt::format("{} in {}", e.text, dtype_name(real));
    const auto inputs = bits.inputs & ((1u << d.in.size()) - 1), outputs = bits.outputs & ((1u << d.out.size()) - 1);
    expect_same_apart(e, d, 0, 0, what);
    expect_same_apart(e, d, inputs, 0, what);
    expect_same_apart(e, d, 0, outputs, what);
    expect_same_apart(e, d, inputs, outputs, what);
    for (std::size_t i = 0; i < d.in.size(); ++i)
      if (has_bit(inputs, i)) expect_same_apart(e, d, 1u << i, 0, what);
  }
}

// Larger calls. Some give oneDNN groups of several images, in its own layouts or in plain ones; some run as matrix products;
// some have long image planes, some short ones.
const char* const kLarger[] = {
    "conv2d(f32[37,10,9,7], f32[13,10,3,3]) {padding=[1]}",
    "conv2d(f32[64,1,8,8], f32[16,1,3,3]) {padding=[1]}",
    "conv2d(f32[40,32,4,4], f32[16,32,1,1])",
    "conv2d(f32[21,3,8,8], f32[24,3,4,4]) {stride=[4]}",
    "conv2d(f32[9,16,12,11], f32[16,16,3,3]) {stride=[2], padding=[2,3,1,3], dilation=[2,3]}",
    "conv2d(f32[20,32,9,8], f32[32,1,3,3]) {stride=[2,1], padding=[1], groups=32}",
    "conv2d(f32[9,16,8,8], f32[32,4,3,3]) {padding=[1], groups=4}",
    "conv2d(f32[5,12,1,30], f32[20,12,1,5]) {padding=[0,2]}",
    "conv2d_input_grad(f32[37,13,9,7], f32[13,10,3,3]) {padding=[1], size=[9,7]}",
    "conv2d_input_grad(f32[64,16,8,8], f32[16,1,3,3]) {padding=[1], size=[8,8]}",
    "conv2d_input_grad(f32[40,16,4,4], f32[16,32,1,1]) {size=[4,4]}",
    "conv2d_input_grad(f32[21,24,2,2], f32[24,3,4,4]) {stride=[4], size=[8,8]}",
    "conv2d_input_grad(f32[9,32,8,8], f32[32,4,3,3]) {padding=[1], groups=4, size=[8,8]}",
    "conv2d_weight_grad(f32[37,13,9,7], f32[37,10,9,7]) {padding=[1], size=[3,3]}",
    "conv2d_weight_grad(f32[64,16,8,8], f32[64,1,8,8]) {padding=[1], size=[3,3]}",
    "conv2d_weight_grad(f32[40,16,4,4], f32[40,32,4,4]) {size=[1,1]}",
    "conv2d_weight_grad(f32[21,24,2,2], f32[21,3,8,8]) {stride=[4], size=[4,4]}",
    "conv2d_weight_grad(f32[9,32,8,8], f32[9,16,8,8]) {padding=[1], groups=4, size=[3,3]}",
    "conv3d(f32[11,3,5,6,7], f32[16,3,3,3,3]) {padding=[1]}",
    "conv3d_input_grad(f32[11,16,5,6,7], f32[16,3,3,3,3]) {padding=[1], size=[5,6,7]}",
    "conv3d_weight_grad(f32[11,16,5,6,7], f32[11,3,5,6,7]) {padding=[1], size=[3,3,3]}",
    "batch_norm(f32[3,5,20,20], f32[5], f32[5])",
    "batch_norm(f32[40,70,3], f32[70], f32[70])",
    "batch_norm(f32[600,9], f32[9])",
    "batch_norm_grad(f32[3,5,20,20], f32[3,5,20,20], f32[5], f32[5] in (0.5,2), f32[5], f32[5], f32[5])",
    "batch_norm_grad(f32[40,70,3], f32[40,70,3], f32[70], f32[70] in (0.5,2), f32[70], f32[70], f32[70])",
    "batch_norm_inference(f32[40,70,3], f32[70], f32[70] in (0.5,2), f32[70], f32[70])",
    "group_norm(f32[9,8,17,5], f32[8], f32[8]) {groups=4}",
    "group_norm_grad(f32[9,8,17], f32[9,8,17], f32[9,4], f32[9,4] in (0.5,2), f32[9,4], f32[9,4], f32[8]) {groups=4}",
    "max_pool2d(f32[9,7,20,150])",
    "max_pool2d(f32[9,7,20,19]) {window=[3], stride=[2], padding=[1]}",
    "max_pool2d_index(f32[9,7,20,19]) {window=[3], stride=[2], padding=[1]}",
    "max_pool2d_grad(f32[3,2,5,5], f32[3,2,3,3]) {window=[3], stride=[2], padding=[1]}",
    "max_pool2d_at_index(f32[3,2,7,7], u8[3,2,4,4] in (0,9)) {window=[3], stride=[2], padding=[1]}",
    ("max_pool3d_grad_from_index(u8[3,2,3,3,3] in (0,18), f32[3,2,3,3,3]) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1], "
     "size=[5,4,5]}"),
    "max_pool3d_at_index(f32[3,2,5,4,5], u8[3,2,3,3,3] in (0,18)) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1]}",
    "avg_pool2d(f32[9,7,20,150])",
    "avg_pool2d_grad(f32[9,7,10,75]) {size=[20,150]}",
    "avg_pool3d_grad(f32[3,2,3,3,4]) {window=[3,2,3], stride=[2,1,2], padding=[1,0,1], size=[5,4,6], ceil_mode=true}",
    "interpolate_nearest(f32[9,7,10,15]) {size=[20,30]}",
    "interpolate_bilinear(f32[9,7,10,15]) {size=[20,31]}",
    "interpolate_bilinear_grad(f32[9,7,20,31]) {size=[10,15]}",
};

TEST(BatchStrides, DoNotChangeTheBitsOfTheExamples) {
  for_every_example([](const Example& e) {
    if (declares(*e.op)) check_example(e);
  });
}

TEST(BatchStrides, DoNotChangeTheBitsOfLargerCalls) {
  for (const char* text : kLarger) {
    const std::string name(text, std::strchr(text, '('));
    const Op* op = find_op(name);
    ASSERT_NE(op, nullptr) << name;
    guarded(*op, text, [&] { check_example(parse_example(*op, text)); });
  }
}

// For each op that declares batch strides, some call above must have several images.
TEST(BatchStrides, OfEveryOpAreSeenWithSeveralImages) {
  std::set<std::string> seen;
  for (const char* text : kLarger) seen.insert(std::string(text, std::strchr(text, '(')));
  for_every_example([&](const Example& e) {
    if (declares(*e.op) && e.operands[0].type.numel() > 0 && e.operands[0].type.shape[0] > 1) seen.insert(e.op->name);
  });
  for_every_op([&](const Op& op) { EXPECT_TRUE(!declares(op) || seen.count(op.name)) << op.name; });
}

// ---- strides that each op accepts ----

TEST(BatchStrides, AreAskedOfTheOp) {
  const Op &conv = *find_op("conv2d"), &weight_grad = *find_op("conv2d_weight_grad"), &softmax = *find_op("softmax"),
           &relu = *find_op("relu"), &matmul = *find_op("matmul");
  const Shape shape{2, 3, 4, 5}, empty{0, 3, 4, 5};
  const std::int64_t dense[] = {60, 20, 5, 1}, apart[] = {100, 20, 5, 1}, overlapping[] = {20, 20, 5, 1},
                     repeated[] = {0, 20, 5, 1}, backwards[] = {-60, 20, 5, 1}, channels_apart[] = {100, 30, 5, 1},
                     rows_apart[] = {160, 40, 10, 1};
  for (const Op* op : {&conv, &weight_grad, &softmax, &relu, &matmul}) {
    EXPECT_TRUE(takes_strides(*op, 0, shape, dense));
    EXPECT_TRUE(writes_strides(*op, 0, shape, dense));
    EXPECT_TRUE(takes_strides(*op, 0, empty, channels_apart));
  }
  for (const std::int64_t* strides : {apart, overlapping, repeated, backwards}) {
    EXPECT_TRUE(takes_strides(conv, 0, shape, strides));
    EXPECT_FALSE(takes_strides(conv, 1, shape, strides)) << "weights are dense";
    EXPECT_TRUE(takes_strides(weight_grad, 1, shape, strides));
    EXPECT_FALSE(takes_strides(softmax, 0, shape, strides));
    EXPECT_TRUE(takes_strides(relu, 0, shape, strides));
    EXPECT_EQ(writes_strides(conv, 0, shape, strides), strides == apart);
    EXPECT_FALSE(writes_strides(weight_grad, 0, shape, strides));
  }
  for (const std::int64_t* strides : {channels_apart, rows_apart}) {
    EXPECT_FALSE(takes_strides(conv, 0, shape, strides));
    EXPECT_FALSE(writes_strides(conv, 0, shape, strides));
  }
  EXPECT_TRUE(takes_strides(matmul, 0, shape, rows_apart));
  EXPECT_FALSE(writes_strides(matmul, 0, shape, rows_apart));
  EXPECT_TRUE(takes_strides(conv, 0, Shape{1, 3, 4, 5}, apart));
}

}  // namespace
}  // namespace tapedeck::testing
