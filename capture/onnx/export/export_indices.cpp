// Ops that read or write elements at places that are values themselves, sorts, and running sums.
#include <tapedeck/capture/onnx/export/export_ops.h>

#include <tapedeck/kernels/attrs/index.h>
#include <tapedeck/kernels/attrs/scan.h>
#include <tapedeck/kernels/attrs/sort.h>

#include <functional>
#include <limits>

namespace tapedeck::onnx {

namespace {

using N = NodeExport;

// ---- reading ----

Terms gather(N& n) {
  return {n.add("GatherElements", {n[0], n[1]}, n.in(0).dtype, {{"axis", n.attributes<AxisAttrs>().axis}})};
}

Terms gather_nd(N& n) {
  return {n.add("GatherND", {n[0], n[1].as(DType::i64)}, n.in(0).dtype,
                {{"batch_dims", n.attributes<GatherNdAttrs>().batch_dims}})};
}

Term flat(const Term& x) { return reshaped(x, Integers{-1}); }

// The number of results is that of the graph. A program that runs the model has it from the data, and an importer from the type
// of the result.
Terms nonzero(N& n) {
  if (n.in(0).shape.rank == 0) n.refuse("ONNX takes a number without dimensions for a list of one");
  const Type found{DType::i64, {n.out().shape[1], n.out().shape[0]}};
  return {transposed(n.add_stated("NonZero", {n[0]}, found), {1, 0})};
}

// ONNX of this version has no Compress of bf16.
Terms masked_select(N& n) {
  const DType own = n.in(0).dtype, computed = own == DType::bf16 ? DType::f32 : own;
  const Type found{computed, n.out().shape};
  return {n.add_stated("Compress", {flat(n[0].as(computed)), flat(n[1])}, found, {{"axis", 0}}).as(own)};
}

// ---- writing ----

Terms scatter(N& n, bool adds) { return {scattered(n[0], n[1], n[2], n.attributes<AxisAttrs>().axis, adds)}; }

Terms scatter_reduce(N& n) {
  const auto& a = n.attributes<ScatterReduceAttrs>();
  return {n.add("ScatterElements", {n[0], n[1], n[2]}, n.in(0).dtype, {{"axis", a.axis}, {"reduction", a.reduction.str()}})};
}

// Each slice of src has one place; each of its elements gets it.
Terms index_add(N& n) {
  const std::int64_t axis = n.attributes<AxisAttrs>().axis;
  Integers line(static_cast<std::size_t>(n.in(2).shape.rank), 1);
  line[static_cast<std::size_t>(axis)] = n.in(1).shape[0];
  return {scattered(n[0], expanded(reshaped(n[1], line), n.in(2).shape), n[2], axis, true)};
}

Terms embedding_grad(N& n) {
  Integers tuples = list_of(n.in(0).shape);
  tuples.push_back(1);
  const Term places = reshaped(n[0].as(DType::i64), tuples), zeros = n.filled(n.out().shape, 0, n.out().dtype);
  return {n.add("ScatterND", {zeros, places, n[1]}, n.out().dtype, {{"reduction", std::string("add")}})};
}

// Tuples for all dimensions: those of the batch count themselves.
Terms scatter_nd(N& n) {
  const auto& a = n.attributes<ScatterNdAttrs>();
  Terms tuples;
  Integers shape = list_of(n.in(1).shape);
  shape.back() = 1;
  for (std::int64_t i = 0; i < a.batch_dims; ++i) {
    Integers line(shape.size(), 1);
    line[static_cast<std::size_t>(i)] = shape[static_cast<std::size_t>(i)];
    tuples.push_back(expanded(reshaped(counted(n, shape[static_cast<std::size_t>(i)]), line), shape_of(shape)));
  }
  tuples.push_back(n[1].as(DType::i64));
  const Term places = tuples.size() == 1 ? tuples[0] : joined(tuples, static_cast<std::int64_t>(shape.size()) - 1);
  return {n.add("ScatterND", {n[0], places, n[2]}, n.in(0).dtype, {{"reduction", a.reduction.str()}})};
}

// The k-th place at which the mask holds gets element k.
Terms masked_scatter(N& n) {
  if (n.in(2).numel() == 0) return {n[0].apply("Identity")};
  const Term count = n.add("CumSum", {flat(n[1]).as(DType::i64), n.integers({}, {0})}, DType::i64);
  const Term chosen = gathered(n[2], larger(count - 1, 0), 0);
  return {choose(n[1], reshaped(chosen, n.in(0).shape), n[0])};
}

Terms bincount(N& n) {
  const Term places = flat(n[0].as(DType::i64)), ones = n.filled({n.in(0).numel()}, 1, DType::i64);
  return {scattered(n.filled(n.out().shape, 0, DType::i64), places, ones, 0, true)};
}

// ---- order ----

// Values and places. Of equal elements ONNX takes the first one first, too.
Terms largest(const Term& x, std::int64_t k, std::int64_t axis, bool largest) {
  N& n = x.at();
  const DType own = x.dtype() == DType::boolean ? DType::u8 : x.dtype();
  const Terms results = n.add_several("TopK", {x.as(own), n.list({k})}, {own, DType::i64},
                                      {{"axis", axis}, {"largest", largest ? 1 : 0}, {"sorted", 1}});
  return {results[0].as(x.dtype()), results[1]};
}

Terms sort(N& n) {
  const auto& a = n.attributes<SortAttrs>();
  return largest(n[0], n.in(0).shape[static_cast<int>(a.axis)], a.axis, a.descending);
}

// Elements that are not sorted stand in the order of their places.
Terms topk(N& n) {
  const auto& a = n.attributes<TopkAttrs>();
  const Terms found = largest(n[0], a.k, a.axis, a.largest);
  if (a.sorted) return found;
  const Term places = largest(found[1], a.k, a.axis, false)[0];
  return {n.add("GatherElements", {n[0], places}, n.in(0).dtype, {{"axis", a.axis}}), places};
}

// The number of elements of the row that are less.
Terms searchsorted(N& n) {
  Integers row = list_of(n.in(0).shape), column = list_of(n.in(1).shape);
  if (row.size() > 1) row.insert(row.end() - 1, 1);
  column.push_back(1);
  const Term sorted = reshaped(n[0], row), values = reshaped(n[1], column);
  const Term before = n.attributes<SearchAttrs>().right ? sorted <= values : sorted < values;
  return {reduced("ReduceSum", before.as(DType::i64), {-1}, false)};
}

// ---- scans ----

Terms cumsum(N& n) {
  const auto& a = n.attributes<ScanAttrs>();
  return {n.add("CumSum", {n[0], n.integers({}, {a.axis})}, n.in(0).dtype,
                {{"exclusive", a.exclusive ? 1 : 0}, {"reverse", a.reverse ? 1 : 0}})};
}

// An axis, along which terms move towards its end, or towards its start.
struct Line {
  const Shape& shape;
  std::int64_t axis;
  bool reverse;
  std::int64_t size() const { return shape[static_cast<int>(axis)]; }
  Term moved(const Term& x, std::int64_t by, double fill) const {
    Integers before(static_cast<std::size_t>(shape.rank)), after = before;
    (reverse ? after : before)[static_cast<std::size_t>(axis)] = by;
    const Term rest = reverse ? part_of(x, axis, by, size()) : part_of(x, axis, 0, size() - by);
    return padded(rest, before, after, fill);
  }
};

// Running results by doubling: after k rounds each place has the result of the 2^k places up to it.
Terms doubled(Terms x, const Line& line, const std::function<Terms(const Terms& x, std::int64_t by)>& join) {
  for (std::int64_t by = 1; by < line.size(); by *= 2) x = join(x, by);
  return x;
}

Terms cumprod(N& n) {
  const auto& a = n.attributes<ScanAttrs>();
  const Line line{n.in(0).shape, a.axis, a.reverse};
  if (line.size() == 0) return {n[0].apply("Identity")};
  const Term start = a.exclusive ? line.moved(n[0], 1, 1) : n[0];
  return doubled({start}, line, [&](const Terms& x, std::int64_t by) { return Terms{x[0] * line.moved(x[0], by, 1)}; });
}

Terms linear_scan(N& n) {
  const auto& a = n.attributes<LinearScanAttrs>();
  const Line line{n.in(0).shape, a.axis, a.reverse};
  const Terms all = doubled({n[0], n[1]}, line, [&](const Terms& x, std::int64_t by) {
    return Terms{x[0] * line.moved(x[0], by, 1), x[1] + x[0] * line.moved(x[1], by, 0)};
  });
  return {all[1]};
}

// Infinities of one sign would give NaN as a difference.
Terms logcumsumexp(N& n) {
  const auto& a = n.attributes<LinearScanAttrs>();
  const Line line{n.in(0).shape, a.axis, a.reverse};
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return doubled({n[0]}, line, [&](const Terms& x, std::int64_t by) {
    const Term other = line.moved(x[0], by, -kInfinity), most = larger(x[0], other);
    const Term apart = choose(is(x[0], other), 0, magnitude_of(x[0] - other));
    return Terms{most + (-apart).apply("Softplus")};
  });
}

// Of equal elements the later one wins, and NaN wins over all.
Terms extreme_so_far(N& n, bool largest) {
  const Type& type = n.in(0);
  const Line line{type.shape, n.attributes<AxisAttrs>().axis, false};
  Integers along(static_cast<std::size_t>(type.shape.rank), 1);
  along[static_cast<std::size_t>(line.axis)] = line.size();
  const Term places = expanded(reshaped(counted(n, line.size()), along), type.shape);
  return doubled({n[0], places}, line, [&](const Terms& x, std::int64_t by) {
    const Term value = line.moved(x[0], by, 0), place = line.moved(x[1], by, -1);
    Term stays = largest ? x[0] >= value : x[0] <= value;
    if (is_floating(type.dtype)) {
      const Term is_nan = n.add("IsNaN", {x[0]}, DType::boolean), was_nan = n.add("IsNaN", {value}, DType::boolean);
      stays = either(both(stays, negated(was_nan)), is_nan);
    }
    stays = either(stays, place < 0);
    return Terms{choose(stays, x[0], value), choose(stays, x[1], place)};
  });
}

}  // namespace

std::vector<ExportOp> index_exports() {
  return {
      composed("gather", gather),
      composed("gather_nd", gather_nd),
      composed("index_select", [](N& n) { return Terms{gathered(n[0], n[1], n.attributes<AxisAttrs>().axis)}; }),
      composed("embedding", [](N& n) { return Terms{gathered(n[0], n[1], 0)}; }),
      composed("nonzero", nonzero),
      composed("masked_select", masked_select),
      composed("scatter", [](N& n) { return scatter(n, false); }),
      composed("scatter_add", [](N& n) { return scatter(n, true); }),
      composed("index_add", index_add),
      composed("embedding_grad", embedding_grad),
      composed("scatter_reduce", scatter_reduce),
      composed("scatter_nd", scatter_nd),
      composed("masked_scatter", masked_scatter),
      composed("bincount", bincount),
      composed("sort", sort),
      composed("argsort", [](N& n) { return Terms{sort(n)[1]}; }),
      composed("topk", topk),
      composed("searchsorted", searchsorted),
      composed("cumsum", cumsum),
      composed("cumprod", cumprod),
      composed("linear_scan", linear_scan),
      composed("logcumsumexp", logcumsumexp),
      composed("cummax", [](N& n) { return extreme_so_far(n, true); }),
      composed("cummin", [](N& n) { return extreme_so_far(n, false); }),
  };
}

}  // namespace tapedeck::onnx
