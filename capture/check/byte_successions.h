// Who gets bytes from whom: what check_order() has to look at. Its own file so that a test can hold it against every pair there
// is.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

struct Stretch {
  std::int64_t first = 0, end = 0;  // bytes
  std::int32_t since = 0;           // when it is first written
};

// Pairs (earlier, later) of stretches that share a byte on which nothing else lies in between, in order of `since` and, where
// that is equal, of their numbers; each once, ascending. If the users of the first of each pair are done before the second is
// written, and who writes is among its users, then that is so for any two stretches that share a byte: being done before is
// transitive. So only these pairs need a look, and of n stretches there are O(n) instead of up to n * n / 2. O((n + pairs) log
// n). Empty stretches are left out.
std::vector<std::pair<std::int32_t, std::int32_t>> successions(const std::vector<Stretch>& stretches);

}  // namespace tapedeck
