// Functions that the language models share: the number of attention heads, and the conversion of sequences of words to rows.
#pragma once

#include <tapedeck/samples/zoo/training_step.h>

#include <fmt/format.h>

namespace zoo {

// The number of attention heads: heads of width 64, or four heads if the width is not a multiple of 64. Throws UsageError if
// the width is not a multiple of four either.
inline std::int64_t heads_of(const std::string& model, std::int64_t width) {
  if (width % 64 == 0) return width / 64;
  if (width % 4 == 0) return 4;
  throw UsageError(fmt::format("model {}: a width of {} does not fall into four heads", model, width));
}

// x [b,t,width] -> [b t,width]: one row per word.
inline Tensor word_rows(const Tensor& x) { return reshape(x, {x.size(0) * x.size(1), x.size(2)}); }

// The logits of rows over a vocabulary. The table of embeddings [words,width] is also the output layer.
inline Tensor tied_logits(const Tensor& rows, const Tensor& table) { return matmul(rows, transpose_last(table)); }

// The mean cross entropy of logits [b t,words] against labels [b,t].
inline Tensor word_loss(const Tensor& logits, const Tensor& labels) {
  return cross_entropy(logits, reshape(labels, {labels.numel()}));
}

// True for the positions in front of each row's end: lengths [b] -> bool [b,steps].
inline Tensor within(const Tensor& lengths, std::int64_t steps) {
  return less(arange(steps, DType::i32), reshape(lengths, {lengths.size(0), 1}));
}

}  // namespace zoo
