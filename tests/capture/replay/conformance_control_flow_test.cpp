// Cases of SEEDS.md about loops and branches. Each program runs eagerly, captured and replayed; the results are compared
// with numbers of the case.
#include <tapedeck/capture/planner/region_plans.h>

#include <tapedeck/tests/capture/replay/control_check.h>

#include <cmath>

namespace tapedeck::testing {
namespace {

Tensor number(double x) { return scalar(x).requires_grad(true); }

// Multiplies x by 1.11 until it has counted `passes` iterations.
LoopResult power_loop(const Tensor& x, const Tensor& y, double passes) {
  return while_loop([passes](const Tensors& c) { return less(c[1], passes); },
                    [&](const Tensors& c) {
                      return Tensors{c[0] * y, c[1] + 1.0};
                    },
                    {x, scalar(0)});
}

TEST(WhileCases, T14_BackwardOfALoop) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        const Tensor y = power_loop(in[0], scalar(1.11), 5).carried[0];
        return Tensors{y, gradients({y}, {in[0]})[0]};
      },
      {number(0.34)}, &eager);
  EXPECT_NEAR(eager[1].item(), 1.6850582, 1e-6);
}

// Chooses among four branches: a constant, the operand itself, .5 x + .5, a constant.
Tensor case_of(const Tensor& x) {
  auto pick = [&](double below, const std::function<Tensor()>& a, const std::function<Tensor()>& b) {
    return cond(
        less(x, below), [&](const Tensors&) { return Tensors{a()}; }, [&](const Tensors&) { return Tensors{b()}; })[0];
  };
  return pick(
      0, [&] { return full({}, 0); },
      [&] {
        return pick(
            1, [&] { return x * 1.0; },
            [&] {
              return pick(
                  2, [&] { return x * 0.5 + 0.5; }, [&] { return full({}, 1.5); });
            });
      });
}

void expect_case(double x, double y, double dx) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        const Tensor result = case_of(in[0] * 1.0);
        return Tensors{result, gradients({result + in[0] * 0.0}, {in[0]})[0]};
      },
      {number(x)}, &eager);
  EXPECT_NEAR(eager[0].item(), y, 1e-6);
  EXPECT_NEAR(eager[1].item(), dx, 1e-6);
}

TEST(BranchCases, T16_AConstantBranchHasNoGradient) { expect_case(-1, 0, 0); }
TEST(BranchCases, T17_ABranchThatPassesThrough) { expect_case(0.76, 0.76, 1); }
TEST(BranchCases, T18_ABranchThatComputes) { expect_case(1.226, 0.5 * 1.226 + 0.5, 0.5); }

TEST(BranchCases, T19_FourInputsInOrderOnOneTape) {
  expect_case(2.1, 1.5, 0);
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        Tensors results;
        Tensor total = in[0] * 0.0;
        for (double x : {-1.0, 0.76, 1.226, 2.1}) total = total + (results.emplace_back(case_of(in[0] + x)));
        results.push_back(gradients({total}, {in[0]})[0]);
        return results;
      },
      {number(0)}, &eager);
  EXPECT_NEAR(eager[4].item(), 0 + 1 + 0.5 + 0, 1e-6);
}

TEST(WhileCases, T51_APowerInALoopAndAroundIt) {
  Tensors eager;
  check_program(
      [](const Tensors& in) {
        // Computes x^5 y: each iteration multiplies the carried y by x.
        const Tensor p = while_loop([](const Tensors& c) { return less(c[1], 5.0); },
                                    [&](const Tensors& c) {
                                      return Tensors{c[0] * in[0], c[1] + 1.0};
                                    },
                                    {in[1], scalar(0)})
                             .carried[0];
        return Tensors{p, in[2] * p + in[2]};
      },
      {scalar(0.92), scalar(3.2), scalar(1.2)}, &eager);
  EXPECT_NEAR(eager[0].item(), 2.1090609, 1e-6);
  EXPECT_NEAR(eager[1].item(), 3.7308730, 1e-6);
}

TEST(BranchCases, T53_BranchesByNumberShareTheirMemory) {
  const double x = 1.1;
  const std::function<Tensor(const Tensor&)> branches[5] = {
      [](const Tensor& v) { return exp(v * -2.0); }, [](const Tensor& v) { return log(v); },
      [](const Tensor& v) { return v - 0.2; }, [](const Tensor& v) { return 1.0 / (v + v); },
      [](const Tensor& v) { return v * 1001.0; }};
  const double wanted[5] = {std::exp(-2.2), std::log(1.1), 0.9, 1 / 2.2, 1.1 * 1001};
  for (int taken = 0; taken < 5; ++taken) {
    Tensors eager;
    check_program(
        [&](const Tensors& in) {
          std::function<Tensor(int)> from = [&](int k) {
            if (k == 4) return branches[4](in[0]);
            return cond(
                equal(in[1], static_cast<double>(k)), [&](const Tensors&) { return Tensors{branches[k](in[0])}; },
                [&](const Tensors&) { return Tensors{from(k + 1)}; })[0];
          };
          return Tensors{from(0)};
        },
        {scalar(x), scalar(taken)}, &eager);
    EXPECT_NEAR(eager[0].item(), wanted[taken], 1e-3 * (1 + wanted[taken]));
  }
}

// Each of `branches` branches has an intermediate value of 4 KiB. The node's workspace must hold only one of them.
void expect_shared_intermediates(int branches) {
  const Graph g = check_program(
      [branches](const Tensors& in) {
        const std::function<Tensors(int)> from = [&](int k) {
          const auto chain = [&in, k](const Tensors&) { return Tensors{sum(exp(exp(in[0] * (0.5 / (k + 1)))))}; };
          if (k + 1 == branches) return chain({});
          return cond(less(sum(in[0]), k + 0.5), chain, [&](const Tensors&) { return from(k + 1); });
        };
        return from(0);
      },
      {full({1024}, 0.5)});
  int seen = 0;
  const std::vector<std::int64_t> workspace = node_workspaces(g);
  for (NodeId n = 0; n < g.node_count(); ++n)
    if (g.nodes[n].n_regions == 2) {
      ++seen;
      EXPECT_GE(workspace[n], 4096);
      EXPECT_LT(workspace[n], 2 * 4096 + 1024) << branches << " branches";
    }
  EXPECT_EQ(seen, 1) << "the others are within it";
}

TEST(BranchCases, T53_IntermediatesOfDifferentBranchesShareMemory) {
  for (int branches : {2, 4}) expect_shared_intermediates(branches);
}

// Three carried values rotate in every iteration. For any number of iterations the results must equal those of a plain C++
// loop.
TEST(WhileCases, T54_RotatingCarriedValues) {
  for (int passes = 0; passes < 8; ++passes) {
    Tensors eager;
    check_program(
        [passes](const Tensors& in) {
          const LoopResult r = while_loop([passes](const Tensors& c) { return less(c[3], static_cast<double>(passes)); },
                                          [](const Tensors& c) {
                                            return Tensors{c[1], c[2], c[0] + c[1], c[3] + 1.0};
                                          },
                                          {in[0], in[1], in[2], scalar(0)});
          const Tensor all = r.carried[0] + r.carried[1] * 2.0 + r.carried[2] * 3.0;
          return Tensors{r.carried[0], r.carried[1], r.carried[2], gradients({all}, {in[0]})[0]};
        },
        {number(1), number(2), number(3)}, &eager);
    double x[3] = {1, 2, 3}, dx[3] = {1, 0, 0};  // x, and its derivative with respect to the first value
    for (int i = 0; i < passes; ++i)
      for (double* v : {x, dx}) {
        const double next = v[0] + v[1];
        v[0] = v[1], v[1] = v[2], v[2] = next;
      }
    for (int k = 0; k < 3; ++k) EXPECT_EQ(eager[k].item(), x[k]) << passes << " passes";
    EXPECT_EQ(eager[3].item(), dx[0] + 2 * dx[1] + 3 * dx[2]) << passes << " passes";
  }
}

// Carries i and a sum s: while i <= limit, s += i and i grows by one.
LoopResult summing(const Tensor& i, const Tensor& s, double limit, std::int64_t at_most = -1, bool stacked = false) {
  LoopOptions options;
  options.max_trips = at_most;
  return while_loop([limit](const Tensors& c) { return less_equal(c[0], limit); },
                    [stacked](const Tensors& c) {
                      Tensors next{c[0] + 1.0, c[1] + c[0]};
                      if (stacked) next.push_back(c[0]);
                      return next;
                    },
                    {i, s}, {}, options);
}

TEST(WhileCases, T119_LoopsThatCountAndSum) {
  const struct {
    double first, limit, i, s;
  } cases[] = {{1, 5, 6, 15}, {1, 1000, 1001, 500500}, {1, 0, 1, 0}, {1, 100, 101, 5050}};
  for (const auto& c : cases) {
    Tensors eager;
    check_program([&](const Tensors& in) { return summing(in[0], in[1], c.limit).carried; }, {scalar(c.first), scalar(0)},
                  &eager);
    EXPECT_EQ(eager[0].item(), c.i);
    EXPECT_EQ(eager[1].item(), c.s);
  }
  Tensors eager;
  check_program([](const Tensors& in) { return summing(in[0], in[1], 100, 100, true).stacked; }, {scalar(1), scalar(0)},
                &eager);
  const std::vector<float> counted = eager[0].to_vector<float>();
  ASSERT_EQ(counted.size(), 100u);
  for (std::size_t k = 0; k < counted.size(); ++k) EXPECT_EQ(counted[k], static_cast<float>(k + 1));
}

}  // namespace
}  // namespace tapedeck::testing
