// The identities that the pass `algebra` applies, as data. They are mathematics of particular ops, so they name ops. Every
// other rewrite is left to other passes. Tests compare the bits of every exact identity on all dtypes that it names, including
// NaN, infinities, both zeros and subnormal numbers.
//
// x, y, t stand for any value; a letter that occurs twice stands for the same value. k and l stand for a value whose elements
// are all one known number. A number stands for such a value: 0 for +0 alone, -0 for -0 alone. `{axis=1}` is an attribute that
// must have this value; other attributes must have their defaults. The right side takes attributes of the same name from the
// nodes of the left. A rewrite that would change the type of the result is not made (the value that stays may be the smaller
// one of a broadcast).
#pragma once

#include <span>

namespace tapedeck {

enum class Numbers { floating, whole, boolean, arithmetic /* floating or whole */, any };

struct Identity {
  Numbers of;  // the dtype of x
  const char* from;
  const char* to;
};

// The identities that change no bit, and those for fast_math.
std::span<const Identity> exact_identities();
std::span<const Identity> fast_identities();

}  // namespace tapedeck
