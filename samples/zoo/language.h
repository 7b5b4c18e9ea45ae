// What the language models share: how they cut a width into heads, and rows of words out of sequences of them.
#pragma once

#include <tapedeck/samples/zoo/training_step.h>

#include <fmt/format.h>

namespace zoo {

// Heads of 64, or four heads where the width is not made of such.
inline std::int64_t heads_of(const std::string& model, std::int64_t width) {
  if (width % 64 == 0) return width / 64;
  if (width % 4 == 0) return 4;
  throw UsageError(fmt::format("model {}: a width of {} does not fall into four heads", model, width));
}

// x [b,t,width] -> [b t,width].
inline Tensor word_rows(const Tensor& x) { return reshape(x, {x.size(0) * x.size(1), x.size(2)}); }

// Logits of rows over a vocabulary whose table of embeddings [words,width] is also the output layer.
inline Tensor tied_logits(const Tensor& rows, const Tensor& table) { return matmul(rows, transpose_last(table)); }

// Mean cross entropy of logits [b t,words] with labels [b,t].
inline Tensor word_loss(const Tensor& logits, const Tensor& labels) {
  return cross_entropy(logits, reshape(labels, {labels.numel()}));
}

// Which of `steps` positions come before each row's length: lengths [b] -> bool [b,steps].
inline Tensor within(const Tensor& lengths, std::int64_t steps) {
  return less(arange(steps, DType::i32), reshape(lengths, {lengths.size(0), 1}));
}

}  // namespace zoo
