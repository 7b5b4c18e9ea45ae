// Linear layers, einsum, and products that are made from einsum's parts.
//
// einsum gives each operand a list of indices, sums the indices that nothing later reads, and multiplies from left to right.
// Each product becomes one batched matmul, with the dimensions of each operand merged into three:
//
//       "bhqd,bhkd->bhqk"     batch bh, rows q, inner d, columns k:     [bh,q,d] x [bh,d,k] -> [bh,q,k]
#include <tapedeck/engine/ops/linear.h>

#include <tapedeck/engine/eager/vjp.h>
#include <tapedeck/engine/ir/infer.h>
#include <tapedeck/engine/ops/operands.h>
#include <tapedeck/engine/ops/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {
namespace {

// ---- linear ----

void infer_linear(Infer& f) {
  const Type &x = f.inputs[0], &w = f.inputs[1];
  infer_require_float(f, x);
  for (const Type& t : f.inputs)
    if (t.dtype != x.dtype) f.fail(fmt::format("operands differ in dtype: {} and {}", to_string(x), to_string(t)));
  if (w.shape.rank != 2) f.fail(fmt::format("weights need two dimensions, got {}", to_string(w)));
  if (x.shape.rank < 1) f.fail(fmt::format("needs at least one dimension, got {}", to_string(x)));
  if (x.shape[x.shape.rank - 1] != w.shape[0]) f.fail(fmt::format("inner sizes differ: {} x {}", to_string(x), to_string(w)));
  if (f.inputs.size() > 2 && f.inputs[2].shape != Shape{w.shape[1]})
    f.fail(fmt::format("bias {} does not fit weights {}", to_string(f.inputs[2]), to_string(w)));
  Type y = x;
  y.shape[y.shape.rank - 1] = w.shape[1];
  f.outputs.assign(1, y);
}

// Merges all dimensions except the last one.
Tensor as_matrix(const Tensor& t) {
  std::int64_t rows = 1;
  for (int d = 0; d + 1 < t.rank(); ++d) rows *= t.size(d);
  return t.rank() == 2 ? t : reshape(t, Shape{rows, t.size(-1)});
}

void vjp_linear(Vjp& b) {
  const Tensor dy = as_matrix(b.dy());
  if (b.needs(0)) b.dx(0, reshape(matmul(dy, transpose_last(b.x(1))), b.x(0).shape()));
  if (b.needs(1)) b.dx(1, matmul(transpose_last(as_matrix(b.x(0))), dy));
  if (b.n_inputs() > 2 && b.needs(2)) b.dx(2, sum(dy, {0}));
}

void require_rank(const char* name, const Tensor& t, int rank, Site site) {
  if (!t.defined()) throw TypeError(error_text(name, "an operand is undefined", site));
  if (t.rank() != rank)
    throw TypeError(
        error_text(name, fmt::format("needs {} dimension{}, got {}", rank, rank == 1 ? "" : "s", to_string(t.type())), site));
}

// ---- einsum ----
//
// An index is a number: the code of its letter, or for a dimension under an ellipsis kEllipsis plus its position from the
// right.

constexpr int kEllipsis = 1000;
using Indices = std::vector<int>;

// An operand, or a product of operands, with the index of each of its dimensions.
struct Term {
  Tensor t;
  Indices indices;
};

class Einsum {
 public:
  Einsum(std::string_view equation, Site site) : equation_(equation), site_(site) {}

  Tensor run(const std::vector<Tensor>& operands) {
    const Indices result = parse(operands);
    for (Term& term : terms_) drop_broadcast(term);
    Term left = sum_unneeded(terms_[0], result, 1);
    for (std::size_t k = 1; k < terms_.size(); ++k) {
      const Term right = sum_unneeded(terms_[k], result, k + 1, &left.indices);
      left = sum_unneeded(left, result, k + 1, &right.indices);
      left = contract(left, right, result, k + 1);
    }
    return in_order(left, result);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw TypeError(error_text("einsum", fmt::format("{} in '{}'", why, equation_), site_));
  }
  [[noreturn]] void fail_sizes(int index, std::int64_t a, std::int64_t b) const {
    fail(fmt::format("index '{}' has sizes {} and {}", text_of(index), a, b));
  }
  Arg arg(const Tensor& t) const { return at(t, site_); }
  static bool has(const Indices& list, int index) { return std::find(list.begin(), list.end(), index) != list.end(); }
  static std::string text_of(int index) { return index >= kEllipsis ? "..." : std::string(1, static_cast<char>(index)); }

  // ---- parsing the equation ----

  // The indices in the text of one operand. An ellipsis stands for `hidden` dimensions.
  Indices indices_of(std::string_view text, int hidden) const {
    Indices indices;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text.substr(i, 3) == "...") {
        for (int h = hidden - 1; h >= 0; --h) indices.push_back(kEllipsis + h);
        i += 2;
      } else {
        indices.push_back(text[i]);
      }
    }
    return indices;
  }

  // Checks that the text has only letters and at most one ellipsis. Returns the number of letters.
  int check_text(std::string_view text) const {
    int letters = 0;
    bool ellipsis = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z')) {
        ++letters;
      } else if (!ellipsis && text.substr(i, 3) == "...") {
        ellipsis = true;
        i += 2;
      } else {
        fail(fmt::format("unexpected '{}'", text[i]));
      }
    }
    return letters;
  }

  Indices parse(const std::vector<Tensor>& operands) {
    std::string text;
    for (char c : equation_)
      if (c != ' ') text += c;
    const std::size_t arrow = text.find("->");
    const std::string_view left = std::string_view(text).substr(0, arrow);
    std::size_t begin = 0;
    for (const Tensor& t : operands) {
      if (begin > left.size()) fail(fmt::format("{} operands are too many", operands.size()));
      const std::size_t comma = std::min(left.find(',', begin), left.size());
      add_term(left.substr(begin, comma - begin), t);
      begin = comma + 1;
    }
    if (begin <= left.size()) fail(fmt::format("{} operands are too few", operands.size()));
    return arrow == std::string::npos ? implicit_result() : explicit_result(std::string_view(text).substr(arrow + 2));
  }

  void add_term(std::string_view text, const Tensor& t) {
    if (!t.defined()) fail("an operand is undefined");
    const int letters = check_text(text), hidden = t.rank() - letters;
    const bool ellipsis = text.find("...") != std::string_view::npos;
    if (ellipsis ? hidden < 0 : hidden != 0) fail(fmt::format("'{}' does not fit {}", text, to_string(t.type())));
    hidden_ = std::max(hidden_, ellipsis ? hidden : 0);
    Term term{t, indices_of(text, hidden)};
    for (int index : term.indices) counts_.push_back(index);
    note_sizes(term);
    take_diagonals(term);
    terms_.push_back(std::move(term));
  }

  void note_sizes(const Term& term) {
    for (std::size_t d = 0; d < term.indices.size(); ++d) {
      const std::int64_t size = term.t.size(static_cast<int>(d));
      const auto known = std::find_if(sizes_.begin(), sizes_.end(), [&](const auto& s) { return s.first == term.indices[d]; });
      if (known == sizes_.end())
        sizes_.emplace_back(term.indices[d], size);
      else if (known->second == 1)
        known->second = size;
      else if (size != 1 && size != known->second)
        fail_sizes(term.indices[d], known->second, size);
    }
  }

  Indices implicit_result() const {
    Indices result, once;
    for (int h = hidden_ - 1; h >= 0; --h) result.push_back(kEllipsis + h);
    for (int index : counts_)
      if (index < kEllipsis && std::count(counts_.begin(), counts_.end(), index) == 1) once.push_back(index);
    std::sort(once.begin(), once.end());
    result.insert(result.end(), once.begin(), once.end());
    return result;
  }

  Indices explicit_result(std::string_view text) const {
    check_text(text);
    Indices result = indices_of(text, hidden_);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (!has(counts_, result[i])) fail(fmt::format("index '{}' of the result is no operand's", text_of(result[i])));
      if (std::find(result.begin() + static_cast<std::ptrdiff_t>(i) + 1, result.end(), result[i]) != result.end())
        fail(fmt::format("index '{}' occurs twice in the result", text_of(result[i])));
    }
    return result;
  }

  // ---- computing ----

  // If an index occurs twice in one operand, takes the diagonal of the two dimensions. The diagonal becomes the last
  // dimension.
  void take_diagonals(Term& term) const {
    for (std::size_t i = 0; i < term.indices.size(); ++i)
      for (std::size_t j = i + 1; j < term.indices.size(); ++j) {
        if (term.indices[i] != term.indices[j]) continue;
        const int a = static_cast<int>(i), b = static_cast<int>(j), index = term.indices[i];
        if (term.t.size(a) != term.t.size(b)) fail_sizes(index, term.t.size(a), term.t.size(b));
        term.t = diagonal(arg(term.t), 0, a, b);
        term.indices.erase(term.indices.begin() + b);
        term.indices.erase(term.indices.begin() + a);
        term.indices.push_back(index);
        return take_diagonals(term);
      }
  }

  // Whether the index is in the result or in an operand from number `next` on.
  bool needed(int index, const Indices& result, std::size_t next) const {
    if (has(result, index)) return true;
    for (std::size_t k = next; k < terms_.size(); ++k)
      if (has(terms_[k].indices, index)) return true;
    return false;
  }

  std::int64_t size_of(int index) const {
    return std::find_if(sizes_.begin(), sizes_.end(), [&](const auto& s) { return s.first == index; })->second;
  }

  // Drops dimensions of size 1 whose index has a larger size in another operand.
  void drop_broadcast(Term& term) const {
    Shape kept;
    Indices indices;
    for (std::size_t d = 0; d < term.indices.size(); ++d) {
      const std::int64_t size = term.t.size(static_cast<int>(d));
      if (size == 1 && size_of(term.indices[d]) != 1) continue;
      indices.push_back(term.indices[d]);
      kept.sizes[kept.rank++] = size;
    }
    if (kept.rank < term.t.rank()) term = {reshape(arg(term.t), kept), indices};
  }

  // Sums the dimensions whose index is in none of these: the result, an operand from `next` on, and `other`, the other side
  // of the next product.
  Term sum_unneeded(const Term& term, const Indices& result, std::size_t next, const Indices* other = nullptr) const {
    Term out{term.t, {}};
    Ints summed;
    for (std::size_t d = 0; d < term.indices.size(); ++d) {
      const int index = term.indices[d];
      if (needed(index, result, next) || (other && has(*other, index)))
        out.indices.push_back(index);
      else
        summed.push_back(static_cast<int>(d));
    }
    if (summed.size > 0) out.t = sum(arg(term.t), summed);
    return out;
  }

  // Orders the dimensions of the tensor in three groups, and merges each group into one dimension.
  Tensor merged(const Term& term, const Indices (&runs)[3], Shape* shape) const {
    Ints order;
    shape->rank = 3;
    for (int r = 0; r < 3; ++r) {
      shape->sizes[r] = 1;
      for (int index : runs[r]) {
        const auto d = std::find(term.indices.begin(), term.indices.end(), index) - term.indices.begin();
        order.push_back(d);
        shape->sizes[r] *= term.t.size(static_cast<int>(d));
      }
    }
    return reshape(arg(transposed(term.t, order)), *shape);
  }

  Tensor transposed(const Tensor& t, const Ints& order) const {
    for (int d = 0; d < order.size; ++d)
      if (order[d] != d) return transpose(arg(t), order);
    return t;
  }

  // Multiplies two terms. A common index that is needed later becomes a batch dimension. A common index that is not needed is
  // summed.
  Term contract(const Term& a, const Term& b, const Indices& result, std::size_t next) const {
    Indices batch, inner, rows, columns;
    for (int index : a.indices) (has(b.indices, index) ? (needed(index, result, next) ? batch : inner) : rows).push_back(index);
    for (int index : b.indices)
      if (!has(a.indices, index)) columns.push_back(index);
    Shape left_shape, right_shape;
    const Tensor left = merged(a, {batch, rows, inner}, &left_shape);
    const Tensor right = merged(b, {batch, inner, columns}, &right_shape);
    Term out;
    out.indices = batch;
    out.indices.insert(out.indices.end(), rows.begin(), rows.end());
    out.indices.insert(out.indices.end(), columns.begin(), columns.end());
    if (out.indices.size() > static_cast<std::size_t>(kMaxRank))
      fail(fmt::format("a product has more than {} dimensions", kMaxRank));
    Shape shape;
    for (int index : out.indices) {
      const Term& owner = has(a.indices, index) ? a : b;
      const auto d = std::find(owner.indices.begin(), owner.indices.end(), index) - owner.indices.begin();
      shape.sizes[shape.rank++] = owner.t.size(static_cast<int>(d));
    }
    out.t = reshape(arg(product(left, right, batch.empty(), inner.empty())), shape);
    return out;
  }

  // [b,m,k] x [b,k,n] -> [b,m,n], by the cheapest op that computes it.
  Tensor product(const Tensor& left, const Tensor& right, bool single, bool outer_product) const {
    if (outer_product) return mul(arg(left), right);  // [b,m,1] * [b,1,n]
    if (left.size(1) == 1 && right.size(2) == 1)      // a row times a column for each batch
      return sum(arg(mul(arg(left), transpose(arg(right), {0, 2, 1}))), {2}, true);
    if (!single) return matmul(arg(left), right);
    const Tensor a = reshape(arg(left), Shape{left.size(1), left.size(2)}),
                 b = reshape(arg(right), Shape{right.size(1), right.size(2)});
    return matmul(arg(a), b);
  }

  Tensor in_order(const Term& term, const Indices& result) const {
    Ints order;
    for (int index : result) {
      const auto d = std::find(term.indices.begin(), term.indices.end(), index) - term.indices.begin();
      order.push_back(d);
    }
    return transposed(term.t, order);
  }

  std::string_view equation_;
  Site site_;
  std::vector<Term> terms_;
  Indices counts_;                                   // each index of each operand, once for each time it occurs
  std::vector<std::pair<int, std::int64_t>> sizes_;  // the size of each index, after broadcasting
  int hidden_ = 0;                                   // the number of dimensions under the longest ellipsis
};

}  // namespace

Tensor linear(const Arg& x, const Tensor& w) { return apply(ops::linear, {&x.tensor(), &w}, nullptr, x.site()); }
Tensor linear(const Arg& x, const Tensor& w, const Tensor& bias) {
  return apply(ops::linear, {&x.tensor(), &w, &bias}, nullptr, x.site());
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Site site) {
  if (operands.empty()) throw TypeError(error_text("einsum", "needs at least one tensor", site));
  return Einsum(equation, site).run(operands);
}

Tensor dot(const Arg& a, const Tensor& b) {
  require_rank("dot", a.tensor(), 1, a.site());
  require_rank("dot", b, 1, a.site());
  return matmul(a, b);
}

Tensor outer(const Arg& a, const Tensor& b) {
  require_rank("outer", a.tensor(), 1, a.site());
  require_rank("outer", b, 1, a.site());
  return mul(at(reshape(a, Shape{a.tensor().numel(), 1}), a.site()), b);
}

Tensor bmm(const Arg& a, const Tensor& b) {
  require_rank("bmm", a.tensor(), 3, a.site());
  require_rank("bmm", b, 3, a.site());
  if (a.tensor().size(0) != b.size(0))
    throw TypeError(error_text(
        "bmm", fmt::format("batches differ: {} and {}", to_string(a.tensor().type()), to_string(b.type())), a.site()));
  return matmul(a, b);
}

Tensor tensordot(const Arg& a, const Tensor& b, int count) {
  if (!a.tensor().defined() || !b.defined()) throw TypeError(error_text("tensordot", "an operand is undefined", a.site()));
  if (count < 0 || count > a.tensor().rank() || count > b.rank())
    throw TypeError(error_text(
        "tensordot", fmt::format("cannot pair {} axes of {} and {}", count, to_string(a.tensor().type()), to_string(b.type())),
        a.site()));
  Ints axes_a, axes_b;
  for (int i = 0; i < count; ++i) axes_a.push_back(a.tensor().rank() - count + i), axes_b.push_back(i);
  return tensordot(a, b, axes_a, axes_b);
}

Tensor tensordot(const Arg& a, const Tensor& b, const Ints& axes_a, const Ints& axes_b) {
  if (!a.tensor().defined() || !b.defined()) throw TypeError(error_text("tensordot", "an operand is undefined", a.site()));
  if (axes_a.size != axes_b.size)
    throw TypeError(error_text("tensordot", fmt::format("{} axes for {}", axes_a.size, axes_b.size), a.site()));
  std::string left, right, result;
  for (int i = 0; i < a.tensor().rank(); ++i) left += static_cast<char>('a' + i);
  for (int i = 0; i < b.rank(); ++i) right += static_cast<char>('A' + i);
  for (int k = 0; k < axes_a.size; ++k) {
    const std::int64_t i = axes_a[k] < 0 ? axes_a[k] + a.tensor().rank() : axes_a[k],
                       j = axes_b[k] < 0 ? axes_b[k] + b.rank() : axes_b[k];
    if (!valid_axis(i, a.tensor().rank()) || !valid_axis(j, b.rank()) || right[j] >= 'a')
      throw TypeError(error_text("tensordot",
                                 fmt::format("cannot pair axis {} of {} with axis {} of {}", axes_a[k],
                                             to_string(a.tensor().type()), axes_b[k], to_string(b.type())),
                                 a.site()));
    right[j] = left[i];
  }
  for (char c : left)
    if (right.find(c) == std::string::npos) result += c;
  for (char c : right)
    if (left.find(c) == std::string::npos) result += c;
  return einsum(left + "," + right + "->" + result, {a.tensor(), b}, a.site());
}

Tensor trace(const Arg& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  return sum(at(diagonal(x, offset, axis1, axis2), x.site()), {-1});
}

}  // namespace tapedeck

#define TAPEDECK_DEFINE_OPS
#include <tapedeck/engine/ops/linear.h>
