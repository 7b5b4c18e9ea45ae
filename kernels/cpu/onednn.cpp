// Sets the number of OpenMP threads for oneDNN. The functions of OpenMP are looked up in the loaded libraries and not linked,
// so that they belong to the same OpenMP runtime that oneDNN uses. A oneDNN built without OpenMP has no such runtime, and then
// nothing is set.
#include <tapedeck/kernels/cpu/onednn.h>

#include <dlfcn.h>

#include <initializer_list>

namespace tapedeck::kernels::cpu {
namespace {

struct OpenMp {
  void (*set_threads)(int) = nullptr;
  int (*get_threads)() = nullptr;

  OpenMp() {
    for (const char* name : {"libgomp.so.1", "libomp.so.5", "libomp.so", "libiomp5.so"}) {
      void* const library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
      if (!library) continue;
      set_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "omp_set_num_threads"));
      get_threads = reinterpret_cast<int (*)()>(dlsym(library, "omp_get_max_threads"));
      if (set_threads && get_threads) return;
    }
  }
  bool found() const { return set_threads && get_threads; }
};

const OpenMp& openmp() {
  static const OpenMp runtime;
  return runtime;
}

}  // namespace

OneThread::OneThread() {
  if (!openmp().found()) return;
  before_ = openmp().get_threads();
  if (before_ != 1) openmp().set_threads(1);
}

OneThread::~OneThread() {
  if (before_ > 1) openmp().set_threads(before_);
}

}  // namespace tapedeck::kernels::cpu
