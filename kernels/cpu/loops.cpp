// Walks several strided views together; see loops.h.
#include <tapedeck/kernels/cpu/loops.h>

#include <algorithm>

namespace tapedeck::kernels::cpu {
namespace {

// True if dimension d of all views can be merged with the last dimension of the walk: in every view the last dimension's stride
// is the whole length of dimension d.
bool merges(const Walk& walk, const View* const* views, int d) {
  const int last = walk.rank - 1;
  for (int k = 0; k < walk.operands; ++k) {
    const std::int64_t width = static_cast<std::int64_t>(dtype_size(views[k]->dtype));
    if (walk.strides[k][last] != views[k]->strides[d] * views[k]->sizes[d] * width) return false;
  }
  return true;
}

}  // namespace

Walk make_walk(const View* const* views, int operands) {
  Walk walk;
  walk.operands = operands;
  for (int k = 0; k < operands; ++k) walk.base[k] = views[k]->as<char>();
  for (int d = 0; d < views[0]->rank; ++d) {
    const std::int64_t size = views[0]->sizes[d];
    if (size == 1) continue;
    if (walk.rank > 0 && merges(walk, views, d)) {
      walk.sizes[walk.rank - 1] *= size;
    } else {
      walk.sizes[walk.rank++] = size;
    }
    for (int k = 0; k < operands; ++k)
      walk.strides[k][walk.rank - 1] = views[k]->strides[d] * static_cast<std::int64_t>(dtype_size(views[k]->dtype));
  }
  if (walk.rank == 0) {  // the views have a single element
    walk.rank = 1;
    walk.sizes[0] = 1;
    for (int k = 0; k < operands; ++k) walk.strides[k][0] = static_cast<std::int64_t>(dtype_size(views[k]->dtype));
  }
  return walk;
}

void walk_range(const Walk& walk, std::int64_t begin, std::int64_t end, RowBody body, const void* f) {
  const int inner = walk.rank - 1;
  std::int64_t index[kMaxRank];
  char* ptr[kMaxOperands];
  std::int64_t strides[kMaxOperands];
  std::copy(walk.base, walk.base + walk.operands, ptr);
  for (int k = 0; k < walk.operands; ++k) strides[k] = walk.strides[k][inner];
  std::int64_t rest = begin;
  for (int d = inner; d >= 0; --d) {
    index[d] = rest % walk.sizes[d];
    rest /= walk.sizes[d];
    for (int k = 0; k < walk.operands; ++k) ptr[k] += index[d] * walk.strides[k][d];
  }
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t n = std::min(walk.sizes[inner] - index[inner], end - at);
    body(f, ptr, strides, n);
    at += n;
    if (at == end) return;
    for (int k = 0; k < walk.operands; ++k) ptr[k] -= index[inner] * strides[k];
    index[inner] = 0;
    for (int d = inner - 1; d >= 0; --d) {
      for (int k = 0; k < walk.operands; ++k) ptr[k] += walk.strides[k][d];
      if (++index[d] < walk.sizes[d]) break;
      for (int k = 0; k < walk.operands; ++k) ptr[k] -= walk.sizes[d] * walk.strides[k][d];
      index[d] = 0;
    }
  }
}

namespace {

// One dimension is one row, which needs no walk.
void run_row(const KernelCall& call, RowBody body, const void* f) {
  char* ptr[kMaxOperands];
  std::int64_t strides[kMaxOperands];
  for (int k = 0; k <= call.n_inputs; ++k) {
    const View& v = k == 0 ? call.outputs[0] : call.inputs[k - 1];
    ptr[k] = v.as<char>();
    strides[k] = v.strides[0] * static_cast<std::int64_t>(dtype_size(v.dtype));
  }
  body(f, ptr, strides, call.outputs[0].sizes[0]);
}

}  // namespace

void walk_call(const KernelCall& call, RowBody body, const void* f, std::int64_t grain) {
  if (call.outputs[0].rank == 1 && call.outputs[0].sizes[0] <= grain) return run_row(call, body, f);
  const View* views[kMaxOperands] = {&call.outputs[0]};
  for (int k = 0; k < call.n_inputs; ++k) views[k + 1] = &call.inputs[k];
  const std::int64_t n = call.outputs[0].numel();
  if (n == 0) return;
  const Walk walk = make_walk(views, call.n_inputs + 1);
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) { walk_range(walk, begin, end, body, f); });
}

}  // namespace tapedeck::kernels::cpu
