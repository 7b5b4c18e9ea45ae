// What every caller of oneDNN does first: run it on one thread. Our threads come from parallel_for.
#pragma once

namespace tapedeck::kernels::cpu {

// While it lives, OpenMP regions entered by this thread run on this thread alone. The setting that OpenMP keeps per thread is
// put back afterwards, because the thread may be the user's.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_ = 0;
};

}  // namespace tapedeck::kernels::cpu
