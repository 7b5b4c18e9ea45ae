// Draws, for the option that lets ONNX draw numbers of its own. Draws that give equal numbers in Tapedeck are one draw in the
// model. So backward reads the mask that forward has made:
//
//       %y = dropout(%x, %rng) {p=0.1, path="drop#0"}     y, mask = Dropout(x, 0.1, true)
//       %d = dropout(%g, %rng) {p=0.1, path="drop#0"}     d = Where(mask, g, 0) * (1 / 0.9)
//
// A draw inside a region stands in the outermost graph, so that other regions can read it: of a branch once, of a scan for all
// passes at once, stacked.
#include <tapedeck/capture/onnx/export/export_ops.h>
#include <tapedeck/capture/onnx/export/random_source.h>

#include <tapedeck/kernels/alpha_dropout.h>
#include <tapedeck/kernels/attrs/random.h>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

constexpr const char* kElsewhere = "another loop draws the same numbers, and ONNX would draw others";

void require_option(const N& n) {
  if (!n.model().draws_others())
    n.refuse("random numbers of Tapedeck have no counterpart in ONNX; --random lets the model draw others");
}

struct Draw {
  const char* op;  // RandomUniform, RandomNormal
  Attributes attributes;
  DType dtype;
  Shape shape;
  int state;  // the operand that is the random state
  Name path;
};

// Two draws of one op with equal keys are equal.
std::string key_of(const RandomSource& source, const Draw& d) {
  std::string key = fmt::format("{} {} {} {}", source.name, source.trips, d.path.view(), to_string(Type{d.dtype, d.shape}));
  for (const Named& a : d.attributes) key += fmt::format(" {}={}", a.name, a.value.real);
  return key;
}

RandomSource source_of(N& n, int state) {
  const std::optional<RandomSource> source = random_source(n.model(), n.value(state));
  if (!source) n.refuse(kElsewhere);
  return *source;
}

Term draw_now(N& n, const Draw& d, Integers sizes) {
  Attributes attributes = d.attributes;
  attributes.emplace_back("shape", sizes);
  attributes.emplace_back("dtype", static_cast<std::int64_t>(element_type_of(d.dtype)));
  return n.add(d.op, {}, d.dtype, attributes);
}

// The numbers of a draw, which may have been drawn before. `is_result`: they are the result of the node.
Term numbers(N& n, const Draw& d, bool is_result = false) {
  const RandomSource source = source_of(n, d.state);
  const bool stacked = source.loops == 1 && source.trips > 0, outermost = n.model().outer() == nullptr;
  const bool for_all = source.loops == 0 || stacked;
  Integers sizes = list_of(d.shape);
  if (stacked) sizes.insert(sizes.begin(), source.trips);
  const auto [found, is_new] = n.model().drawn().try_emplace(std::string(d.op) + " " + key_of(source, d));
  Drawn& drawn = found->second;
  if (!is_new && drawn.graph != kEverywhere && drawn.graph != n.model().id()) n.refuse(kElsewhere);
  Term result;
  if (is_new && for_all && !outermost) {
    result = n.in_outermost([&] { return draw_now(n, d, sizes); });
    drawn = {result.name(), kEverywhere};
  } else if (is_new) {
    result = draw_now(n, d, sizes);
    drawn = {is_result ? n.result_name() : result.name(), outermost ? kEverywhere : n.model().id()};
  } else {
    result = Term(n, drawn.name, d.dtype);
  }
  return stacked ? gathered(result, Term(n, source.pass, DType::i64), 0) : result;
}

// Uniform in [0, 1).
Term noise(N& n, const Shape& shape, DType dtype, int state, Name path) {
  return numbers(n, {"RandomUniform", {{"low", 0.0}, {"high", 1.0}}, dtype, shape, state, path});
}

// ---- draws from a distribution ----

DType at_least_f32(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Terms draw(N& n, const char* op, const char* low, const char* high) {
  require_option(n);
  const auto& a = n.attributes<RandomAttrs>();
  const DType wide = at_least_f32(a.dtype);
  return {numbers(n, {op, {{low, a.low}, {high, a.high}}, wide, n.out().shape, 0, a.path}, wide == a.dtype).as(a.dtype)};
}

Terms bernoulli(N& n) {
  require_option(n);
  const DType wide = at_least_f32(n.in(0).dtype);
  const Term u = noise(n, n.in(0).shape, wide, 1, n.attributes<BernoulliAttrs>().path);
  return {(u < n[0].as(wide)).as(n.in(0).dtype)};
}

Terms randint(N& n) {
  require_option(n);
  const auto& a = n.attributes<RandintAttrs>();
  const double count = static_cast<double>(a.high) - static_cast<double>(a.low);
  if (count > 0x1p53 || static_cast<double>(a.high) > 0x1p53 || static_cast<double>(a.low) < -0x1p53)
    n.refuse("its integers do not fit into f64");
  const Term u = noise(n, n.out().shape, DType::f64, 0, a.path);
  return {(smaller((u * count).apply("Floor"), count - 1) + static_cast<double>(a.low)).as(a.dtype)};
}

// The places of the largest elements of the last axis, the largest first.
Term largest_places(const Term& x, std::int64_t count) {
  return x.at().add_several("TopK", {x, x.at().list({count})}, {x.dtype(), DType::i64}, {{"axis", -1}})[1];
}

Terms randperm(N& n) {
  require_option(n);
  const auto& a = n.attributes<RandpermAttrs>();
  if (a.n == 0) return {n.filled(n.out().shape, 0, a.dtype)};
  return {largest_places(noise(n, n.out().shape, DType::f64, 0, a.path), a.n).as(a.dtype)};
}

// The class whose logarithm of the probability, plus noise of Gumbel, is the largest. Without replacement these are the
// samples.
Terms multinomial(N& n) {
  require_option(n);
  const auto& a = n.attributes<MultinomialAttrs>();
  if (n.out().numel() == 0) return {n.filled(n.out().shape, 0, DType::i64)};
  Integers sizes = list_of(n.in(0).shape);
  if (a.replacement) sizes.insert(sizes.end() - 1, a.samples);
  constexpr double kSmallest = 0x1p-54;  // the logarithm of 0 would be -inf
  const Term u = larger(noise(n, shape_of(sizes), DType::f64, 1, a.path), kSmallest);
  Term chances = log_of(n[0].as(DType::f64));
  if (a.replacement) {
    Integers line = sizes;
    line[line.size() - 2] = 1;
    chances = reshaped(chances, line);
  }
  const Term score = chances - log_of(-log_of(u));
  if (!a.replacement) return {largest_places(score, a.samples)};
  return {n.add("ArgMax", {score}, DType::i64, {{"axis", -1}, {"keepdims", 0}})};
}

// ---- dropout ----

// A mask of the elements that stay. The first of the draws that make one mask is a Dropout, if it is in the outermost graph;
// *dropped is its result then.
Term mask_of(N& n, double p, Name path, Term* dropped = nullptr) {
  const Draw d{"RandomUniform", {{"low", 0.0}, {"high", 1.0}}, DType::f32, n.in(0).shape, 1, path};
  const std::string draw = key_of(source_of(n, d.state), d), key = fmt::format("mask {} {}", p, draw);
  auto& drawn = n.model().drawn();
  if (const auto found = drawn.find(key); found != drawn.end()) {
    n.model().keep_mask(found->second.name);
    return Term(n, found->second.name, DType::boolean);
  }
  if (dropped == nullptr || n.model().outer() != nullptr || drawn.count(std::string(d.op) + " " + draw) > 0)
    return numbers(n, d) < 1 - p;
  const Terms made =
      n.add_several("Dropout", {n[0], n.number(p, DType::f32), n.number(1, DType::boolean)}, {n.in(0).dtype, DType::boolean});
  drawn[key] = {made[1].name(), kEverywhere};
  n.model().add_mask(made[1].name());
  *dropped = made[0];
  return made[1];
}

Terms dropout(N& n) {
  require_option(n);
  const auto& a = n.attributes<DropoutAttrs>();
  if (a.p == 0) return {n[0].apply("Identity")};
  Term dropped;
  const Term stays = mask_of(n, a.p, a.path, &dropped);
  if (!dropped.name().empty()) return {dropped};
  return {choose(stays, n[0], 0) * (1 / (1 - a.p))};
}

Terms alpha_dropout(N& n) {
  require_option(n);
  const auto& a = n.attributes<DropoutAttrs>();
  const kernels::AlphaDropout line(a.p);
  return {choose(mask_of(n, a.p, a.path), n[0], kernels::kSeluFloor) * line.scale + line.shift};
}

// Draws do not read it.
Terms fold_in(N& n) {
  require_option(n);
  return {n[0].apply("Identity")};
}

}  // namespace

std::vector<ExportOp> random_exports() {
  return {
      composed("uniform", [](N& n) { return draw(n, "RandomUniform", "low", "high"); }),
      composed("normal", [](N& n) { return draw(n, "RandomNormal", "mean", "scale"); }),
      composed("bernoulli", bernoulli),
      composed("randint", randint),
      composed("randperm", randperm),
      composed("multinomial", multinomial),
      composed("dropout", dropout),
      composed("alpha_dropout", alpha_dropout),
      composed("fold_in", fold_in),
      refused("trunc_normal", "ONNX has no such distribution"),
  };
}

}  // namespace tapedeck::onnx
