#include <tapedeck/capture/formats/file_calls.h>

#include <cerrno>
#include <utility>

namespace tapedeck {

namespace {

FileCallHook& hook() {
  static FileCallHook& kept = *new FileCallHook;  // never destroyed: files may be written while the process ends
  return kept;
}

}  // namespace

void set_file_call_hook(FileCallHook given) { hook() = std::move(given); }

bool is_refused(FileCall call) {
  if (!hook()) return false;
  const int error = hook()(call);
  if (error != 0) errno = error;
  return error != 0;
}

}  // namespace tapedeck
