// The number of seeds of a random test, and the stride of a test that tries every point of a range in turn. Sanitizer builds
// take ten times as long for each and run fewer; the release build runs all.
#pragma once

namespace tapedeck::test {

#ifdef TAPEDECK_SANITIZED
constexpr int seeds(int n) { return (n + 7) / 8; }
constexpr int stride(int n) { return n; }
#else
constexpr int seeds(int n) { return n; }
constexpr int stride(int) { return 1; }
#endif

}  // namespace tapedeck::test
