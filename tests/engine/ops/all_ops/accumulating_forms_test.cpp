// Tests every declared accumulating form on all examples of its op. The oracle is the op followed by add. The form must give
// the same bits, in memory of its own and over the bytes of the sum.
#include <tapedeck/engine/ops/accumulate.h>

#include <tapedeck/tests/engine/layouts.h>

namespace tapedeck::testing {
namespace {

Tensor random_like(const Tensor& t, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Operand o;
  o.type = t.type();
  o.low = -3;
  o.high = 3;
  switch (t.dtype()) {
    case DType::f64:
      return drawn<double>(t.type(), o, random, false);
    case DType::f32:
      return drawn<float>(t.type(), o, random, false);
    case DType::i32:
      return drawn<std::int32_t>(t.type(), o, random, true);
    case DType::i64:
      return drawn<std::int64_t>(t.type(), o, random, true);
    default:
      return drawn<unsigned char>(t.type(), o, random, true);
  }
}

int expect_form_is_op_then_add(const Example& e, DType real) {
  const std::vector<Tensor> operands = make_operands(e, real, 6);
  const Tensor piece = run(e, operands)[0];
  std::vector<Type> in;
  for (const Tensor& t : operands) in.push_back(t.type());
  const Type out = piece.type();
  const Op* form = accumulating_form(*e.op, in, {&out, 1});
  if (!form) return 0;
  const Tensor sum = random_like(piece, 7), expected = add(sum, piece);
  std::vector<Tensor> all = {sum};
  all.insert(all.end(), operands.begin(), operands.end());
  EXPECT_TRUE(bit_equal(apply_all(*form, all, e.attrs(), {})[0], expected)) << "fresh";
  all[0] = copy(sum);
  apply_in_place(*form, all, e.attrs(), {});
  EXPECT_TRUE(bit_equal(all[0], expected)) << "over the sum";
  return 1;
}

TEST(AccumulatingForms, AreTheOpThenAddBitForBit) {
  const auto forms = accumulating_forms();
  EXPECT_FALSE(forms.empty());
  for (const auto& pair : forms) {
    const Op *const op = pair.first, *const form = pair.second;  // clang 14 cannot capture structured bindings in a lambda
    ASSERT_NE(op, nullptr);
    ASSERT_NE(form, nullptr) << op->name;
    EXPECT_EQ(form->max_inputs, op->max_inputs + 1) << form->name;
    EXPECT_EQ(form->attrs, op->attrs) << form->name;
    EXPECT_TRUE(std::any_of(form->inplace.begin(), form->inplace.end(), [](const InplacePair& p) {
      return p.input == 0 && p.output == 0;
    })) << form->name;
    int checked = 0;
    for (const char* text : op->examples)
      guarded(*op, text, [&] {
        const Example e = parse_example(*op, text);
        for (DType real : {DType::f32, DType::f64}) checked += expect_form_is_op_then_add(e, real);
        checked += expect_form_is_op_then_add(enlarged(e, 3000000, 20000), DType::f32);
      });
    EXPECT_GE(checked, 6) << op->name;
  }
}

// In half types, op and add round twice. So does addmm; no other form does, so no other may be declared.
TEST(AccumulatingForms, OfHalfTypesRoundTwice) {
  const Tensor a = random_like(empty({DType::f32, {33, 40}}), 3), b = random_like(empty({DType::f32, {40, 21}}), 4),
               sum = random_like(empty({DType::f32, {33, 21}}), 5);
  for (DType half : {DType::f16, DType::bf16}) {
    const Type t{half, {4, 4}};
    const Type in[] = {t, t};
    EXPECT_EQ(accumulating_form(ops::matmul, in, {&t, 1}), &ops::addmm);
    EXPECT_EQ(accumulating_form(ops::mul, in, {&t, 1}), nullptr);
    const Tensor left = cast(a, half), right = cast(b, half), before = cast(sum, half);
    EXPECT_TRUE(bit_equal(addmm(before, left, right), add(before, matmul(left, right)))) << dtype_name(half);
  }
}

// add_n equals the chain of additions for every layout, also over the bytes of any operand.
TEST(AddN, IsTheChainBitForBit) {
  std::mt19937_64 random(3);
  for (int n : {1, 2, 3, 9, 100})
    for (const Shape& shape : {Shape{7}, Shape{33, 41}, Shape{}, Shape{3, 0}, Shape{1200}}) {
      std::vector<Tensor> pieces;
      Tensor chain;
      for (int i = 0; i < n; ++i) {
        Tensor t = random_like(empty({DType::f32, shape}), random());
        if (i % 3 == 1 && shape.rank == 2)
          t = transpose(random_like(empty({DType::f32, {shape[1], shape[0]}}), random()), {1, 0});
        if (i % 3 == 2) t = broadcast_to(random_like(empty({DType::f32, {}}), random()), shape);
        pieces.push_back(t);
        chain = i ? add(chain, t) : copy(t);
      }
      EXPECT_TRUE(bit_equal(add_n(pieces), chain)) << n << " of " << to_string(shape);
      const std::vector<Tensor> same(static_cast<std::size_t>(n), pieces[0]);
      Tensor twice = copy(pieces[0]);
      for (int i = 1; i < n; ++i) twice = add(twice, pieces[0]);
      EXPECT_TRUE(bit_equal(add_n(same), twice));
    }
}

}  // namespace
}  // namespace tapedeck::testing
