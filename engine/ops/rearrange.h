// Elements in other positions: flips, rolls, triangles, pads that repeat elements, and functions made from views.
#if !defined(TAPEDECK_ENGINE_OPS_REARRANGE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_REARRANGE_H

#include <tapedeck/engine/ops/op_block.h>
#include <tapedeck/kernels/attrs/rearrange.h>

#include <string_view>
#include <vector>

namespace tapedeck TAPEDECK_API {

OP(flip, {
             .doc = "elements in reverse order along axes",
             .traits = kCheap | kAnyStrides | kNativeHalf,
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<FlipAttrs>(),
             .infer =
                 [](Infer& f) {
                   require_ascending(f, f.attributes<FlipAttrs>().axes);
                   infer_same(f);
                 },
             .vjp = [](Vjp& b) { b.dx(0, apply(ops::flip, {&b.dy()}, b.attrs, b.site())); },
             .examples = {"flip(f32[3,4]) {axes=[1]}", "flip(f32[2,3,4]) {axes=[0,2]}", "flip(f32[5]) {axes=[]}",
                          "flip(i64[0,2]) {axes=[0]}", "flip(bool[7]) {axes=[0]}"},
         })

OP(roll, {
             .doc = "elements moved on by `shifts` along `axes`; what falls off the end comes back at the start",
             .traits = kCheap | kAnyStrides | kNativeHalf,
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<RollAttrs>(),
             .infer = infer_roll,
             .vjp =
                 [](Vjp& b) {
                   RollAttrs back = b.attributes<RollAttrs>();
                   for (int i = 0; i < back.axes.size; ++i)
                     if (back.shifts[i] > 0) back.shifts.items[i] = b.x(0).shape().sizes[back.axes[i]] - back.shifts[i];
                   b.dx(0, apply(ops::roll, {&b.dy()}, &back, b.site()));
                 },
             .examples = {"roll(f32[3,4]) {shifts=[1], axes=[1]}", "roll(f32[2,5,3]) {shifts=[1,2], axes=[0,2]}",
                          "roll(f32[0]) {shifts=[0], axes=[0]}", "roll(i32[5]) {shifts=[3], axes=[0]}"},
         })

OP(tril, {
             .doc = "matrices [..,m,n] with zeros above the diagonal",
             .traits = kCheap | kNativeHalf,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<TriangleAttrs>(),
             .infer = infer_triangle,
             .vjp = [](Vjp& b) { b.dx(0, apply(ops::tril, {&b.dy()}, b.attrs, b.site())); },
             .examples = {"tril(f32[4,4])", "tril(f32[2,3,5]) {diagonal=1}", "tril(f32[5,2]) {diagonal=-2}",
                          "tril(bool[3,3]) {diagonal=-9}", "tril(f32[1,4])"},
         })

OP(triu, {
             .doc = "matrices [..,m,n] with zeros below the diagonal",
             .traits = kCheap | kNativeHalf,
             .inplace = {{0, 0}},
             .min_inputs = 1,
             .max_inputs = 1,
             .attrs = &attr_schema<TriangleAttrs>(),
             .infer = infer_triangle,
             .vjp = [](Vjp& b) { b.dx(0, apply(ops::triu, {&b.dy()}, b.attrs, b.site())); },
             .examples = {"triu(f32[4,4])", "triu(f32[2,3,5]) {diagonal=1}", "triu(f32[5,2]) {diagonal=-2}",
                          "triu(i64[3,3]) {diagonal=9}", "triu(f32[4,1])"},
         })

OP(pad_constant, {
                     .doc = "`value` before and after every dimension",
                     .traits = kCheap | kAnyStrides,
                     .min_inputs = 1,
                     .max_inputs = 1,
                     .attrs = &attr_schema<PadConstantAttrs>(),
                     .infer =
                         [](Infer& f) {
                           const auto& a = f.attributes<PadConstantAttrs>();
                           infer_padded(f, a.before, a.after);
                         },
                     .vjp =
                         [](Vjp& b) {
                           const auto& a = b.attributes<PadConstantAttrs>();
                           Ints stops = a.before;
                           for (int i = 0; i < stops.size; ++i) stops.items[i] += b.x(0).shape()[i];
                           b.dx(0, slice(b.dy(), a.before, stops));
                         },
                     .examples = {"pad_constant(f32[3,4]) {before=[1,0], after=[0,2], value=2.5}",
                                  "pad_constant(f32[0,2]) {before=[1,0], after=[1,1], value=-1.0}",
                                  "pad_constant(i32[3]) {before=[2], after=[0], value=7.0}",
                                  "pad_constant(bool[2]) {before=[1], after=[1], value=1.0}"},
                 })

OP(pad_mode, {
                 .doc = "elements repeated before and after every dimension: \"reflect\" (not the edge itself), \"replicate\" "
                        "(the edge), \"circular\"",
                 .traits = kCheap | kAnyStrides | kNativeHalf,
                 .min_inputs = 1,
                 .max_inputs = 1,
                 .attrs = &attr_schema<PadModeAttrs>(),
                 .infer = infer_pad_mode,
                 .vjp = [](Vjp& b) { b.dx(0, apply(ops::pad_mode_grad, {&b.dy()}, b.attrs, b.site())); },
                 .examples = {"pad_mode(f32[3,4]) {before=[2,1], after=[1,3], mode=\"reflect\"}",
                              "pad_mode(f32[3,4]) {before=[4,1], after=[0,6], mode=\"replicate\"}",
                              "pad_mode(f32[2,3,4]) {before=[2,0,1], after=[1,3,4], mode=\"circular\"}",
                              "pad_mode(f32[0,3]) {before=[0,1], after=[0,2], mode=\"reflect\"}",
                              "pad_mode(f32[1]) {before=[3], after=[2], mode=\"replicate\"}",
                              "pad_mode(i32[5]) {before=[4], after=[4], mode=\"reflect\"}"},
             })

OP(pad_mode_grad,
   {
       .doc = "gradient of pad_mode: every element of the unpadded shape gets the sum of the places that show it",
       .min_inputs = 1,
       .max_inputs = 1,
       .attrs = &attr_schema<PadModeAttrs>(),
       .infer = infer_pad_mode_grad,
       .vjp = [](Vjp& b) { b.dx(0, apply(ops::pad_mode, {&b.dy()}, b.attrs, b.site())); },
       .examples = {"pad_mode_grad(f32[6,8]) {before=[2,1], after=[1,3], mode=\"reflect\"}",
                    "pad_mode_grad(f32[7,11]) {before=[4,1], after=[0,6], mode=\"replicate\"}",
                    "pad_mode_grad(f32[5,6,9]) {before=[2,0,1], after=[1,3,4], mode=\"circular\"}",
                    "pad_mode_grad(f32[0,6]) {before=[0,1], after=[0,2], mode=\"reflect\"}"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors: any dtype; axes may be negative ----

Tensor flip(const Arg& x, const Ints& axes);
Tensor roll(const Arg& x, const Ints& shifts, const Ints& axes = {});  // without axes, x is rolled as if it were flat
Tensor tril(const Arg& x, std::int64_t diagonal = 0);
Tensor triu(const Arg& x, std::int64_t diagonal = 0);
// `mode` is "constant" (with `value`), "reflect", "replicate" or "circular".
Tensor pad(const Arg& x, const Ints& before, const Ints& after, std::string_view mode, double value = 0);
template <class Value>
requires(std::is_integral_v<Value>&& std::is_signed_v<Value>) Tensor
    pad(const Arg& x, const Ints& before, const Ints& after, std::string_view mode, Value value) {
  return pad(x, before, after, mode, exact_double("pad", value, x.site()));
}

// Repeats the whole tensor repeats[d] times along dimension d. If the shape and `repeats` differ in length, the shorter one
// gets leading ones.
Tensor tile(const Arg& x, const Ints& repeats);
// Repeats every element of an axis `repeats` times in a row.
Tensor repeat_interleave(const Arg& x, std::int64_t repeats, std::int64_t axis);

// Cuts an axis into parts, which are views: parts of `size` elements (the last may be smaller), parts of the listed sizes, or
// `chunks` parts of about equal size.
std::vector<Tensor> split(const Arg& x, std::int64_t size, std::int64_t axis = 0);
std::vector<Tensor> split(const Arg& x, const std::vector<std::int64_t>& sizes, std::int64_t axis = 0);
std::vector<Tensor> chunk(const Arg& x, std::int64_t chunks, std::int64_t axis = 0);
std::vector<Tensor> unbind(const Arg& x, std::int64_t axis = 0);  // all slices along the axis, without that axis
Tensor narrow(const Arg& x, std::int64_t axis, std::int64_t start, std::int64_t length);
Tensor select(const Arg& x, std::int64_t axis, std::int64_t index);  // one slice, without the axis
// Joins tensors of one type along a new axis.
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0, Site site = {__builtin_FILE(), __builtin_LINE()});

// Views with another shape or order of dimensions.
Tensor squeeze(const Arg& x);                       // drops all dimensions of size 1
Tensor squeeze(const Arg& x, std::int64_t axis);    // drops this dimension if its size is 1
Tensor unsqueeze(const Arg& x, std::int64_t axis);  // adds a dimension of size 1 before `axis`
Tensor flatten(const Arg& x, std::int64_t first = 0, std::int64_t last = -1);
Tensor expand(const Arg& x, const Ints& shape);  // as broadcast_to; a size of -1 is kept
Tensor permute(const Arg& x, const Ints& axes);  // as transpose
Tensor movedim(const Arg& x, std::int64_t from, std::int64_t to);
Tensor swapaxes(const Arg& x, std::int64_t axis1, std::int64_t axis2);
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors, Site site = {__builtin_FILE(), __builtin_LINE()});
// The coordinates of all points of a grid, from its axes. `indexing` is "ij", or "xy" (the first two dimensions swapped).
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, std::string_view indexing = "ij",
                             Site site = {__builtin_FILE(), __builtin_LINE()});

// pixel_shuffle: [.., c r r, h, w] -> [.., c, h r, w r] for the factor r. pixel_unshuffle does the opposite.
Tensor pixel_shuffle(const Arg& x, std::int64_t factor);
Tensor pixel_unshuffle(const Arg& x, std::int64_t factor);
// x is [n,c,...]. The channels get a new order: one channel from each group in turn.
Tensor channel_shuffle(const Arg& x, std::int64_t groups);
#endif

}  // namespace TAPEDECK_API
#endif
