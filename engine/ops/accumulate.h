// Ops that add to a sum. The pass capture/passes/gradient_sums.cpp turns sums of gradient pieces into these ops.
#if !defined(TAPEDECK_ENGINE_OPS_ACCUMULATE_H) || defined(TAPEDECK_DEFINE_OPS)
#define TAPEDECK_ENGINE_OPS_ACCUMULATE_H

#include <tapedeck/engine/ops/op_block.h>

#include <vector>

namespace tapedeck TAPEDECK_API {

OP(add_n, {
              .doc = "sum of any number of operands of one type, left to right; f16 and bf16 sums are rounded once",
              .traits = kElementwise | kCheap | kAnyStrides,
              .inplace = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}, {0, 7}},
              .min_inputs = 1,
              .max_inputs = -1,
              .infer = infer_add_n,
              .vjp =
                  [](Vjp& b) {
                    for (int i = 0; i < b.n_inputs(); ++i) b.dx(i, b.dy());
                  },
              .examples = {"add_n(f32[3,5], f32[3,5], f32[3,5])", "add_n(f32[4])",
                           "add_n(f32[2,3], f32[2,3], f32[2,3], f32[2,3], f32[2,3], f32[2,3], f32[2,3], "
                           "f32[2,3], f32[2,3])",
                           "add_n(i32[3], i32[3])", "add_n(f32[0,2], f32[0,2])"},
          })

OP(addcmul, {
                .doc = "sum + a * b; a and b broadcast, together to the sum's shape",
                .traits = kElementwise | kCheap | kAnyStrides,
                .inplace = {{0, 0}},
                .min_inputs = 3,
                .max_inputs = 3,
                .infer = infer_addcmul,
                .vjp =
                    [](Vjp& b) {
                      b.dx(0, b.dy());
                      if (b.needs(1)) b.dx(1, mul(b.dy(), b.x(2)));
                      if (b.needs(2)) b.dx(2, mul(b.dy(), b.x(1)));
                    },
                .examples = {"addcmul(f32[3,5], f32[3,5], f32[3,5])", "addcmul(f32[3,5], f32[5], f32[3,1])",
                             "addcmul(f32[], f32[], f32[])", "addcmul(i64[2,3], i64[2,3], i64[3])"},
            })

OP(addmm,
   {
       .doc = "sum + the matrix product of a [..,m,k] and b [..,k,n], whose leading dimensions broadcast, of the sum's type",
       .traits = kMatrixStrides | kNativeHalf,
       .inplace = {{0, 0}},
       .min_inputs = 3,
       .max_inputs = 3,
       .infer = infer_addmm,
       .vjp =
           [](Vjp& b) {
             b.dx(0, b.dy());
             if (b.needs(1)) b.dx(1, matmul(b.dy(), transpose_last(b.x(2))));
             if (b.needs(2)) b.dx(2, matmul(transpose_last(b.x(1)), b.dy()));
           },
       .cost = cost_addmm,
       .examples = {"addmm(f32[3,5], f32[3,4], f32[4,5])", "addmm(f32[2,3,5], f32[2,3,4], f32[4,5])",
                    "addmm(f32[3,2], f32[3,0], f32[0,2])", "addmm(i32[2,2], i32[2,3], i32[3,2])"},
   })

#ifndef TAPEDECK_DEFINE_OPS
// ---- functions for authors ----

Tensor add_n(const std::vector<Tensor>& tensors, Site site = {__builtin_FILE(), __builtin_LINE()});  // tensors of one type
Tensor addcmul(const Arg& sum, const Tensor& a, const Tensor& b);
Tensor addmm(const Arg& sum, const Tensor& a, const Tensor& b);

// Returns the op `form` with form(sum, operands...) == add(sum, op(operands...)) bit for bit. `form` takes the attributes of
// `op`. Returns null if no form is declared for the op or if it does not hold for these types. accumulate.cpp declares the
// forms. A test proves each of them on the examples of the op.
const Op* accumulating_form(const Op& op, std::span<const Type> inputs, std::span<const Type> outputs);
std::vector<std::pair<const Op*, const Op*>> accumulating_forms();  // all declared pairs: the op, its form
#endif

}  // namespace TAPEDECK_API
#endif
