#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/load_op_library.h>

#include <fmt/format.h>

#include <dlfcn.h>

#include <mutex>
#include <set>

namespace tapedeck {

void load_ops(const std::string& path) {
  static std::mutex mutex;
  static auto* loaded = new std::set<void*>;
  std::lock_guard lock(mutex);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw FileError(fmt::format("cannot load ops: {}", ::dlerror()));
  if (loaded->count(library)) return;
  auto* registers = reinterpret_cast<void (*)()>(::dlsym(library, "tapedeck_register_ops"));
  if (!registers) throw FileError(fmt::format("{} has no function tapedeck_register_ops", path));
  registers();
  loaded->insert(library);
}

}  // namespace tapedeck
