// Tests every op on operands of every layout. Strides must not change the bits. Empty and 0-d operands must work, or
// inference must refuse them.
#include <tapedeck/tests/engine/layouts.h>

#include <tapedeck/tests/engine/differences.h>
#include <tapedeck/tests/engine/seeds.h>

#include <functional>
#include <set>
#include <string>

namespace tapedeck::testing {
namespace {

constexpr DType kReals[] = {DType::f32, DType::f64};

void expect_same_bits(const Example& e, const std::vector<Tensor>& dense, const std::vector<Tensor>& others,
                      const std::string& what) {
  const NoGrad no_grad;
  const std::vector<Tensor> expected = run(e, dense);
  expect_equal_bits(run(e, others), expected, what);
  if (dense.size() < 2) return;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    std::vector<Tensor> mixed = dense;
    mixed[i] = others[i];
    expect_equal_bits(run(e, mixed), expected, what + ", operand " + std::to_string(i) + " alone");
  }
}

TEST(AllOpsLayout, StridesDoNotChangeTheBits) {
  for_every_example([](const Example& e) {
    for (DType real : kReals)
      for (const Layout& layout : kLayouts) {
        const std::vector<Tensor> dense = make_operands(e, real, 3);
        std::vector<Tensor> others;
        for (const Tensor& t : dense) others.push_back(laid_out(t, layout));
        expect_same_bits(e, dense, others, std::string(dtype_name(real)) + ", " + layout.name);
      }
  });
}

// Broadcasts along each dimension alone, and along all dimensions.
TEST(AllOpsLayout, BroadcastOperandsGiveTheBitsOfDenseOnes) {
  for_every_example([](const Example& e) {
    for (unsigned dims : {1u, 2u, 4u, 8u, ~0u}) {
      std::vector<Tensor> dense, others;
      for (const Tensor& t : make_operands(e, DType::f32, 3)) {
        others.push_back(e.op->is(kRandom) && t.dtype() == DType::i64 ? t : repeated(t, dims));
        dense.push_back(dense_image(others.back()));
      }
      expect_same_bits(e, dense, others, "dimensions " + std::to_string(dims));
    }
  });
}

TEST(AllOpsLayout, LargerStridedOperandsToo) {
  for_every_example([](const Example& e) {
    const NoGrad no_grad;
    const Example larger = enlarged(e, test::seeds(40000), test::seeds(200));
    const std::vector<Tensor> dense = make_operands(larger, DType::f32, 4), expected = run(larger, dense);
    for (const Layout& layout : kLayouts) {
      std::vector<Tensor> others;
      for (const Tensor& t : dense) others.push_back(laid_out(t, layout));
      expect_equal_bits(run(larger, others), expected, layout.name);
    }
  });
}

// ---- shapes that no example has ----

// The op runs, and so does its gradient if it has one; or the types or an index out of range are refused.
void expect_handled(const Example& e) {
  std::vector<Tensor> operands = make_operands(e, DType::f32, 1);
  for (Tensor& t : operands)
    if (is_floating(t.dtype())) t.requires_grad(true);
  try {
    for (const Tensor& y : run(e, operands)) {
      if (!y.requires_grad() || !differentiable(*e.op)) continue;
      backward(y, {.retain = true, .head = ones(y.shape(), y.dtype())});
    }
    for (const Tensor& t : operands) EXPECT_TRUE(!t.grad().defined() || t.grad().type() == t.type());
  } catch (const TypeError&) {
  } catch (const ExecutionError&) {
  }
}

std::string shapes_of(const Example& e) {
  std::string text;
  for (const Operand& o : e.operands) text += to_string(o.type) + " ";
  return text;
}

void try_shapes(const Example& e, const std::function<void(std::size_t i, Shape& shape)>& change) {
  Example other = e;
  for (std::size_t i = 0; i < other.operands.size(); ++i) change(i, other.operands[i].type.shape);
  SCOPED_TRACE("with operands " + shapes_of(other));
  expect_handled(other);
}

TEST(AllOpsLayout, EmptyOperandsWorkOrAreRefused) {
  for_every_example([](const Example& e) {
    std::set<std::int64_t> sizes;
    for (const Operand& o : e.operands) sizes.insert(o.type.shape.begin(), o.type.shape.end());
    for (std::int64_t size : sizes)  // replaces this size in all operands, so that equal sizes stay equal
      try_shapes(e, [&](std::size_t, Shape& shape) {
        for (int d = 0; d < shape.rank; ++d)
          if (shape[d] == size) shape[d] = 0;
      });
    for (int dim = 0; dim < 5; ++dim) {
      auto empty = [&](Shape& shape) {
        if (dim < shape.rank) shape[dim] = 0;
      };
      try_shapes(e, [&](std::size_t, Shape& shape) { empty(shape); });
      for (std::size_t one = 0; one < e.operands.size(); ++one)
        try_shapes(e, [&](std::size_t i, Shape& shape) {
          if (i == one) empty(shape);
        });
    }
  });
}

TEST(AllOpsLayout, NumbersAndVectorsWorkOrAreRefused) {
  for_every_example([](const Example& e) {
    for (int rank : {0, 1, 2, 8}) {
      auto reduced = [&](Shape& shape) {
        const int before = shape.rank;
        shape.rank = rank;
        for (int d = before; d < rank; ++d) shape.sizes[d] = 1;
      };
      try_shapes(e, [&](std::size_t, Shape& shape) { reduced(shape); });
      for (std::size_t one = 0; one < e.operands.size(); ++one)
        try_shapes(e, [&](std::size_t i, Shape& shape) {
          if (i == one) reduced(shape);
        });
    }
  });
}

// An operand of another dtype works or is a TypeError.
TEST(AllOpsLayout, OtherDtypesWorkOrAreRefused) {
  for_every_example([](const Example& e) {
    for (DType d : {DType::i32, DType::i64, DType::u8, DType::boolean})
      for (std::size_t one = 0; one <= e.operands.size(); ++one) {
        Example other = e;
        for (std::size_t i = 0; i < e.operands.size(); ++i) {
          if (one != i && one != e.operands.size()) continue;
          Operand& o = other.operands[i];
          o.type.dtype = d;
          o.low = 0, o.high = d == DType::boolean ? 2 : 4;
        }
        SCOPED_TRACE("with operands " + shapes_of(other));
        expect_handled(other);
      }
  });
}

}  // namespace
}  // namespace tapedeck::testing
