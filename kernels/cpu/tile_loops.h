// The loop over f32 functors that need more than one simple loop to be fast (scalar.h, scalar_functions.h):
//   rare(x...)               says that the polynomial does not cover an operand; usual(x...) is the polynomial
//   begin(x...), finish(y, x...)   are two halves of a long chain of operations
// The loop goes tile by tile. Rare operands of a tile are computed once more, by a call of the functor. Every way gives the
// bits of a call of the functor for each element.
#pragma once

#include <tapedeck/kernels/cpu/dispatch.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace tapedeck::kernels::cpu::detail {

template <class F, class... In>
concept HasRare = (std::is_same_v<In, float> && ...) && requires(const F& f, In... x) {
  f.rare(x...);
};
template <class F, class... In>
concept HasStages = (std::is_same_v<In, float> && ...) && requires(const F& f, In... x) {
  f.finish(f.begin(x...), x...);
};
template <class F, class... In>
concept RunsByTiles = HasRare<F, In...> || HasStages<F, In...>;

inline constexpr std::int64_t kLoopTile = 256;

// The operands of a tile that are not rare. `out` may be one of the operands.
template <class F, class... In>
void usual_tile(const F f, std::int64_t n, float* out, const In*... in) {
  if constexpr (HasStages<F, In...>) {
    decltype(f.begin(In{}...)) half[kLoopTile];
    TAPEDECK_INDEPENDENT
    for (std::int64_t k = 0; k < n; ++k) half[k] = f.begin(in[k]...);
    TAPEDECK_INDEPENDENT
    for (std::int64_t k = 0; k < n; ++k) out[k] = f.finish(half[k], in[k]...);
  } else {
    TAPEDECK_INDEPENDENT
    for (std::int64_t k = 0; k < n; ++k) out[k] = f.usual(in[k]...);
  }
}

// One tile of at most kLoopTile elements.
template <class F, class... In>
void run_tile(const F f, std::int64_t n, float* out, const In*... in) {
  if constexpr (HasRare<F, In...>) {
    std::int32_t rare = 0;  // as wide as an operand, so that the loop vectorises
    for (std::int64_t k = 0; k < n; ++k) rare |= static_cast<std::int32_t>(f.rare(in[k]...));
    if (rare != 0) {
      float result[kLoopTile];
      usual_tile(f, n, result, in...);
      for (std::int64_t k = 0; k < n; ++k)
        if (f.rare(in[k]...)) result[k] = f(in[k]...);
      std::copy(result, result + n, out);
      return;
    }
  }
  usual_tile(f, n, out, in...);
}

// An operand of a row: its elements, or a tile that repeats one element.
template <class T>
class TileOperand {
 public:
  TileOperand(const T* elements, bool repeated, std::int64_t n) : elements_(elements), repeated_(repeated) {
    if (repeated) std::fill(tile_, tile_ + std::min(n, kLoopTile), *elements);
  }
  const T* from(std::int64_t i) const { return repeated_ ? tile_ : elements_ + i; }

 private:
  const T* elements_;
  bool repeated_;
  T tile_[kLoopTile];
};

// out[i] = f(in[i]...) for n elements.
template <class F, class... In>
void run_tiles(const F f, std::int64_t n, float* out, const In*... in) {
  for (std::int64_t i = 0; i < n; i += kLoopTile) run_tile(f, std::min(kLoopTile, n - i), out + i, (in + i)...);
}
template <class F, class... In>
void run_tiles(const F f, std::int64_t n, float* out, const TileOperand<In>&... in) {
  for (std::int64_t i = 0; i < n; i += kLoopTile) run_tile(f, std::min(kLoopTile, n - i), out + i, in.from(i)...);
}

}  // namespace tapedeck::kernels::cpu::detail
