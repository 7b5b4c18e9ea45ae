// Attention layers: multi-head attention, and a transformer block.
#pragma once

#include <tapedeck/engine/nn/layers.h>
#include <tapedeck/engine/nn/norm.h>
#include <tapedeck/engine/ops/attention.h>

namespace tapedeck TAPEDECK_API {

struct MultiheadOptions {
  bool causal = false;
  bool bias = true;
};

// x [b,t,size] -> [b,t,size]. One product with in_weight [size, 3 size] makes the queries, keys and values. Each of them is
// cut into heads.
struct MultiheadAttention : Module {
  MultiheadAttention(Module& parent, const std::string& name, std::int64_t size, std::int64_t heads,
                     MultiheadOptions options = {});
  // The mask broadcasts to [b,heads,t,s]. It is bool (true: visible) or float (added to the scores).
  Tensor operator()(const Arg& x, const Tensor& mask = {});
  // The queries come from x [b,t,size], and the keys and values from memory [b,s,size].
  Tensor operator()(const Arg& x, const Tensor& memory, const Tensor& mask);
  Tensor in_weight, in_bias, out_weight, out_bias;
  std::int64_t heads;
  MultiheadOptions options;

 private:
  Tensor projected(const Tensor& x, std::int64_t first, std::int64_t count) const;
  Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask);
};

using Activation = Tensor (*)(const Arg&);

struct TransformerOptions {
  std::int64_t heads = 8;
  std::int64_t hidden = 0;  // width of the perceptron; 0: four times the size
  bool causal = false;
  double dropout = 0;  // probability, for the result of each branch
  Activation activation = &relu;
};

// a = x + attention(norm1(x)); the result is a + perceptron(norm2(a)). x is [b,t,size].
struct TransformerBlock : Module {
  TransformerBlock(Module& parent, const std::string& name, std::int64_t size, TransformerOptions options = {});
  Tensor operator()(const Arg& x, const Tensor& mask = {});
  TransformerOptions options;
  LayerNorm norm1;
  MultiheadAttention attention;
  LayerNorm norm2;
  Linear fc1, fc2;
  Dropout drop1, drop2;
};

}  // namespace TAPEDECK_API
