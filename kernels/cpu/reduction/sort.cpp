// sort, argsort, topk and searchsorted along one axis of dense views.
//
// Every element becomes an item: an unsigned key, and the number of the element in its line. The keys have the order of the
// elements, or the reverse order for a descending sort. Long lines are sorted by radix, eight bits at a time. In a short line
// the place of an element is the number of elements that come before it, counted by comparing all pairs. All items of a line
// are distinct, so both ways give the same order.
#include <tapedeck/kernels/attrs/sort.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace tapedeck::kernels::cpu {

void sort(const KernelCall& call);
void argsort(const KernelCall& call);
void topk(const KernelCall& call);
void searchsorted(const KernelCall& call);

namespace {

// The number of lines sorted at a time; the workspace rules in engine/ops/sort.cpp use the same number.
constexpr std::int64_t kSlots = 16;
constexpr std::int64_t kRadixFrom = 256;  // shorter lines are sorted by counting

template <class T>
using KeyOf = std::conditional_t<(sizeof(T) > 4), std::uint64_t, std::uint32_t>;

template <class Key>
struct Item {
  Key key;
  Key number;
  bool operator<(const Item& o) const { return key != o.key ? key < o.key : number < o.number; }
};

template <class Key>
constexpr Key kTopBit = Key(1) << (sizeof(Key) * 8 - 1);

// A key in the order of the elements. Both zeros have one key; every NaN has one key, above the key of infinity.
template <class T>
KeyOf<T> key_of(T x) {
  using Key = KeyOf<T>;
  constexpr Key kTop = kTopBit<Key>;
  if constexpr (std::is_floating_point_v<T>) {
    Key bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    const Key number = x == T(0) ? kTop : (bits & kTop ? ~bits : bits | kTop);
    return x != x ? ~Key(0) : number;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<Key>(x) ^ kTop;
  } else {
    return x;
  }
}

// Sorts items[0, n) by key, stably; `other` is scratch for n items. Returns the array that holds the result.
template <class Key>
Item<Key>* radix_sort(Item<Key>* items, Item<Key>* other, std::int64_t n) {
  constexpr int kDigits = sizeof(Key);
  std::uint32_t counts[kDigits][256] = {};
  for (std::int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++counts[d][items[i].key >> (8 * d) & 255];
  for (int d = 0; d < kDigits; ++d) {
    std::uint32_t* count = counts[d];
    if (count[items[0].key >> (8 * d) & 255] == n) continue;  // all items have the same digit
    std::uint32_t before = 0;
    for (int b = 0; b < 256; ++b) before += std::exchange(count[b], before);
    for (std::int64_t i = 0; i < n; ++i) other[count[items[i].key >> (8 * d) & 255]++] = items[i];
    std::swap(items, other);
  }
  return items;
}

// Sets rank[j] to the number of keys that come before keys[j], for n < kRadixFrom keys: the smaller ones, and the equal ones
// with a smaller index. Both arrays have room for kRadixFrom elements; the elements from n on are overwritten.
template <class Key>
void count_ranks(std::make_signed_t<Key>* keys, std::int64_t n, std::make_signed_t<Key>* rank) {
  using Signed = std::make_signed_t<Key>;
  constexpr int kPart = 32 / sizeof(Key), kStep = 4 * kPart;
  std::fill(keys + n, keys + (n + kStep - 1) / kStep * kStep, Signed(0));
  for (std::int64_t j = 0; j < n; j += kStep) {
    const Register<Signed> a = load_register(keys + j), b = load_register(keys + j + kPart),
                           c = load_register(keys + j + 2 * kPart), d = load_register(keys + j + 3 * kPart);
    Register<Signed> before_a{}, before_b{}, before_c{}, before_d{};
    for (std::int64_t i = 0; i < n; ++i) {
      const Signed key = keys[i];
      before_a -= key < a;  // a comparison gives -1 where it holds
      before_b -= key < b;
      before_c -= key < c;
      before_d -= key < d;
    }
    store_register(before_a, rank + j);
    store_register(before_b, rank + j + kPart);
    store_register(before_c, rank + j + 2 * kPart);
    store_register(before_d, rank + j + 3 * kPart);
  }
  std::int64_t pairs = 0;
  for (std::int64_t j = 0; j < n; ++j) pairs += rank[j];
  if (pairs == n * (n - 1) / 2) return;  // no two keys are equal
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = i + 1; j < n; ++j) rank[j] += keys[i] == keys[j];
}

// The lines of a view [outer, n, inner] along an axis. The elements of one line lie `inner` elements apart.
struct SortLines {
  std::int64_t n, inner = 1, lines = 1;
  SortLines(const View& x, std::int64_t axis) : n(x.sizes[axis]) {
    for (int d = 0; d < x.rank; ++d)
      if (d != axis) lines *= x.sizes[d];
    for (int d = static_cast<int>(axis) + 1; d < x.rank; ++d) inner *= x.sizes[d];
  }
  // The offset of the first element of a line, in a view whose axis has `length` elements.
  std::int64_t first(std::int64_t line, std::int64_t length) const { return line / inner * length * inner + line % inner; }
};

// Calls body(line, scratch of `items` items) for every line. Neighbouring lines share cache lines, so one slot takes them one
// after the other.
template <class Key, class Body>
void for_lines(const KernelCall& call, const SortLines& s, std::int64_t items, const Body& body) {
  const std::int64_t slots = std::min(s.lines, kSlots);
  auto* scratch = static_cast<Item<Key>*>(call.workspace);
  const std::int64_t grain = s.lines * s.n < 2048 ? slots : 1;
  parallel_for(slots, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t slot = begin; slot < end; ++slot)
      for (std::int64_t line = s.lines * slot / slots; line < s.lines * (slot + 1) / slots; ++line)
        body(line, scratch + slot * items);
  });
}

template <class T>
void sort_lines(const KernelCall& call, T* values, std::int64_t* indices) {
  using Key = KeyOf<T>;
  const auto& a = call.attributes<SortAttrs>();
  const SortLines s(call.inputs[0], a.axis);
  if (s.n == 0) return;
  const Key turn = a.descending ? ~Key(0) : Key(0);
  for_lines<Key>(call, s, 2 * s.n, [&](std::int64_t line, Item<Key>* items) {
    const std::int64_t first = s.first(line, s.n);
    const T* x = call.inputs[0].as<T>() + first;
    const auto put = [&](std::int64_t place, std::int64_t number) {
      indices[first + place * s.inner] = number;
      if (values) values[first + place * s.inner] = x[number * s.inner];
    };
    if (s.n < kRadixFrom) {
      using Signed = std::make_signed_t<Key>;
      Signed keys[kRadixFrom], rank[kRadixFrom];
      for (std::int64_t i = 0; i < s.n; ++i) keys[i] = static_cast<Signed>(key_of(x[i * s.inner]) ^ turn ^ kTopBit<Key>);
      count_ranks<Key>(keys, s.n, rank);
      for (std::int64_t i = 0; i < s.n; ++i) put(rank[i], i);
      return;
    }
    for (std::int64_t i = 0; i < s.n; ++i) items[i] = {static_cast<Key>(key_of(x[i * s.inner]) ^ turn), static_cast<Key>(i)};
    const Item<Key>* sorted = radix_sort(items, items + s.n, s.n);
    for (std::int64_t i = 0; i < s.n; ++i) put(i, static_cast<std::int64_t>(sorted[i].number));
  });
}

// Moves the k smallest items of a line to items[0, k), in no order. A buffer collects the items below the k-th smallest so far,
// and is cut back to k items whenever it is full. key_at(i) is the key of item i. Most blocks of a long line hold no such item:
// one comparison of all keys of the block says so.
template <class Key, class KeyAt>
void select_least(Item<Key>* items, std::int64_t capacity, std::int64_t n, std::int64_t k, const KeyAt& key_at) {
  constexpr std::int64_t kBlock = 64;
  std::int64_t held = 0;
  bool bounded = false;
  Key bound = 0;
  for (std::int64_t first = 0; first < n; first += kBlock) {
    const std::int64_t count = std::min(kBlock, n - first);
    Key keys[kBlock], least = ~Key(0);
    for (std::int64_t i = 0; i < count; ++i) keys[i] = key_at(first + i);
    for (std::int64_t i = 0; i < count; ++i) least = std::min(least, keys[i]);
    if (bounded && least >= bound) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      if (bounded && keys[i] >= bound) continue;  // the item comes later and is not smaller
      items[held++] = {keys[i], static_cast<Key>(first + i)};
      if (held < capacity || first + i + 1 == n) continue;
      std::nth_element(items, items + k - 1, items + held);
      held = k;
      bound = items[k - 1].key;
      bounded = true;
    }
  }
  if (held > k) std::nth_element(items, items + k - 1, items + held);
}

template <class T>
void topk_lines(const KernelCall& call) {
  using Key = KeyOf<T>;
  const auto& a = call.attributes<TopkAttrs>();
  const SortLines s(call.inputs[0], a.axis);
  if (a.k == 0) return;
  const Key turn = a.largest ? ~Key(0) : Key(0);
  const std::int64_t capacity = std::min(s.n, 2 * a.k + 64);
  for_lines<Key>(call, s, capacity, [&](std::int64_t line, Item<Key>* items) {
    const T* x = call.inputs[0].as<T>() + s.first(line, s.n);
    const std::int64_t to = s.first(line, a.k);
    const auto key_at = [x, turn, step = s.inner](std::int64_t i) { return static_cast<Key>(key_of(x[i * step]) ^ turn); };
    select_least(items, capacity, s.n, a.k, key_at);
    if (a.sorted)
      std::sort(items, items + a.k);
    else
      std::sort(items, items + a.k, [](const Item<Key>& l, const Item<Key>& r) { return l.number < r.number; });
    for (std::int64_t i = 0; i < a.k; ++i) {
      const auto number = static_cast<std::int64_t>(items[i].number);
      call.outputs[0].as<T>()[to + i * s.inner] = x[number * s.inner];
      call.outputs[1].as<std::int64_t>()[to + i * s.inner] = number;
    }
  });
}

template <class T>
void search_rows(const KernelCall& call) {
  const View &rows = call.inputs[0], &values = call.inputs[1];
  const bool right = call.attributes<SearchAttrs>().right;
  const std::int64_t n = rows.sizes[rows.rank - 1];
  const std::int64_t m = rows.rank == 1 ? std::max<std::int64_t>(values.numel(), 1) : values.sizes[values.rank - 1];
  const auto less = [](T l, T r) { return key_of(l) < key_of(r); };
  parallel_for(values.numel(), grain_for(40), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* row = rows.as<T>() + i / m * n;
      const T value = values.as<T>()[i];
      const T* at = right ? std::upper_bound(row, row + n, value, less) : std::lower_bound(row, row + n, value, less);
      call.outputs[0].as<std::int64_t>()[i] = at - row;
    }
  });
}

// Calls f(T{}) for all types that kernels compute in; booleans are sorted as u8.
template <class F>
void for_sortable(const KernelCall& call, F&& f) {
  const DType dtype = call.inputs[0].dtype;
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype, f);
}

}  // namespace

void sort(const KernelCall& call) {
  for_sortable(call, [&](auto t) { sort_lines(call, call.outputs[0].as<decltype(t)>(), call.outputs[1].as<std::int64_t>()); });
}

void argsort(const KernelCall& call) {
  for_sortable(call, [&](auto t) { sort_lines(call, static_cast<decltype(t)*>(nullptr), call.outputs[0].as<std::int64_t>()); });
}

void topk(const KernelCall& call) {
  for_sortable(call, [&](auto t) { topk_lines<decltype(t)>(call); });
}

void searchsorted(const KernelCall& call) {
  for_sortable(call, [&](auto t) { search_rows<decltype(t)>(call); });
}

}  // namespace tapedeck::kernels::cpu
