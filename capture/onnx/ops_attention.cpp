// Attention and rotary embeddings, as they came with opset 23.
#include <tapedeck/capture/onnx/onnx_ops.h>

#include <tapedeck/engine/ops/ops.h>

#include <cmath>

namespace tapedeck::onnx {

namespace {

// [batch, steps, heads * size] -> [batch, heads, steps, size]
Tensor heads_of(const NodeCall& n, const Tensor& x, std::int64_t heads) {
  if (x.rank() == 4) return x;
  n.require(x.rank() == 3 && heads > 0 && x.size(2) % heads == 0,
            "the heads must divide the last dimension of [batch,steps,size]");
  return transpose(n.arg(reshape(n.arg(x), {x.size(0), x.size(1), heads, x.size(2) / heads})), {0, 2, 1, 3});
}

// Fewer heads of keys and values than of queries: each serves several.
Tensor for_queries(const NodeCall& n, const Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) return x;
  n.require(x.size(1) > 0 && heads % x.size(1) == 0, "the heads of the queries must be a multiple of those of the keys");
  return repeat_interleave(n.arg(x), heads / x.size(1), 1);
}

// Scores step by step: the op that never stores them has neither a cap nor a result for them.
struct Scores {
  Tensor y, wanted;
};

Scores attend_by_steps(const NodeCall& n, const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                       double cap) {
  const std::int64_t mode = n.integer("qk_matmul_output_mode", 0);
  Tensor s = mul(n.arg(matmul(n.arg(q), transpose_last(n.arg(k)))), o.scale);
  Tensor wanted = s;
  if (o.causal) {
    const Tensor visible = tril(n.arg(full({q.size(2), k.size(2)}, 1, DType::boolean, n.site())));
    s = masked_fill(n.arg(s), logical_not(n.arg(visible)), -INFINITY);
  }
  if (o.mask.defined())
    s = o.mask.dtype() == DType::boolean ? masked_fill(n.arg(s), logical_not(n.arg(o.mask)), -INFINITY) : add(n.arg(s), o.mask);
  if (mode == 1) wanted = s;
  if (cap > 0) s = mul(n.arg(tanh(n.arg(div(n.arg(s), cap)))), cap);
  if (mode == 2) wanted = s;
  const Tensor p = softmax(n.arg(s));
  if (mode == 3) wanted = p;
  return {matmul(n.arg(p), v), wanted};
}

Tensors attention(NodeCall& n) {
  n.require(!n.has(6), "lengths of keys that only a run knows are not supported");
  const bool flat = n[0].rank() == 3;
  Tensor q = heads_of(n, n[0], n.integer("q_num_heads", 0));
  Tensor k = heads_of(n, n[1], n.integer("kv_num_heads", 0)), v = heads_of(n, n[2], n.integer("kv_num_heads", 0));
  n.require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4, "queries, keys and values must have three or four dimensions");
  if (n.has(4)) k = concat({n[4], k}, 2, n.site());
  if (n.has(5)) v = concat({n[5], v}, 2, n.site());
  const Tensor present_k = k, present_v = v;
  k = for_queries(n, k, q.size(1));
  v = for_queries(n, v, q.size(1));
  const double cap = n.real("softcap", 0);
  AttentionOptions o;
  o.mask = n.or_none(3);
  o.causal = n.flag("is_causal");
  o.scale = n.real("scale", 1 / std::sqrt(static_cast<double>(q.size(3))));
  Scores s;
  if (cap > 0 || n.wants(3) || o.scale == 0)
    s = attend_by_steps(n, q, k, v, o, cap);
  else
    s.y = scaled_dot_product_attention(n.arg(q), k, v, o);
  if (flat) {
    const Tensor rows = transpose(n.arg(s.y), {0, 2, 1, 3});
    s.y = reshape(n.arg(rows), {rows.size(0), rows.size(1), rows.size(2) * rows.size(3)});
  }
  return {s.y, n.wants(1) ? alias(n.arg(present_k)) : Tensor(), n.wants(2) ? alias(n.arg(present_v)) : Tensor(), s.wanted};
}

// Pairs of elements are turned by the angles of their steps. A pair is two neighbours if `interleaved`, else one of each half.
Tensors rotary_embedding(NodeCall& n) {
  const bool flat = n[0].rank() == 3;
  Tensor x = flat ? n[0] : transpose(n.arg(0), {0, 2, 1, 3});  // [batch, steps, ...]
  const std::int64_t batch = x.size(0), steps = x.size(1);
  if (flat) {
    const std::int64_t heads = n.integer("num_heads", 0);
    n.require(heads > 0 && x.size(2) % heads == 0, "the heads must divide the last dimension of [batch,steps,size]");
    x = reshape(n.arg(x), {batch, steps, heads, x.size(2) / heads});
  }
  const std::int64_t size = x.size(3), given = n.integer("rotary_embedding_dim", 0), turned = given == 0 ? size : given;
  n.require(turned > 0 && turned <= size && turned % 2 == 0, "the size that is turned must be even and fit");
  const auto angles = [&](std::size_t i) {
    Tensor cache = n[i];
    if (n.has(3)) cache = embedding(n.arg(cache), n[3]);
    n.require(cache.rank() == 3 && cache.size(2) >= turned / 2, "the caches do not fit");
    if (cache.size(2) > turned / 2) cache = slice_along(n.arg(cache), 2, 0, turned / 2);
    return unsqueeze(n.arg(cache), 2);
  };
  const Tensor cosine = angles(1), sine = angles(2);
  const Tensor part = turned == size ? x : slice_along(n.arg(x), 3, 0, turned);
  Tensor first, second;
  const bool neighbours = n.flag("interleaved");
  if (neighbours) {
    first = slice_along(n.arg(part), 3, 0, turned, 2);
    second = slice_along(n.arg(part), 3, 1, turned, 2);
  } else {
    first = slice_along(n.arg(part), 3, 0, turned / 2);
    second = slice_along(n.arg(part), 3, turned / 2, turned);
  }
  const Tensor a = sub(n.arg(mul(n.arg(cosine), first)), mul(n.arg(sine), second));
  const Tensor b = add(n.arg(mul(n.arg(sine), first)), mul(n.arg(cosine), second));
  Tensor y = neighbours ? reshape(n.arg(stack({a, b}, 4, n.site())), part.shape()) : concat({a, b}, 3, n.site());
  if (turned < size) y = concat({y, slice_along(n.arg(x), 3, turned, size)}, 3, n.site());
  return {flat ? reshape(n.arg(y), n[0].shape()) : transpose(n.arg(y), {0, 2, 1, 3})};
}

}  // namespace

std::vector<OnnxOp> attention_ops() {
  return {
      {"Attention", 23, "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision", attention,
       25},
      {"RotaryEmbedding", 23, "interleaved num_heads rotary_embedding_dim", rotary_embedding},
  };
}

}  // namespace tapedeck::onnx
