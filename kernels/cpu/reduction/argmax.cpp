// argmax and argmin along one axis of a view of any strides. Of equal extremes the first counts; the first NaN counts as the
// extreme.
//
// Loops that vectorise go three ways, by the strides, and all give the same index:
//   along the axis   the extreme of a block of 1024 elements; only a block that beats all before is searched for its place
//   across           up to 256 results whose elements lie side by side, each with its best element and place so far
//   strided          one element after the other
#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/kernels.h>
#include <tapedeck/kernels/cpu/row_sums.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kBlock = 1024;
constexpr std::int64_t kMostAcross = 256;
constexpr std::int64_t kLeastAcross = 8;

// A number as wide as an element, so that loops over both vectorise.
template <class T>
using Place = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

// True if a, which comes after b, is the extreme of the two.
template <bool kLargest, class T>
bool beats(T a, T b) {
  const bool further = kLargest ? a > b : a < b;
  return further | ((a != a) & (b == b));
}

// The place of the first of x[from, n) for which f is true. There is one.
template <class T, class F>
std::int64_t first_place(const T* x, std::int64_t from, std::int64_t n, const F& f) {
  constexpr std::int64_t kStep = 64;
  for (; from + kStep <= n; from += kStep) {
    Place<T> found = 0;
    for (std::int64_t k = 0; k < kStep; ++k) found |= f(x[from + k]) ? Place<T>(1) : Place<T>(0);
    if (found) break;
  }
  while (!f(x[from])) ++from;
  return from;
}

template <bool kLargest, class T>
std::int64_t first_extreme_dense(const T* x, std::int64_t n) {
  std::int64_t block = 0;
  T best = x[0];  // replaced by the extreme of the first block
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = std::min(kBlock, n - i);
    bool has_nan = false;
    const T here = dense_extreme<kLargest>(x + i, count, &has_nan);
    if (has_nan) return first_place(x, i, n, [](T a) { return a != a; });
    if (i > 0 && !beats<kLargest>(here, best)) continue;
    best = here;
    block = i;
  }
  return first_place(x, block, n, [best](T a) { return a == best; });
}

template <bool kLargest, class T>
std::int64_t first_extreme_strided(const T* x, std::int64_t n, std::int64_t stride) {
  std::int64_t best = 0;
  for (std::int64_t i = 1; i < n; ++i)
    if (beats<kLargest>(x[i * stride], x[best * stride])) best = i;
  return best;
}

// The places of `width` results; element i of result j lies at x[i * stride + j].
template <bool kLargest, class T>
void first_extremes_across(const T* x, std::int64_t n, std::int64_t stride, std::int64_t width, std::int64_t* out) {
  T best[kMostAcross];
  Place<T> place[kMostAcross] = {};
  std::copy(x, x + width, best);
  for (std::int64_t i = 1; i < n; ++i) {
    const T* row = x + i * stride;
    const auto here = static_cast<Place<T>>(i);
    for (std::int64_t j = 0; j < width; ++j) {
      const bool takes = beats<kLargest>(row[j], best[j]);
      best[j] = takes ? row[j] : best[j];
      place[j] = takes ? here : place[j];
    }
  }
  std::copy(place, place + width, out);
}

// A view as [results, axis]. Results are counted row-major over all dimensions but the axis.
struct Results {
  const View& x;
  int axis, last = -1;  // `last` is the last dimension beside the axis, or -1
  std::int64_t n, stride;

  Results(const View& view, int along) : x(view), axis(along), n(view.sizes[along]), stride(view.strides[along]) {
    for (int d = 0; d < x.rank; ++d)
      if (d != axis) last = d;
  }
  std::int64_t offset(std::int64_t result) const {
    std::int64_t offset = 0;
    for (int d = x.rank - 1; d >= 0; --d) {
      if (d == axis) continue;
      offset += result % x.sizes[d] * x.strides[d];
      result /= x.sizes[d];
    }
    return offset;
  }
  // The number of results from `result` on whose elements lie side by side.
  std::int64_t across(std::int64_t result) const { return std::min(x.sizes[last] - result % x.sizes[last], kMostAcross); }
  bool side_by_side() const {
    return stride != 1 && last >= 0 && x.strides[last] == 1 && x.sizes[last] >= kLeastAcross &&
           n <= std::numeric_limits<std::int32_t>::max();
  }
};

template <bool kLargest, class T>
void find_extremes(const Results& r, std::int64_t begin, std::int64_t end, std::int64_t* out) {
  for (std::int64_t at = begin; at < end;) {
    const T* x = r.x.as<T>() + r.offset(at);
    if (r.side_by_side()) {
      const std::int64_t width = std::min(r.across(at), end - at);
      first_extremes_across<kLargest>(x, r.n, r.stride, width, out + at);
      at += width;
    } else {
      out[at++] = r.stride == 1 ? first_extreme_dense<kLargest>(x, r.n) : first_extreme_strided<kLargest>(x, r.n, r.stride);
    }
  }
}

template <bool kLargest, class T>
void index_of_extreme(const KernelCall& call) {
  const Results r(call.inputs[0], static_cast<int>(call.attributes<AxisAttrs>().axis));
  std::int64_t* out = call.outputs[0].as<std::int64_t>();
  const std::int64_t results = call.outputs[0].numel();
  if (results > 0 && r.n == 0) {
    call.fault->report("argmax or argmin of no elements", 0);
    std::fill(out, out + results, 0);
    return;
  }
  const std::int64_t grain = grain_for(0.3 * static_cast<double>(r.n) + 5);
  parallel_for(results, r.side_by_side() ? std::max(grain, kMostAcross) : grain,
               [&](std::int64_t begin, std::int64_t end) { find_extremes<kLargest, T>(r, begin, end, out); });
}

template <bool kLargest>
void extreme_of_any(const KernelCall& call) {
  const DType dtype = call.inputs[0].dtype;
  for_numbers(call, dtype == DType::boolean ? DType::u8 : dtype,
              [&](auto t) { index_of_extreme<kLargest, decltype(t)>(call); });
}

}  // namespace

void argmin(const KernelCall& call);

void argmax(const KernelCall& call) { extreme_of_any<true>(call); }
void argmin(const KernelCall& call) { extreme_of_any<false>(call); }

}  // namespace tapedeck::kernels::cpu
