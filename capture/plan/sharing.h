// Which values may share bytes: one switch for each rule. Plans use all rules. Switching one off shows how much it saves.
#pragma once

#include <cstdint>

namespace tapedeck {

enum class Sharing : std::uint32_t {
  none = 0,
  windows = 1u << 0,   // a view is a window on its operand's bytes (analysis/alias.h)
  in_place = 1u << 1,  // a result takes over the bytes of an operand that dies there
  add_to = 1u << 2,    // gradient pieces are added into the running sum where they arise (passes/gradient_sums)
  parts = 1u << 3,     // the operands of a concat or stack are written into their places in the result from the start
  updates = 1u << 4,   // an updated state value is written straight into the state's bytes
  all = (1u << 5) - 1,
};

constexpr Sharing operator|(Sharing a, Sharing b) {
  return static_cast<Sharing>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr Sharing operator&(Sharing a, Sharing b) {
  return static_cast<Sharing>(static_cast<std::uint32_t>(a) & static_cast<std::uint32_t>(b));
}
constexpr Sharing operator~(Sharing a) { return static_cast<Sharing>(~static_cast<std::uint32_t>(a)) & Sharing::all; }
constexpr bool has(Sharing rules, Sharing rule) { return (rules & rule) == rule; }

}  // namespace tapedeck
