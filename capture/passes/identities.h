// The identities that the pass `algebra` applies, as data: mathematics of particular ops, which no trait can say. What is not
// listed is left alone; tests hold every exact one to its bits on all dtypes it names, NaN, infinities, both zeros and
// subnormal numbers included.
//
// x, y, t stand for any value (one that occurs twice for the same value), k and l for one whose elements are all one known
// number. A number stands for such a value: 0 for +0 alone, -0 for -0 alone. `{axis=1}` is an attribute that must be so; others
// must be the defaults. The right side takes attributes of the same name from the nodes of the left. Types need not be said: a
// rewrite that would change the type of the result (because the value kept is the smaller one of a broadcast) is not made.
#pragma once

#include <span>

namespace tapedeck {

enum class Numbers { floating, whole, boolean, arithmetic /* floating or whole */, any };

struct Identity {
  Numbers of;  // the dtype of x
  const char* from;
  const char* to;
};

// Those that change no bit, and those for fast_math.
std::span<const Identity> exact_identities();
std::span<const Identity> fast_identities();

}  // namespace tapedeck
