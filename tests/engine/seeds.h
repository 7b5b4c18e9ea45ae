// The number of seeds of a random test. Sanitizer builds take ten times as long for each seed and run fewer; the release
// build runs all.
#pragma once

namespace tapedeck::test {

#ifdef TAPEDECK_SANITIZED
constexpr int seeds(int n) { return (n + 3) / 4; }
#else
constexpr int seeds(int n) { return n; }
#endif

}  // namespace tapedeck::test
