#include <tapedeck/engine/nn/affine.h>
#include <tapedeck/engine/nn/attention.h>
#include <tapedeck/engine/nn/hooks.h>
#include <tapedeck/engine/nn/rows.h>

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tapedeck {
namespace {

std::int64_t checked_heads(std::int64_t size, std::int64_t heads) {
  if (heads < 1 || size % heads != 0)
    throw UsageError(fmt::format("attention: a size of {} does not fall into {} heads", size, heads));
  return heads;
}

// t [b,n,size] cut into heads: [b,heads,n,size/heads].
Tensor in_heads(const Tensor& t, std::int64_t heads) {
  return transpose(reshape(t, {t.size(0), t.size(1), heads, t.size(2) / heads}), {0, 2, 1, 3});
}

void require_rows(const char* what, const Tensor& t, std::int64_t size, Site site) {
  if (!t.defined()) throw TypeError(error_text("attention", fmt::format("the {} is undefined", what), site));
  if (t.rank() != 3 || t.size(2) != size)
    throw TypeError(error_text("attention",
                               fmt::format("the {} must be [batch,length,{}], not {}", what, size, to_string(t.type())), site));
}

}  // namespace

MultiheadAttention::MultiheadAttention(Module& parent, const std::string& name, std::int64_t size, std::int64_t head_count,
                                       MultiheadOptions o)
    : Module(parent, name),
      in_weight(parameter("in_weight", initial_uniform(*this, "in_weight", {size, 3 * size}, 4 * size, std::sqrt(6.0)))),
      in_bias(o.bias ? parameter("in_bias", zeros({3 * size})) : Tensor()),
      out_weight(parameter("out_weight", initial_uniform(*this, "out_weight", {size, size}, size))),
      out_bias(o.bias ? parameter("out_bias", zeros({size})) : Tensor()),
      heads(checked_heads(size, head_count)),
      options(o) {}

// Computes `count` of the three projections (queries, keys, values), from number `first` on: [b,n,count size].
Tensor MultiheadAttention::projected(const Tensor& x, std::int64_t first, std::int64_t count) const {
  const std::int64_t size = in_weight.size(0);
  const bool all = count == 3;
  const Tensor weight = all ? in_weight : slice(in_weight, 1, first * size, (first + count) * size);
  if (!in_bias.defined()) return rows_like(matmul(as_rows(x), weight), x);
  return rows_like(affine(as_rows(x), weight, all ? in_bias : slice(in_bias, 0, first * size, (first + count) * size)), x);
}

Tensor MultiheadAttention::attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  const AttentionOptions how{mask, options.causal};
  const Tensor y = scaled_dot_product_attention(in_heads(q, heads), in_heads(k, heads), in_heads(v, heads), how);
  const Tensor joined = reshape(transpose(y, {0, 2, 1, 3}), {q.size(0) * q.size(1), in_weight.size(0)});
  return rows_like(affine(joined, out_weight, out_bias), q);
}

Tensor MultiheadAttention::operator()(const Arg& x, const Tensor& mask) {
  return hooked(*this, x.site(), std::array{x.tensor(), mask}, [&](const std::array<Tensor, 2>& in) {
    const std::int64_t size = in_weight.size(0);
    require_rows("operand", in[0], size, x.site());
    const Tensor qkv = projected(in[0], 0, 3);
    return attend(slice(qkv, 2, 0, size), slice(qkv, 2, size, 2 * size), slice(qkv, 2, 2 * size, 3 * size), in[1]);
  });
}

Tensor MultiheadAttention::operator()(const Arg& x, const Tensor& memory, const Tensor& mask) {
  return hooked(*this, x.site(), std::array{x.tensor(), memory, mask}, [&](const std::array<Tensor, 3>& in) {
    const std::int64_t size = in_weight.size(0);
    require_rows("operand", in[0], size, x.site());
    require_rows("memory", in[1], size, x.site());
    const Tensor kv = projected(in[1], 1, 2);
    return attend(projected(in[0], 0, 1), slice(kv, 2, 0, size), slice(kv, 2, size, 2 * size), in[2]);
  });
}

TransformerBlock::TransformerBlock(Module& parent, const std::string& name, std::int64_t size, TransformerOptions o)
    : Module(parent, name),
      options(o),
      norm1(*this, "norm1", size),
      attention(*this, "attention", size, o.heads, {.causal = o.causal}),
      norm2(*this, "norm2", size),
      fc1(*this, "fc1", size, o.hidden > 0 ? o.hidden : 4 * size),
      fc2(*this, "fc2", o.hidden > 0 ? o.hidden : 4 * size, size),
      drop1(*this, "drop1", o.dropout),
      drop2(*this, "drop2", o.dropout) {}

Tensor TransformerBlock::operator()(const Arg& operand, const Tensor& mask) {
  return hooked(*this, operand.site(), std::array{operand.tensor(), mask}, [&](const std::array<Tensor, 2>& in) {
    const Arg x(in[0], operand.site().file, operand.site().line);
    const Tensor attended = add(x, drop1(attention(norm1(x), in[1])));
    const Tensor hidden = options.activation(fc1(as_rows(norm2(attended))));
    return add(attended, rows_like(drop2(fc2(hidden)), attended));
  });
}

}  // namespace tapedeck
