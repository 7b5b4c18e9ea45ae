// How many seeds a random test takes. Sanitizers make each ten times as slow; the release build runs them all.
#pragma once

namespace tapedeck::test {

#ifdef TAPEDECK_SANITIZED
constexpr int seeds(int n) { return (n + 3) / 4; }
#else
constexpr int seeds(int n) { return n; }
#endif

}  // namespace tapedeck::test
