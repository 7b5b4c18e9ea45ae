#include <tapedeck/capture/step/save_for_view.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace tapedeck {

// A name of another kind is refused, so that the variable makes no program replace a file that is no capture.
void save_for_view(const CapturedStep& step) noexcept {
  const char* const path = ::secure_getenv("TAPEDECK_SAVE_STEP");
  if (!path || *path == 0 || !step.captured()) return;
  try {
    const std::string name = path;
    if (!name.ends_with(".tape"))
      std::fprintf(stderr, "warning: TAPEDECK_SAVE_STEP=%s: not saved, the name must end in .tape\n", path);
    else
      step.save(name);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "warning: TAPEDECK_SAVE_STEP=%s: not saved: %s\n", path, e.what());
  }
}

}  // namespace tapedeck
