// Every caller of oneDNN runs it on one thread, because all threads of kernels come from parallel_for.
#pragma once

namespace tapedeck::kernels::cpu {

// While an object of this class lives, the OpenMP regions that this thread enters run on this thread alone. OpenMP keeps this
// setting per thread. The destructor restores it, because the thread may belong to the user.
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
