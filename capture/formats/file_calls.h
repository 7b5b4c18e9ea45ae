// A hook on the system calls that read and write files. Tests use it to make one call fail, or to change a file or end the
// process before it.
#pragma once

#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <functional>

namespace tapedeck TAPEDECK_API {

enum class FileCall : std::uint8_t { open, read, write, sync, rename };

// Is called before each of these calls on files, but not before a folder, a device or a leftover temporary file is opened. A
// result other than 0 is the error number with which the call fails.
using FileCallHook = std::function<int(FileCall)>;

// An empty hook is none. REQUIRES: no other thread reads or writes files meanwhile.
void set_file_call_hook(FileCallHook hook);

// Sets errno and returns true if the hook lets the call fail.
bool is_refused(FileCall call);

}  // namespace TAPEDECK_API
