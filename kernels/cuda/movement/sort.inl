// sort, argsort, topk and searchsorted along one axis of dense views.
//
// Every element becomes a pair: an unsigned key, and the number of the element in its line. The keys have the order of the
// elements, or the reverse order for a descending sort; both zeros have one key, and every NaN has the largest. The pairs are
// sorted (pairs.h), and the numbers then say which element goes where. Many lines are taken in batches, so that the workspace
// stays small.
#include <tapedeck/kernels/attrs/sort.h>
#include <tapedeck/kernels/cuda/movement/movement.h>
#include <tapedeck/kernels/cuda/movement/pairs.h>
#include <tapedeck/kernels/scalar.h>

#include <type_traits>

namespace tapedeck::kernels {
namespace TAPEDECK_CUDA_SPACE {
namespace {

using movement::Pairs;
using movement::PairSpace;

template <class T>
using KeyOf = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;

template <class T>
TAPEDECK_DEVICE KeyOf<T> key_of(T x) {
  using Key = KeyOf<T>;
  constexpr Key kTop = Key(1) << (sizeof(Key) * 8 - 1);
  if constexpr (std::is_floating_point_v<T>) {
    Key bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const Key number = x == T(0) ? kTop : (bits & kTop) ? static_cast<Key>(~bits) : static_cast<Key>(bits | kTop);
    return x != x ? static_cast<Key>(~Key(0)) : number;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(x) ^ kTop;
  } else {
    return x;
  }
}

// The lines of a view [outer, n, inner] along an axis; the elements of one line lie `inner` elements apart. The result has
// `take` elements of every line.
struct SortLines {
  std::int64_t n, take, inner = 1, lines = 1;
  bool reversed = false;               // the largest element comes first
  bool by_place = false;               // the elements that are taken keep their order
  std::int64_t batch_items = 1 << 22;  // a batch has at most as many elements, or one line

  SortLines(const View& x, std::int64_t axis, std::int64_t taken) : n(x.sizes[axis]), take(taken) {
    for (int d = 0; d < x.rank; ++d)
      if (d != axis) lines *= x.sizes[d];
    inner = movement::product(x, static_cast<int>(axis) + 1, x.rank);
  }
  std::int64_t batch() const {
    const std::int64_t most = batch_items / n > 1 ? batch_items / n : 1;
    return lines < most ? lines : most;
  }
  // The offset of the first element of a line, in a view whose axis has `length` elements.
  TAPEDECK_HD std::int64_t first(std::int64_t line, std::int64_t length) const {
    return line / inner * length * inner + line % inner;
  }
};

SortLines sort_lines_of(const KernelCall& call) {
  const auto& attrs = call.attributes<SortAttrs>();
  const View& x = call.inputs[0];
  SortLines s(x, attrs.axis, x.sizes[attrs.axis]);
  s.reversed = attrs.descending;
  return s;
}

SortLines topk_lines_of(const KernelCall& call) {
  const auto& attrs = call.attributes<TopkAttrs>();
  SortLines s(call.inputs[0], attrs.axis, attrs.k);
  s.reversed = attrs.largest;
  s.by_place = !attrs.sorted;
  return s;
}

template <class T>
struct Batch {
  SortLines s;
  const T* x;
  T* values;  // null: only indices
  std::int64_t* indices;
  std::int64_t first_line, lines;
  KeyOf<T> turn;  // reverses the order of the keys
  Pairs<KeyOf<T>> pairs;
  std::int64_t pitch;           // from line to line of the pairs
  Pairs<KeyOf<T>> chosen = {};  // renumber_kernel: lines of `take` pairs
};

template <class T>
TAPEDECK_KERNEL void keys_kernel(const Batch<T> b) {
  for (std::int64_t i = thread_index(); i < b.lines * b.s.n; i += thread_count()) {
    const std::int64_t line = i / b.s.n, item = i - line * b.s.n;
    b.pairs.keys[i] = key_of(b.x[b.s.first(b.first_line + line, b.s.n) + item * b.s.inner]) ^ b.turn;
    b.pairs.numbers[i] = static_cast<std::uint32_t>(item);
  }
}

// The first `take` numbers of every line become keys, so that a second sort puts them in order.
template <class T>
TAPEDECK_KERNEL void renumber_kernel(const Batch<T> b) {
  for (std::int64_t i = thread_index(); i < b.lines * b.s.take; i += thread_count()) {
    const std::uint32_t number = b.pairs.numbers[i / b.s.take * b.pitch + i % b.s.take];
    b.chosen.keys[i] = number;
    b.chosen.numbers[i] = number;
  }
}

template <class T>
TAPEDECK_KERNEL void sorted_kernel(const Batch<T> b) {
  for (std::int64_t i = thread_index(); i < b.lines * b.s.take; i += thread_count()) {
    const std::int64_t row = i / b.s.take, place = i - row * b.s.take, line = b.first_line + row;
    const std::int64_t number = b.pairs.numbers[row * b.pitch + place];
    const std::int64_t to = b.s.first(line, b.s.take) + place * b.s.inner;
    b.indices[to] = number;
    if (b.values) b.values[to] = b.x[b.s.first(line, b.s.n) + number * b.s.inner];
  }
}

template <class T>
void sort_batch(const KernelCall& call, Batch<T> b) {
  using Key = KeyOf<T>;
  constexpr int kBits = sizeof(T) * 8;
  const SortLines& s = b.s;
  PairSpace<Key> space(call.workspace, b.lines, s.n);
  b.pairs = space.pairs;
  b.pitch = s.n;
  b.turn = s.reversed ? static_cast<Key>(~Key(0)) >> (sizeof(Key) * 8 - kBits) : Key(0);
  launch(call, &keys_kernel<T>, for_items(b.lines * s.n), b);
  movement::sort_pairs(call, space, b.lines, s.n, kBits);
  b.pairs = space.pairs;
  PairSpace<Key> chosen(static_cast<char*>(call.workspace) + PairSpace<Key>::bytes(s.batch(), s.n), b.lines, s.take);
  if (s.by_place) {
    b.chosen = chosen.pairs;
    launch(call, &renumber_kernel<T>, for_items(b.lines * s.take), b);
    movement::sort_pairs(call, chosen, b.lines, s.take, movement::bits_for(static_cast<std::uint64_t>(s.n)));
    b.pairs = chosen.pairs;
    b.pitch = s.take;
  }
  launch(call, &sorted_kernel<T>, for_items(b.lines * s.take), b);
}

template <class T>
void sort_all(const KernelCall& call, const SortLines& s, void* values, void* indices) {
  Batch<T> b{s, call.inputs[0].as<T>(), static_cast<T*>(values), static_cast<std::int64_t*>(indices), 0, 0, 0, {}, 0};
  for (; b.first_line < s.lines; b.first_line += b.lines) {
    const std::int64_t left = s.lines - b.first_line;
    b.lines = left < s.batch() ? left : s.batch();
    sort_batch(call, b);
  }
}

void run_sort(const KernelCall& call, const SortLines& s, void* values, void* indices) {
  if (s.n == 0 || s.take == 0 || s.lines == 0) return;
  for_numbers(call, call.inputs[0].dtype, [&](auto t) { sort_all<decltype(t)>(call, s, values, indices); });
}

template <class Key>
std::int64_t space_of(const SortLines& s) {
  return PairSpace<Key>::bytes(s.batch(), s.n) + (s.by_place ? PairSpace<Key>::bytes(s.batch(), s.take) : 0);
}

std::int64_t sort_space(const KernelCall& call, const SortLines& s) {
  if (s.n == 0 || s.take == 0 || s.lines == 0) return 0;
  return dtype_size(call.inputs[0].dtype) == 8 ? space_of<std::uint64_t>(s) : space_of<std::uint32_t>(s);
}

// ---- searchsorted ----

template <class T>
struct Search {
  const T *rows, *values;
  std::int64_t* out;
  std::int64_t n, m, total;  // elements of a row, values for one row, all values
  bool right;
};

template <class T>
TAPEDECK_KERNEL void search_kernel(const Search<T> s) {
  for (std::int64_t i = thread_index(); i < s.total; i += thread_count()) {
    const T* const row = s.rows + i / s.m * s.n;
    const KeyOf<T> key = key_of(s.values[i]);
    std::int64_t low = 0, high = s.n;  // the elements before `low` belong in front of the value, those from `high` on do not
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      const KeyOf<T> other = key_of(row[middle]);
      if (other < key || (s.right && other == key))
        low = middle + 1;
      else
        high = middle;
    }
    s.out[i] = low;
  }
}

}  // namespace

void sort(const KernelCall& call) { run_sort(call, sort_lines_of(call), call.outputs[0].data, call.outputs[1].data); }
std::int64_t sort_workspace(const KernelCall& call) { return sort_space(call, sort_lines_of(call)); }

void argsort(const KernelCall& call) { run_sort(call, sort_lines_of(call), nullptr, call.outputs[0].data); }
std::int64_t argsort_workspace(const KernelCall& call) { return sort_space(call, sort_lines_of(call)); }

void topk(const KernelCall& call) { run_sort(call, topk_lines_of(call), call.outputs[0].data, call.outputs[1].data); }
std::int64_t topk_workspace(const KernelCall& call) { return sort_space(call, topk_lines_of(call)); }

void searchsorted(const KernelCall& call) {
  const View &rows = call.inputs[0], &values = call.inputs[1];
  const bool right = call.attributes<SearchAttrs>().right;
  const std::int64_t n = rows.sizes[rows.rank - 1], total = values.numel();
  const std::int64_t m = rows.rank == 1 ? (total > 0 ? total : 1) : values.sizes[values.rank - 1];
  for_numbers(call, call.inputs[0].dtype, [&](auto t) {
    using T = decltype(t);
    const Search<T> s{rows.as<T>(), values.as<T>(), call.outputs[0].as<std::int64_t>(), n, m, total, right};
    launch(call, &search_kernel<T>, for_items(total), s);
  });
}

}  // namespace TAPEDECK_CUDA_SPACE
}  // namespace tapedeck::kernels
