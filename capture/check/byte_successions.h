// Which value gets bytes from which: the pairs that check_order() has to look at. It has its own file, so that a test can
// compare it with all pairs.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace tapedeck {

struct Stretch {
  std::int64_t first = 0, end = 0;  // bytes
  std::int32_t since = 0;           // the step at which it is first written
};

// Pairs (earlier, later) of stretches that share a byte on which no other stretch lies in between. Stretches are ordered by
// `since` and then by number. Each pair appears once, ascending. Suppose that the users of the first stretch of each pair are
// done before the second is written, and that the writers of a stretch are among its users. Then this holds for any two
// stretches that share a byte, because "done before" is transitive. So only these pairs need a look; of n stretches there are
// O(n) pairs, not up to n * n / 2. O((n + pairs) log n). Empty stretches are left out.
std::vector<std::pair<std::int32_t, std::int32_t>> successions(const std::vector<Stretch>& stretches);

}  // namespace tapedeck
