// Convolution with oneDNN. Chunks of images run as tasks, and each chunk runs in groups of a few images; see conv_plan.h.
//
// The workspace holds, in this order: the weights in oneDNN's layout (forward and input gradient); then for every chunk one
// group of input images and one of output images, oneDNN's scratchpad, and (weight gradient) the chunk's sum of dw and the dw
// of one group. The sums of the chunks are added in order.
#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cpu/convolution/conv_plan.h>
#include <tapedeck/kernels/cpu/convolution/conv_primitives.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/onednn.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <atomic>

namespace tapedeck::kernels::cpu {
namespace {

// A runner that is taken from its entry and given back at the end of the scope.
class Loan {
 public:
  explicit Loan(ConvEntry& entry) : entry_(entry), runner_(entry.take()) {}
  ~Loan() { entry_.give_back(std::move(runner_)); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  ConvRunner* operator->() const { return runner_.get(); }

 private:
  ConvEntry& entry_;
  std::unique_ptr<ConvRunner> runner_;
};

// One convolution, as all its tasks see it.
struct Job {
  ConvPass pass;
  ConvShape shape;
  ConvStrides strides;
  DType dtype;  // f32 or bf16
  ConvPlan plan;
  ConvEntry* main = nullptr;  // the primitives for a full group
  ConvEntry* rest = nullptr;  // the primitives for the last group of a chunk, if that group is smaller
  ConvEntry* tail = nullptr;  // the primitives for the last group of the last chunk, if that group is smaller
  std::int64_t a_bytes = 0, b_bytes = 0, out_bytes = 0, scratch_bytes = 0;

  std::int64_t rest_of(std::int64_t images) const { return images % plan.group; }
  std::int64_t last_chunk() const { return shape.batch - (plan.chunks - 1) * plan.images_per_chunk; }

  ConvEntry* entry_for(std::int64_t images) const {
    if (images == plan.group) return main;
    return images == rest_of(plan.images_per_chunk) ? rest : tail;
  }
  // The address of element `index` of a tensor.
  const char* at(const void* data, std::int64_t index) const {
    return static_cast<const char*>(data) + index * static_cast<std::int64_t>(dtype_size(dtype));
  }
  bool sums_weights() const { return pass == ConvPass::weight_grad; }
  std::int64_t shared_bytes() const { return sums_weights() ? 0 : b_bytes; }
  std::int64_t chunk_bytes() const {
    return sums_weights() ? a_bytes + b_bytes + 2 * out_bytes + scratch_bytes : a_bytes + out_bytes + scratch_bytes;
  }
  std::int64_t bytes() const { return shared_bytes() + plan.chunks * chunk_bytes(); }
};

void count_bytes(Job& job, ConvEntry* entry) {
  if (!entry) return;
  const ConvPrimitives& p = entry->primitives();
  const auto grow = [](std::int64_t& bytes, std::size_t need) {
    bytes = std::max(bytes, align64(static_cast<std::int64_t>(need)));
  };
  grow(job.a_bytes, p.a.bytes());
  grow(job.b_bytes, p.b.bytes());
  grow(job.out_bytes, job.sums_weights() ? p.out.wanted.get_size() : p.out.bytes());
  grow(job.scratch_bytes, p.scratchpad.get_size());
}

// Finds the primitives of the job. Returns false if oneDNN refuses the shape.
bool prepare(Job& job) {
  const auto entry = [&](std::int64_t images) { return conv_entry(job.pass, job.shape, job.dtype, images, job.plan.group); };
  job.rest = job.tail = nullptr;
  job.main = entry(job.plan.group);
  if (!job.main) return false;
  if (const std::int64_t n = job.rest_of(job.plan.images_per_chunk); n > 0 && !(job.rest = entry(n))) return false;
  if (const std::int64_t n = job.rest_of(job.last_chunk()); n > 0 && !(job.tail = entry(n))) return false;
  job.a_bytes = job.b_bytes = job.out_bytes = job.scratch_bytes = 0;
  for (ConvEntry* e : {job.main, job.rest, job.tail}) count_bytes(job, e);
  return true;
}

// Calls f(runner, first image) for the groups of a chunk, and stops where f returns false.
template <class F>
bool for_groups(const Job& job, std::int64_t chunk, F&& f) {
  const std::int64_t end = std::min(job.shape.batch, (chunk + 1) * job.plan.images_per_chunk);
  for (std::int64_t image = chunk * job.plan.images_per_chunk; image < end; image += job.plan.group) {
    const std::int64_t n = std::min(job.plan.group, end - image);
    const Loan runner(*job.entry_for(n));
    if (!f(*runner.operator->(), image)) return false;
  }
  return true;
}

// Computes the forward pass or the input gradient of the images of one chunk: the images that one task of parallel_for
// computes, one group after the other. `weights` are the weights in oneDNN's layout, `weights_plain` the same weights in ours;
// a primitive reads one of the two. Returns false if oneDNN reports an error.
bool run_images(const Job& job, std::int64_t chunk, const void* in, const void* weights_plain, void* weights, void* out,
                char* scratch) {
  const bool forward = job.pass == ConvPass::forward;
  const std::int64_t in_stride = forward ? job.strides.in : job.strides.out,
                     out_stride = forward ? job.strides.out : job.strides.in;
  return for_groups(job, chunk, [&](ConvRunner& r, std::int64_t image) {
    r.set_a(job.at(in, image * in_stride), in_stride, scratch);
    r.set_out(job.at(out, image * out_stride), out_stride, scratch + job.a_bytes);
    r.set_b(weights_plain, weights);
    r.set_scratchpad(scratch + job.a_bytes + job.out_bytes);
    return r.reorder_a() && r.compute() && r.reorder_out();
  });
}

bool convolve_images(const Job& job, const void* in, const void* weights, void* out, char* workspace) {
  {
    const OneThread one_thread;
    const Loan runner(*job.main);
    runner->set_b(weights, workspace);
    if (!runner->reorder_b()) return false;
  }
  char* const chunks = workspace + job.shared_bytes();
  std::atomic<bool> ok{true};
  parallel_for(job.plan.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    const OneThread one_thread;
    for (std::int64_t c = begin; c < end; ++c)
      if (!run_images(job, c, in, weights, workspace, out, chunks + c * job.chunk_bytes())) ok = false;
  });
  return ok;
}

float* sum_of_chunk(const Job& job, char* workspace, std::int64_t chunk) {
  return reinterpret_cast<float*>(workspace + chunk * job.chunk_bytes() + job.a_bytes + job.b_bytes);
}

void add_to(float* sum, const float* x, std::int64_t bytes) {
  TAPEDECK_INDEPENDENT
  for (std::int64_t i = 0; i < bytes / 4; ++i) sum[i] += x[i];
}

// Computes the weight gradient of one chunk: the first group writes the chunk's sum, and the other groups add to it.
bool run_weights(const Job& job, std::int64_t chunk, const void* dy, const void* x, char* workspace) {
  char* const scratch = workspace + chunk * job.chunk_bytes();
  float* const sum = sum_of_chunk(job, workspace, chunk);
  float* const piece = sum + job.out_bytes / 4;
  const std::int64_t bytes = static_cast<std::int64_t>(job.main->primitives().out.wanted.get_size());
  bool first = true;
  return for_groups(job, chunk, [&](ConvRunner& r, std::int64_t image) {
    float* const to = first ? sum : piece;
    r.set_a(job.at(dy, image * job.strides.out), job.strides.out, scratch);
    r.set_b(job.at(x, image * job.strides.in), job.strides.in, scratch + job.a_bytes);
    r.set_out(to, to);
    r.set_scratchpad(piece + job.out_bytes / 4);
    if (!r.reorder_a() || !r.reorder_b() || !r.compute()) return false;
    if (!first) add_to(sum, piece, bytes);
    first = false;
    return true;
  });
}

bool convolve_weights(const Job& job, const void* dy, const void* x, void* dw, char* workspace) {
  std::atomic<bool> ok{true};
  parallel_for(job.plan.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    const OneThread one_thread;
    for (std::int64_t c = begin; c < end; ++c)
      if (!run_weights(job, c, dy, x, workspace)) ok = false;
  });
  if (!ok) return false;
  const ConvOperand& out = job.main->primitives().out;
  const std::int64_t bytes = static_cast<std::int64_t>(out.wanted.get_size());
  float* const total = sum_of_chunk(job, workspace, 0);
  for (std::int64_t c = 1; c < job.plan.chunks; ++c) add_to(total, sum_of_chunk(job, workspace, c), bytes);
  if (!out.reordered()) {
    std::copy(total, total + job.shape.weight_size(), static_cast<float*>(dw));
    return true;
  }
  const OneThread one_thread;
  const Loan runner(*job.main);
  runner->set_out(dw, total);
  return runner->reorder_out();
}

bool convolve_elements(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, DType dtype, const void* first,
                       const void* second, void* output, void* workspace, std::size_t workspace_bytes) {
  if (workspace_bytes < static_cast<std::size_t>(conv_workspace(pass, shape))) return false;
  Job job;
  job.pass = pass;
  job.shape = shape;
  job.strides = strides;
  job.dtype = dtype;
  job.plan = conv_plan(pass, shape);
  if (!prepare(job)) return false;
  const auto room = static_cast<std::int64_t>(workspace_bytes);
  if (job.bytes() > room && job.plan.group > 1) {  // groups of one image need no room for packed images
    job.plan.group = 1;
    if (!prepare(job)) return false;
  }
  if (job.bytes() > room) return false;
  char* const bytes = static_cast<char*>(workspace);
  return job.sums_weights() ? convolve_weights(job, first, second, output, bytes)
                            : convolve_images(job, first, second, output, bytes);
}

}  // namespace

bool convolve_onednn(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const float* first, const float* second,
                     float* output, void* workspace, std::size_t workspace_bytes) {
  return convolve_elements(pass, shape, strides, DType::f32, first, second, output, workspace, workspace_bytes);
}

bool convolve_onednn_bf16(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const std::uint16_t* first,
                          const std::uint16_t* second, std::uint16_t* output, void* workspace, std::size_t workspace_bytes) {
  return convolve_elements(pass, shape, strides, DType::bf16, first, second, output, workspace, workspace_bytes);
}

}  // namespace tapedeck::kernels::cpu
