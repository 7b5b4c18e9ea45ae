// References of the random ops: one Philox block at a time, in the layout that kernels/philox.h documents.
#include <tapedeck/tests/engine/reference.h>

#include <tapedeck/kernels/attrs/random.h>
#include <tapedeck/kernels/philox.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::testing {
namespace {

using kernels::RandomStream;

RandomStream stream_of(const Array& rng, Name path) {
  return kernels::random_stream(static_cast<std::int64_t>(rng.v[0]), static_cast<std::int64_t>(rng.v[1]), path.view());
}

std::uint32_t word(const RandomStream& stream, std::size_t i) { return stream.block(i / 4).word[i % 4]; }

std::uint64_t bits64(const RandomStream& stream, std::size_t i) {
  return std::uint64_t{word(stream, 2 * i + 1)} << 32 | word(stream, 2 * i);
}

// Element i of a draw of this dtype, in [0, 1).
double fraction(const RandomStream& stream, std::size_t i, DType dtype) {
  if (dtype == DType::f64) return static_cast<double>(bits64(stream, i) >> 11) * 0x1p-53;
  return static_cast<double>(word(stream, i) >> 8) * 0x1p-24;
}

const AddReference kUniform("uniform", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<RandomAttrs>(e);
  const RandomStream stream = stream_of(x[0], a.path);
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = a.low + (a.high - a.low) * fraction(stream, i, a.dtype);
  return std::vector<Array>{y};
});

const AddReference kNormal("normal", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<RandomAttrs>(e);
  const RandomStream stream = stream_of(x[0], a.path);
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    const double u = fraction(stream, i / 2 * 2, a.dtype), turn = 2 * M_PI * fraction(stream, i / 2 * 2 + 1, a.dtype);
    y.v[i] = a.low + a.high * std::sqrt(-2 * std::log(1 - u)) * (i % 2 ? std::sin(turn) : std::cos(turn));
  }
  return std::vector<Array>{y};
});

// The quantile, by bisection of the distribution function.
double truncated_quantile(double share, double low, double high) {
  auto mass = [](double z) { return 0.5 * std::erfc(-z * std::sqrt(0.5)); };
  const bool right = low > 0;  // then measured from the right, where the mass is small and exact
  auto below = [&](double z) { return right ? mass(-low) - mass(-z) : mass(z) - mass(low); };
  double from = low, to = high;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (from + to);
    (below(middle) < share * below(high) ? from : to) = middle;
  }
  return from;
}

const AddReference kTruncNormal("trunc_normal",
                                [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
                                  const auto& a = attributes_of<TruncNormalAttrs>(e);
                                  const RandomStream stream = stream_of(x[0], a.path);
                                  Array y = blank(out[0]);
                                  const double low = (a.low - a.mean) / a.deviation, high = (a.high - a.mean) / a.deviation;
                                  for (std::size_t i = 0; i < y.v.size(); ++i) {
                                    const double u = fraction(stream, i, a.dtype);
                                    y.v[i] = a.mean + a.deviation * truncated_quantile(low > 0 ? 1 - u : u, low, high);
                                  }
                                  return std::vector<Array>{y};
                                });

const AddReference kRandint("randint", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<RandintAttrs>(e);
  const RandomStream stream = stream_of(x[0], a.path);
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) {
    // exact, because the mantissa has 64 bits
    const long double share = static_cast<long double>(bits64(stream, i)) * 0x1p-64L;
    y.v[i] = static_cast<double>(a.low) + static_cast<double>(std::floor(share * static_cast<long double>(a.high - a.low)));
  }
  return std::vector<Array>{y};
});

const AddReference kRandperm("randperm", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<RandpermAttrs>(e);
  const RandomStream stream = stream_of(x[0], a.path);
  Array y{out[0], {}};
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.n); ++i) {
    const auto place =
        static_cast<std::size_t>(static_cast<long double>(bits64(stream, i)) * 0x1p-64L * static_cast<long double>(i + 1));
    y.v.push_back(static_cast<double>(i));
    std::swap(y.v[place], y.v.back());
  }
  return std::vector<Array>{y};
});

const AddReference kBernoulli("bernoulli", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const RandomStream stream = stream_of(x[1], attributes_of<BernoulliAttrs>(e).path);
  Array y = blank(out[0]);
  for (std::size_t i = 0; i < y.v.size(); ++i) y.v[i] = fraction(stream, i, out[0].dtype) < x[0].v[i];
  return std::vector<Array>{y};
});

// With replacement, walks along the row until the share is used up. Without replacement, sorts the classes by random arrival
// times.
const AddReference kMultinomial("multinomial", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const auto& a = attributes_of<MultinomialAttrs>(e);
  const RandomStream stream = stream_of(x[1], a.path);
  const auto classes = static_cast<std::size_t>(x[0].type.shape[x[0].type.shape.rank - 1]),
             n = static_cast<std::size_t>(a.samples);
  Array y{out[0], {}};
  for (std::size_t row = 0; row < x[0].v.size() / classes; ++row) {
    const double* p = x[0].v.data() + row * classes;
    double total = 0;
    for (std::size_t k = 0; k < classes; ++k) total += p[k];
    std::vector<std::pair<double, double>> arrivals;
    for (std::size_t k = 0; k < classes; ++k)
      arrivals.emplace_back(-std::log(1 - fraction(stream, row * classes + k, DType::f64)) / p[k], static_cast<double>(k));
    std::sort(arrivals.begin(), arrivals.end());
    for (std::size_t i = 0; i < n; ++i) {
      std::size_t k = 0;
      for (double left = fraction(stream, row * n + i, DType::f64) * total - p[0]; left >= 0; left -= p[++k]) {
      }
      y.v.push_back(a.replacement ? static_cast<double>(k) : arrivals[i].second);
    }
  }
  return std::vector<Array>{y};
});

Reference dropping(double (*value)(double x, double p, bool kept)) {
  return [value](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
    const auto& a = attributes_of<DropoutAttrs>(e);
    const RandomStream stream = stream_of(x[1], a.path);
    Array y = blank(out[0]);
    for (std::size_t i = 0; i < y.v.size(); ++i)
      y.v[i] = value(x[0].v[i], a.p, fraction(stream, i, DType::f32) >= static_cast<double>(static_cast<float>(a.p)));
    return std::vector<Array>{y};
  };
}

const AddReference kDropout("dropout", dropping([](double x, double p, bool kept) { return kept ? x / (1 - p) : 0; }));

const AddReference kAlphaDropout("alpha_dropout", dropping([](double x, double p, bool kept) {
                                   const double floor = -1.0507009873554805 * 1.6732632423543772;
                                   const double scale = 1 / std::sqrt((1 - p) * (1 + p * floor * floor));
                                   return scale * ((kept ? x : floor) - floor * p);
                                 }));

const AddReference kNext("rng_next", [](const Example&, const std::vector<Array>& x, const std::vector<Type>& out) {
  return std::vector<Array>{{out[0], {x[0].v[0], x[0].v[1] + 1}}};
});

const AddReference kFoldIn("fold_in", [](const Example& e, const std::vector<Array>& x, const std::vector<Type>& out) {
  const RandomStream stream = stream_of(x[0], attributes_of<FoldInAttrs>(e).path);
  const auto i = static_cast<std::size_t>(x[1].v[0]);
  const double seed =
      static_cast<double>(word(stream, 4 * i)) + static_cast<double>(word(stream, 4 * i + 1) % (1u << 21)) * 0x1p32;
  return std::vector<Array>{{out[0], {seed, x[0].v[1]}}};
});

const AddReference kCount("count_next", [](const Example&, const std::vector<Array>& x, const std::vector<Type>&) {
  const bool counts = x.size() < 2 || x[1].v[0] != 0;  // an optional operand says whether the step counts
  return std::vector<Array>{{x[0].type, {x[0].v[0] + (counts ? 1 : 0)}}};
});

}  // namespace
}  // namespace tapedeck::testing
