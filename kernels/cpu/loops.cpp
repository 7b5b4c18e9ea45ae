// Walks several strided views together; see loops.h.
#include <tapedeck/kernels/cpu/loops.h>

#include <tapedeck/kernels/cpu/transpose.h>

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

// ---- operands whose neighbours in memory lie in different rows ----
//
// A row of such an operand has each element in another cache line. So a block of it, as many rows as a line has elements, is
// turned into contiguous rows first:
//
//     operand (f32, element (i, j) at i + 1000 j)   ->   16 rows of 256 elements   ->   the rows of the result

constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kBlockLines = 4;  // of each column: memory gives neighbouring lines faster than single ones
constexpr std::int64_t kBlockColumns = 64;
constexpr std::int64_t kLeastTurned = 8;  // rows and columns that are worth a block

struct TurnedWalk {
  Walk walk;
  std::int64_t widths[kMaxOperands];  // bytes of an element
  bool turned[kMaxOperands];
  std::int64_t rows;  // of a block

  std::int64_t row_dim() const { return walk.rank - 2; }
  std::int64_t column_dim() const { return walk.rank - 1; }
  std::int64_t blocks() const { return (walk.sizes[row_dim()] + rows - 1) / rows; }  // of one matrix
};

// False if no operand is turned, or if the result itself has no contiguous rows.
bool find_turned(const Walk& walk, const View* const* views, TurnedWalk* t) {
  const int columns = walk.rank - 1;
  if (walk.rank < 2 || walk.sizes[columns] < kLeastTurned || walk.sizes[columns - 1] < kLeastTurned) return false;
  bool any = false;
  std::int64_t widest = 1;
  for (int k = 0; k < walk.operands; ++k) {
    t->widths[k] = static_cast<std::int64_t>(dtype_size(views[k]->dtype));
    const std::int64_t apart = walk.strides[k][columns];
    t->turned[k] = walk.strides[k][columns - 1] == t->widths[k] && (apart >= kLineBytes || apart <= -kLineBytes);
    any |= t->turned[k];
    widest = std::max(widest, t->widths[k]);
  }
  if (!any || walk.strides[0][columns] != t->widths[0]) return false;
  t->walk = walk;
  t->rows = kBlockLines * kLineBytes / widest;
  return true;
}

// Asks for the lines that the next block of rows reads. They lie so far apart that a processor does not foresee them.
void prefetch_next_rows(const char* next, std::int64_t apart, std::int64_t columns) {
  for (std::int64_t column = 0; column < columns; ++column)
    for (std::int64_t line = 0; line < kBlockLines; ++line) __builtin_prefetch(next + column * apart + line * kLineBytes);
}

// The block of a walk that begins at `at`, operand by operand.
void run_turned_block(const TurnedWalk& t, char* const* at, std::int64_t rows, std::int64_t columns, RowBody body,
                      const void* f) {
  alignas(64) char memory[kMaxOperands - 1][kBlockLines * kLineBytes * kBlockColumns];
  char* ptr[kMaxOperands];
  std::int64_t strides[kMaxOperands], next_row[kMaxOperands];
  for (int k = 0; k < t.walk.operands; ++k) {
    ptr[k] = at[k];
    strides[k] = t.walk.strides[k][t.column_dim()];
    next_row[k] = t.walk.strides[k][t.row_dim()];
    if (!t.turned[k]) continue;
    for_width(t.widths[k], [&](auto element) {
      using T = decltype(element);
      transpose(reinterpret_cast<const T*>(at[k]), strides[k] / static_cast<std::int64_t>(sizeof(T)),
                reinterpret_cast<T*>(memory[k - 1]), kBlockColumns, rows, columns);
    });
    prefetch_next_rows(at[k] + rows * t.widths[k], strides[k], columns);
    ptr[k] = memory[k - 1];
    strides[k] = t.widths[k];
    next_row[k] = kBlockColumns * t.widths[k];
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    body(f, ptr, strides, columns);
    for (int k = 0; k < t.walk.operands; ++k) ptr[k] += next_row[k];
  }
}

// The rows of block number `block`, counted over all matrices of the walk.
void run_turned_rows(const TurnedWalk& t, std::int64_t block, RowBody body, const void* f) {
  const Walk& w = t.walk;
  const std::int64_t first = block % t.blocks() * t.rows;
  char* ptr[kMaxOperands];
  for (int k = 0; k < w.operands; ++k) ptr[k] = w.base[k] + first * w.strides[k][t.row_dim()];
  std::int64_t rest = block / t.blocks();
  for (int d = w.rank - 3; d >= 0; --d) {
    for (int k = 0; k < w.operands; ++k) ptr[k] += rest % w.sizes[d] * w.strides[k][d];
    rest /= w.sizes[d];
  }
  const std::int64_t rows = std::min(t.rows, w.sizes[t.row_dim()] - first), columns = w.sizes[t.column_dim()];
  for (std::int64_t at = 0; at < columns; at += kBlockColumns) {
    char* from[kMaxOperands];
    for (int k = 0; k < w.operands; ++k) from[k] = ptr[k] + at * w.strides[k][t.column_dim()];
    run_turned_block(t, from, rows, std::min(kBlockColumns, columns - at), body, f);
  }
}

void run_turned(const TurnedWalk& t, std::int64_t elements, RowBody body, const void* f, std::int64_t grain) {
  const std::int64_t matrix = t.walk.sizes[t.row_dim()] * t.walk.sizes[t.column_dim()];
  const std::int64_t block = t.rows * t.walk.sizes[t.column_dim()];
  parallel_for(elements / matrix * t.blocks(), std::max<std::int64_t>(1, grain / block),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t b = begin; b < end; ++b) run_turned_rows(t, b, body, f);
               });
}

}  // namespace

void walk_call(const KernelCall& call, RowBody body, const void* f, std::int64_t grain) {
  if (call.outputs[0].rank == 1 && call.outputs[0].sizes[0] <= grain) return run_row(call, body, f);
  const View* views[kMaxOperands] = {&call.outputs[0]};
  for (int k = 0; k < call.n_inputs; ++k) views[k + 1] = &call.inputs[k];
  const std::int64_t n = call.outputs[0].numel();
  if (n == 0) return;
  const Walk walk = make_walk(views, call.n_inputs + 1);
  TurnedWalk turned;
  if (find_turned(walk, views, &turned)) return run_turned(turned, n, body, f, grain);
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) { walk_range(walk, begin, end, body, f); });
}

}  // namespace tapedeck::kernels::cpu
