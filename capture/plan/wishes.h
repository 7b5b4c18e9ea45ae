// What a user asks of single values: to be kept, or to be computed again instead of being kept.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>

namespace tapedeck TAPEDECK_API {

enum class WishKind : std::uint8_t {
  keep,       // the value is never computed again
  recompute,  // the value is not kept between its readers where it can be computed again
};

// A wish for all values that a pattern names. The last wish that names a value counts. A pattern is
//   NAME           the value of that name, where `*` stands for any characters and `?` for one: `h*`
//   module:PATH    the values made in the module of that path, and in modules inside it
//   op:NAME        the values that the op of that name makes
//   trait:NAME     the values made by ops of that trait
//   region:NUMBER  the values made in that checkpoint region
//   note:WISH      the values of the nodes that the program itself marks so: by `[keep]` or `[recompute]` in the text of the
//                  graph, or by keep() and recompute() (engine/eager/checkpoint.h)
//
// The marks of the program are wishes that come before all others: `--keep note:keep` and `--recompute note:recompute`. So a
// wish of the options that names a marked value wins over its mark.
struct Wish {
  WishKind kind = WishKind::keep;
  std::string pattern;
  bool operator==(const Wish&) const = default;
};

}  // namespace TAPEDECK_API
