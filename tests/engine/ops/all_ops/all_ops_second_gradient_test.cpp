// Tests the gradient of the gradient of every op against central differences of the first gradient. It is taken for operands
// and heads, because a head may have a history too.
#include <tapedeck/engine/gradient/gradients.h>

#include <tapedeck/tests/engine/differences.h>

namespace tapedeck::testing {
namespace {

// The variables are the operands and then one head for each result (undefined if the result is not f64).
struct Problem {
  const Example* e = nullptr;
  std::vector<Tensor> variables;
  std::vector<std::vector<double>> directions;  // for each variable: weights of the elements of its first gradient

  std::size_t n_operands() const { return e->operands.size(); }
};

bool varies(const Tensor& t) { return t.defined() && t.dtype() == DType::f64; }

Problem make_problem(const Example& e, std::uint64_t seed) {
  Problem p;
  p.e = &e;
  std::mt19937_64 random(seed);
  p.variables = make_operands(e, DType::f64, seed);
  for (const Tensor& head : random_heads(run(e, p.variables), random)) p.variables.push_back(head);
  for (const Tensor& v : p.variables)
    p.directions.push_back(varies(v) ? random_numbers(v.numel(), random) : std::vector<double>());
  return p;
}

// One number with history: the gradients for the operands, weighted with the directions.
Tensor first_gradient(const Problem& p, const std::vector<Tensor>& variables, bool create_graph) {
  const std::vector<Tensor> operands(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(p.n_operands()));
  const std::vector<Tensor> heads(variables.begin() + static_cast<std::ptrdiff_t>(p.n_operands()), variables.end());
  const Tensor loss = loss_of(run(*p.e, operands), heads);
  if (!loss.defined()) return {};
  std::vector<Tensor> wrt;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < p.n_operands(); ++i)
    if (varies(operands[i])) wrt.push_back(operands[i]), of.push_back(i);
  GradientOptions options;
  options.create_graph = create_graph;
  const std::vector<Tensor> g = gradients({loss}, wrt, options);
  Tensor total;
  for (std::size_t k = 0; k < g.size(); ++k) {
    if (!g[k].defined()) continue;
    const Tensor piece = sum(mul(g[k], f64_tensor(p.directions[of[k]], g[k].shape())));
    total = total.defined() ? add(total, piece) : piece;
  }
  return total;
}

std::vector<Tensor> as_leaves(const std::vector<Tensor>& variables) {
  std::vector<Tensor> all;
  for (const Tensor& v : variables) {
    all.push_back(v.defined() ? v.detach() : v);
    if (varies(v)) all.back().requires_grad(true);
  }
  return all;
}

// Finds the op in a message such as "'max_pool2d_grad' at f.cpp:12 has no gradient".
const Op* named_op(const std::string& message) {
  const std::size_t open = message.find('\''), close = message.find('\'', open + 1);
  return close == std::string::npos ? nullptr : find_op(message.substr(open + 1, close - open - 1));
}

void expect_second_gradient(const Problem& p) {
  const std::vector<Tensor> xs = as_leaves(p.variables);
  Tensor total;
  std::vector<Tensor> second(xs.size()), wrt;
  std::vector<std::size_t> of;
  for (std::size_t j = 0; j < xs.size(); ++j)
    if (varies(xs[j])) wrt.push_back(xs[j]), of.push_back(j);
  try {
    total = first_gradient(p, xs, true);
    if (!total.defined()) return;
    if (total.requires_grad()) {
      const std::vector<Tensor> g = gradients({total}, wrt);
      for (std::size_t k = 0; k < g.size(); ++k) second[of[k]] = g[k];
    }
  } catch (const GradientError& error) {
    const Op* op = named_op(error.what());
    ASSERT_NE(op, nullptr) << error.what();
    EXPECT_EQ(op->vjp, nullptr) << error.what();
    EXPECT_NE(std::string(op->no_gradient), "") << op->name << " has no gradient, and its block does not say why";
    return;
  }
  std::mt19937_64 random(17);
  for (std::size_t j : of) {
    const std::vector<double> direction = random_numbers(xs[j].numel(), random);
    const double numeric = central_difference(p.variables[j], direction, [&](const Tensor& moved) {
      std::vector<Tensor> variables = p.variables;
      variables[j] = moved;
      const Tensor value = first_gradient(p, as_leaves(variables), false);
      return value.defined() ? value.item() : 0;
    });
    const std::size_t n = p.n_operands();
    const std::string what = j < n ? "operand " + std::to_string(j) : "head " + std::to_string(j - n);
    expect_same_slope(along(second[j], direction), numeric, 1e-5, what);
  }
}

TEST(AllOpsSecondGradient, IsThatOfCentralDifferencesOfTheFirst) {
  for_every_example([](const Example& e) {
    if (!differentiable(*e.op)) return;
    for (std::uint64_t seed : {11, 12}) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      expect_second_gradient(make_problem(e, seed));
    }
  });
}

// The first gradient has the same bits with and without create_graph.
TEST(AllOpsSecondGradient, RecordingDoesNotChangeTheFirst) {
  for_every_example([](const Example& e) {
    if (!differentiable(*e.op)) return;
    const Problem p = make_problem(e, 13);
    const Tensor plain = first_gradient(p, as_leaves(p.variables), false);
    const Tensor recorded = first_gradient(p, as_leaves(p.variables), true);
    ASSERT_EQ(plain.defined(), recorded.defined());
    if (!plain.defined()) return;
    EXPECT_TRUE(bit_equal(plain.detach(), recorded.detach()));
  });
}

// After the last handle is gone, the tape is empty: gradients with history do not keep each other alive.
TEST(AllOpsSecondGradient, LeavesNothingBehind) {
  for_every_example([](const Example& e) {
    if (!differentiable(*e.op)) return;
    {
      const Problem p = make_problem(e, 14);
      first_gradient(p, as_leaves(p.variables), true);
    }
    EXPECT_EQ(tape_stats().nodes, 0);
    EXPECT_EQ(tape_stats().saved_bytes, 0);
  });
}

}  // namespace
}  // namespace tapedeck::testing
