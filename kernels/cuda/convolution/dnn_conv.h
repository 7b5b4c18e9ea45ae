// Convolution by cuDNN. A plan says how cuDNN computes one convolution; it is made once for each shape, at the query of the
// workspace or at the first call, and is kept until the process ends, because graphs that were captured may hold its code.
// The engines of a plan are deterministic. They compute f32 in f32, unless the problem allows tf32, and halves in f32. Where
// cuDNN has no such engine, or fails, the caller uses our own kernels (conv.inl); a failure is remembered for the shape.
//
// Thread safety: any thread may call every function of this file.
#pragma once

#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cuda/dnn_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// One convolution, as cuDNN needs to know it.
struct DnnConvolution {
  cpu::ConvPass pass = cpu::ConvPass::forward;
  cpu::ConvShape shape;
  cpu::ConvStrides strides;
  DType dtype = DType::f32;
  int dims = 2;  // 2 or 3 spatial dimensions
  int device = 0;
  bool tf32 = false;  // f32 may be computed in tf32
};

// The memory of one call. `x`, `w` and `y` are the operands or their gradients.
struct DnnOperands {
  void *x = nullptr, *w = nullptr, *y = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  DnnStream stream = nullptr;
  bool may_plan = true;  // false while the stream is captured, when a new plan must not be made
};

// True if cuDNN may be asked: a type and a shape that it can take.
bool is_for_dnn(const DnnConvolution& problem);

// The environment decides both: TAPEDECK_CUDA_CONV=own turns cuDNN off, TAPEDECK_TF32=1 allows tf32.
bool dnn_is_wanted();
bool tf32_is_allowed();

// A configuration of an engine, as cuDNN's heuristic proposes it.
struct DnnConfiguration {
  int mode = dnn::CUDNN_HEUR_MODE_A;  // of the heuristic
  int index = 0;                      // its place in the list of the heuristic
  std::int64_t engine = -1;           // the global index of the engine, or -1 if cuDNN does not tell it
  std::vector<std::pair<int, std::int64_t>> knobs;
  std::vector<int> notes, behaviour;  // of the engine: numerical notes and behaviour notes
  bool usable = false;                // the engine has no note that the problem does not allow

  bool compiles_at_run_time() const;
};

struct DnnPlan;  // dnn_conv.cpp

class DnnConvolutions {
 public:
  // Shapes beyond `most_plans` are left to our own kernels.
  explicit DnnConvolutions(std::size_t most_plans = 4096);
  ~DnnConvolutions();
  DnnConvolutions(const DnnConvolutions&) = delete;
  DnnConvolutions& operator=(const DnnConvolutions&) = delete;

  // The bytes of workspace of the plan, or -1 if cuDNN does not compute the problem. REQUIRES: the device of the problem is the
  // current one, also in run().
  std::int64_t workspace(const DnnConvolution& problem);
  // Launches the convolution. Returns false if our own kernels are to compute it: cuDNN has no plan or fails, the workspace is
  // smaller than the plan's, or the operands are not aligned to 16 bytes.
  bool run(const DnnConvolution& problem, const DnnOperands& operands);
  // Two functions for measurements. configurations() lists all that a heuristic proposes, the best first. use() makes one of
  // them the plan of the problem, in place of the one it has, and returns the bytes of its workspace, or -1 if cuDNN refuses
  // it. REQUIRES for use(): no captured graph holds the earlier plan.
  std::vector<DnnConfiguration> configurations(const DnnConvolution& problem, int mode);
  std::int64_t use(const DnnConvolution& problem, int mode, int index);
  // The text of the most recent failure, or an empty text.
  std::string last_failure() const;

 private:
  DnnPlan* plan_of(const DnnApi& api, const DnnConvolution& problem, bool may_plan);
  DnnHandle handle_of(const DnnApi& api, int device);
  void fail(const DnnApi& api, const char* step, DnnStatus status);

  mutable std::mutex mutex_;
  std::size_t most_plans_;
  std::map<std::vector<std::int64_t>, std::unique_ptr<DnnPlan>> plans_;  // null: our own kernels compute this shape
  std::map<int, DnnHandle> handles_;                                     // by device; null: cuDNN does not start there
  std::string last_failure_;
};

// The plans of this process.
DnnConvolutions& dnn_convolutions();

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
