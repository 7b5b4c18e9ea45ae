// Part of tool_on_fake_device: "cuda" is the fake device of the tests from before main() until after it, for replays and for
// eager code.
#include <tapedeck/capture/replay/device/open_device.h>
#include <tapedeck/tests/capture/replay/device/fake_runtime.h>

#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

namespace tapedeck::test {
namespace {

constexpr int kBrokenRules = 70;  // no exit code of the tool

struct FakeDeviceOfTheProgram {
  ~FakeDeviceOfTheProgram() {
    eager_scope.reset();
    eager.reset();
    for (const std::string& problem : fake->problems()) std::fprintf(stderr, "fake device: %s\n", problem.c_str());
    if (!fake->at_rest()) std::fprintf(stderr, "fake device: memory, a stream or a graph was not given back\n");
    if (!fake->problems().empty() || !fake->at_rest()) ::_exit(kBrokenRules);
  }

  const std::shared_ptr<FakeRuntime> fake = std::make_shared<FakeRuntime>();
  const ScopedDevice scope{fake};
  std::unique_ptr<EagerDevice> eager = waiting_eager_device(fake);
  std::optional<ScopedEagerDevice> eager_scope{std::in_place, "cuda", *eager};
};

const FakeDeviceOfTheProgram fake_device_of_the_program;

}  // namespace
}  // namespace tapedeck::test
