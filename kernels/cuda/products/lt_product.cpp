// Products on cuBLASLt. The file begins with a product in its words (Shape). The descriptors and the algorithm of a shape
// follow (LtPlan), then the state that the process keeps of them, and last the product itself.
#include <tapedeck/kernels/cuda/environment.h>
#include <tapedeck/kernels/cuda/lt_api.h>
#include <tapedeck/kernels/cuda/products/lt_constants.h>
#include <tapedeck/kernels/cuda/products/lt_product.h>
#include <tapedeck/kernels/half.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace tapedeck::kernels::cuda {
namespace {

constexpr std::size_t kMaxShapes = 1024;   // that are kept; the oldest makes room
constexpr std::int64_t kMaxLaunches = 32;  // of one product whose batch does not join into one dimension
constexpr std::int64_t kLargestSize = std::int64_t{1} << 30;
// Alignments above this one make no difference to the algorithms. Below it the plan's memory and eager memory agree, because
// both begin at multiples of 64 bytes.
constexpr std::uint64_t kAlignment = 16;

// ---- what cuBLASLt is asked for ----

// One operand as cuBLASLt sees it: column-major, so that a row-major matrix of ours reads as its transpose.
struct LtOperand {
  std::int64_t leading = 0;
  bool column_major = false;  // ours is column-major, so cuBLASLt is to transpose it
  std::int64_t batch_stride = 0;
};

// Everything that the descriptors and the algorithm depend on, and nothing else. The order of the words is the order of keys.
struct Shape {
  const LtApi* api = nullptr;
  std::int64_t device = 0, dtype = 0, m = 0, n = 0, k = 0, batch = 1;
  LtOperand a, b;
  std::int64_t alignment_a = 0, alignment_b = 0, alignment_out = 0, workspace = 0;
  bool bias = false, tf32 = false;

  auto words() const {
    return std::array<std::int64_t, 19>{reinterpret_cast<std::intptr_t>(api),
                                        device,
                                        dtype,
                                        m,
                                        n,
                                        k,
                                        batch,
                                        a.leading,
                                        a.column_major,
                                        a.batch_stride,
                                        b.leading,
                                        b.column_major,
                                        b.batch_stride,
                                        alignment_a,
                                        alignment_b,
                                        alignment_out,
                                        workspace,
                                        bias,
                                        tf32};
  }
};

LtDataType data_type(DType d) {
  switch (d) {
    case DType::f64:
      return lt::kReal64;
    case DType::f16:
      return lt::kReal16;
    case DType::bf16:
      return lt::kRealBf16;
    default:
      return lt::kReal32;
  }
}

bool has_data_type(DType d) { return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16; }

// Describes a matrix [rows,cols]. False if it is neither row-major nor column-major. The stride of a dimension of size 1 means
// nothing, and is not looked at.
bool describe(const MatrixBatch& x, std::int64_t rows, std::int64_t cols, LtOperand* result) {
  if ((cols == 1 || x.col_stride == 1) && (rows == 1 || x.row_stride >= cols)) {
    result->column_major = false;
    result->leading = rows == 1 ? cols : x.row_stride;
    return true;
  }
  if ((rows == 1 || x.row_stride == 1) && (cols == 1 || x.col_stride >= rows)) {
    result->column_major = true;
    result->leading = cols == 1 ? rows : x.col_stride;
    return true;
  }
  return false;
}

// The largest power of two, up to kAlignment, that divides the place of every matrix that a launch may begin with.
std::int64_t alignment_of(const void* data, std::int64_t element_bytes, const std::int64_t* strides, int rank) {
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(data) | kAlignment;
  for (int d = 0; d < rank; ++d) bits |= static_cast<std::uint64_t>(strides[d] * element_bytes);
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

bool small_enough(const Product& p) {
  return p.m <= kLargestSize && p.n <= kLargestSize && p.k <= kLargestSize && p.batch() <= kLargestSize;
}

// The innermost dimension of the batch is one strided batch; every launch does one of these.
std::int64_t inner_batch(const Product& p) { return p.batch_rank > 0 ? p.batch_sizes[p.batch_rank - 1] : 1; }

// False if cuBLASLt cannot compute the product.
bool shape_of(const Product& p, Shape* shape) {
  if (!has_data_type(p.dtype) || p.k == 0 || is_vector_product(p) || !small_enough(p)) return false;
  if (p.batch() / inner_batch(p) > kMaxLaunches) return false;
  if (!describe(p.a, p.m, p.k, &shape->a) || !describe(p.b, p.k, p.n, &shape->b)) return false;
  const int inner = p.batch_rank - 1;
  if (inner >= 0) {
    shape->a.batch_stride = p.a.batch_strides[inner];
    shape->b.batch_stride = p.b.batch_strides[inner];
  }
  shape->dtype = static_cast<std::int64_t>(p.dtype);
  shape->m = p.m;
  shape->n = p.n;
  shape->k = p.k;
  shape->batch = inner_batch(p);
  const std::int64_t bytes = static_cast<std::int64_t>(dtype_size(p.dtype)), matrix = p.m * p.n;
  shape->alignment_a = alignment_of(p.a.data, bytes, p.a.batch_strides, p.batch_rank);
  shape->alignment_b = alignment_of(p.b.data, bytes, p.b.batch_strides, p.batch_rank);
  shape->alignment_out = alignment_of(p.out, bytes, &matrix, p.batch_rank > 0 ? 1 : 0);
  return true;
}

std::int64_t wanted_workspace(const Product& p) {
  const double multiplications =
      static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) * static_cast<double>(p.batch());
  if (multiplications >= 1 << 27) return 32 << 20;
  return multiplications >= 1 << 21 ? 4 << 20 : 256 << 10;
}

// ---- descriptors and the algorithm of a shape ----

class LtPlan {
 public:
  LtPlan(const LtApi& api, LtHandle handle, const Shape& shape) : api_(api), bias_(shape.bias) {
    usable_ = make_descriptors(shape) && choose(handle, shape);
  }
  ~LtPlan() {
    for (LtLayout layout : {a_, b_, out_})
      if (layout) api_.cublasLtMatrixLayoutDestroy(layout);
    if (matmul_) api_.cublasLtMatmulDescDestroy(matmul_);
  }
  LtPlan(const LtPlan&) = delete;
  LtPlan& operator=(const LtPlan&) = delete;

  // Launches out = a b, plus `old` if it is not null, plus the bias if the shape has one. False if cuBLASLt refuses.
  bool run(LtHandle handle, const void* a, const void* b, const void* old, const void* bias, void* out, void* workspace,
           std::size_t workspace_bytes, void* stream) {
    const std::lock_guard<std::mutex> lock(mutex_);  // the pointer of the bias is a part of the descriptor
    if (!usable_) return false;
    if (bias_ && api_.cublasLtMatmulDescSetAttribute(matmul_, lt::kBiasPointer, &bias, sizeof bias) != 0) return false;
    const float one_f32 = 1, more_f32 = old ? 1 : 0;
    const double one_f64 = 1, more_f64 = old ? 1 : 0;
    const void* alpha = wide_ ? static_cast<const void*>(&one_f64) : &one_f32;
    const void* beta = wide_ ? static_cast<const void*>(&more_f64) : &more_f32;
    const void* c = old ? old : out;
    usable_ = api_.cublasLtMatmul(handle, matmul_, alpha, b, b_, a, a_, beta, c, out_, out, out_, &algorithm_, workspace,
                                  workspace_bytes, stream) == 0;
    return usable_;
  }

 private:
  bool set(LtAttribute attribute, std::int32_t value) {
    return api_.cublasLtMatmulDescSetAttribute(matmul_, attribute, &value, sizeof value) == 0;
  }

  bool make_layout(LtLayout* layout, const Shape& s, std::int64_t rows, std::int64_t cols, std::int64_t leading,
                   std::int64_t batch_stride) {
    if (api_.cublasLtMatrixLayoutCreate(layout, data_type(static_cast<DType>(s.dtype)), static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(cols), leading) != 0)
      return false;
    if (s.batch == 1) return true;
    const auto count = static_cast<std::int32_t>(s.batch);
    return api_.cublasLtMatrixLayoutSetAttribute(*layout, lt::kBatchCount, &count, sizeof count) == 0 &&
           api_.cublasLtMatrixLayoutSetAttribute(*layout, lt::kBatchOffset, &batch_stride, sizeof batch_stride) == 0;
  }

  // The layout of our matrix [rows,cols], as cuBLASLt sees it.
  bool make_layout_of(LtLayout* layout, const Shape& s, const LtOperand& x, std::int64_t rows, std::int64_t cols) {
    return x.column_major ? make_layout(layout, s, rows, cols, x.leading, x.batch_stride)
                          : make_layout(layout, s, cols, rows, x.leading, x.batch_stride);
  }

  bool make_descriptors(const Shape& s) {
    wide_ = static_cast<DType>(s.dtype) == DType::f64;
    const LtComputeType compute = wide_ ? lt::kCompute64 : s.tf32 ? lt::kComputeTf32 : lt::kCompute32;
    if (api_.cublasLtMatmulDescCreate(&matmul_, compute, wide_ ? lt::kReal64 : lt::kReal32) != 0) return false;
    if (!set(lt::kTransposeA, s.b.column_major ? lt::kTransposed : lt::kPlain)) return false;
    if (!set(lt::kTransposeB, s.a.column_major ? lt::kTransposed : lt::kPlain)) return false;
    if (s.bias && !set_bias()) return false;
    return make_layout_of(&a_, s, s.a, s.m, s.k) && make_layout_of(&b_, s, s.b, s.k, s.n) &&
           make_layout(&out_, s, s.n, s.m, s.n, s.m * s.n);
  }

  // Some versions choose no algorithm while the pointer is null, so it points somewhere until run() sets it.
  bool set_bias() {
    alignas(256) static const char anywhere[256] = {};
    const void* bias = anywhere;
    return set(lt::kEpilogue, lt::kEpilogueBias) &&
           api_.cublasLtMatmulDescSetAttribute(matmul_, lt::kBiasPointer, &bias, sizeof bias) == 0;
  }

  template <class T>
  bool prefer(LtPreference preference, LtAttribute attribute, T value) {
    return api_.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value) == 0;
  }

  bool set_preference(LtPreference preference, const Shape& s) {
    // The operands have changed places: the a of cuBLASLt is our b.
    return prefer(preference, lt::kMaxWorkspace, static_cast<std::uint64_t>(s.workspace)) &&
           prefer(preference, lt::kReductionSchemes, lt::kReduceInWorkspace) &&
           prefer(preference, lt::kAlignmentA, static_cast<std::uint32_t>(s.alignment_b)) &&
           prefer(preference, lt::kAlignmentB, static_cast<std::uint32_t>(s.alignment_a)) &&
           prefer(preference, lt::kAlignmentC, static_cast<std::uint32_t>(s.alignment_out)) &&
           prefer(preference, lt::kAlignmentD, static_cast<std::uint32_t>(s.alignment_out));
  }

  bool choose(LtHandle handle, const Shape& s) {
    LtPreference preference = nullptr;
    if (api_.cublasLtMatmulPreferenceCreate(&preference) != 0) return false;
    LtHeuristic found{};
    int count = 0;
    const bool chosen =
        set_preference(preference, s) &&
        api_.cublasLtMatmulAlgoGetHeuristic(handle, matmul_, b_, a_, out_, out_, preference, 1, &found, &count) == 0 &&
        count > 0 && found.state == 0 && found.workspace_bytes <= static_cast<std::size_t>(s.workspace);
    api_.cublasLtMatmulPreferenceDestroy(preference);
    algorithm_ = found.algorithm;
    return chosen;
  }

  const LtApi& api_;
  std::mutex mutex_;
  bool bias_ = false, wide_ = false, usable_ = false;
  LtMatmul matmul_ = nullptr;
  LtLayout a_ = nullptr, b_ = nullptr, out_ = nullptr;
  LtAlgorithm algorithm_{};
};

// ---- the state of the process ----

struct Handle {
  LtHandle handle = nullptr;  // null: `why` says why
  std::string why;
};

struct State {
  std::mutex mutex;
  bool own = is_set_to("TAPEDECK_CUDA_GEMM", "own");
  bool tf32 = is_set_to("TAPEDECK_TF32", "1");
  std::map<int, Handle> handles;  // by device
  std::map<std::array<std::int64_t, 19>, std::shared_ptr<LtPlan>> plans;
  std::deque<std::array<std::int64_t, 19>> oldest_first;
};

// The state is never destroyed, because a thread that still runs at exit may use it.
State& state() {
  static auto* one = new State;
  return *one;
}

std::string error_text(const LtApi& api, LtStatus status) {
  const char* text = api.cublasLtGetStatusString ? api.cublasLtGetStatusString(status) : nullptr;
  return text ? text : "status " + std::to_string(status);
}

// The caller holds the mutex of the state.
const Handle& handle_of(State& s, const LtApi& api, int device) {
  const auto found = s.handles.find(device);
  if (found != s.handles.end()) return found->second;
  Handle made;
  const LtStatus status = api.cublasLtCreate(&made.handle);
  if (status != 0) {
    made.handle = nullptr;
    made.why = "cuBLASLt does not start: " + error_text(api, status);
  }
  return s.handles.emplace(device, std::move(made)).first->second;
}

// Null if cuBLASLt is not to be used.
LtHandle usable_handle(State& s, const LtApi** api, int device, std::string* why) {
  if (s.own) {
    if (why) *why = "TAPEDECK_CUDA_GEMM=own asks for our own kernels";
    return nullptr;
  }
  *api = lt_api(why);
  if (!*api) return nullptr;
  const Handle& handle = handle_of(s, **api, device);
  if (!handle.handle && why) *why = handle.why;
  return handle.handle;
}

// The caller holds the mutex of the state.
std::shared_ptr<LtPlan> plan_of(State& s, const LtApi& api, LtHandle handle, const Shape& shape) {
  const auto words = shape.words();
  const auto found = s.plans.find(words);
  if (found != s.plans.end()) return found->second;
  if (s.plans.size() >= kMaxShapes) {
    s.plans.erase(s.oldest_first.front());
    s.oldest_first.pop_front();
  }
  auto plan = std::make_shared<LtPlan>(api, handle, shape);
  s.plans.emplace(words, plan);
  s.oldest_first.push_back(words);
  return plan;
}

// ---- one product ----

// Whether cuBLASLt can add `old` itself: it must lie as the result does.
bool lies_like_result(const Product& p, std::int64_t alignment) {
  if ((p.n > 1 && p.old.col_stride != 1) || (p.m > 1 && p.old.row_stride != p.n)) return false;
  std::int64_t dense = p.m * p.n;
  for (int d = p.batch_rank - 1; d >= 0; --d) {
    if (p.old.batch_strides[d] != dense) return false;
    dense *= p.batch_sizes[d];
  }
  return reinterpret_cast<std::uintptr_t>(p.old.data) % static_cast<std::uint64_t>(alignment) == 0;
}

bool bias_fits(const Product& p) {
  return (p.bias_stride == 1 || p.n == 1) && reinterpret_cast<std::uintptr_t>(p.bias) % kAlignment == 0;
}

const void* moved(const void* data, std::int64_t elements, DType dtype) {
  return static_cast<const char*>(data) + elements * static_cast<std::int64_t>(dtype_size(dtype));
}

// The offset, in elements, of launch number `index` over all dimensions of the batch but the innermost one.
std::int64_t outer_offset(const Product& p, std::int64_t index, const std::int64_t* strides) {
  std::int64_t offset = 0;
  for (int d = p.batch_rank - 2; d >= 0; --d) {
    offset += index % p.batch_sizes[d] * strides[d];
    index /= p.batch_sizes[d];
  }
  return offset;
}

struct Target {
  LtHandle handle;
  void* workspace;
  std::size_t workspace_bytes;
  void* stream;
};

LtDone run(LtPlan& plan, const Product& p, const Target& to, bool with_old, bool with_bias) {
  const std::int64_t step = inner_batch(p) * p.m * p.n, launches = p.batch() / inner_batch(p);
  for (std::int64_t i = 0; i < launches; ++i) {
    const void* a = moved(p.a.data, outer_offset(p, i, p.a.batch_strides), p.dtype);
    const void* b = moved(p.b.data, outer_offset(p, i, p.b.batch_strides), p.dtype);
    const void* old = with_old ? moved(p.old.data, i * step, p.dtype) : nullptr;
    void* out = static_cast<char*>(p.out) + i * step * static_cast<std::int64_t>(dtype_size(p.dtype));
    if (!plan.run(to.handle, a, b, old, with_bias ? p.bias : nullptr, out, to.workspace, to.workspace_bytes, to.stream))
      return i == 0 ? LtDone::nothing : LtDone::failed;
  }
  return (p.old.data && !with_old) || (p.bias && !with_bias) ? LtDone::product : LtDone::everything;
}

}  // namespace

bool lt_usable(int device, std::string* why) {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const LtApi* api = nullptr;
  return usable_handle(s, &api, device, why) != nullptr;
}

std::int64_t lt_workspace(const Product& p, int device) {
  Shape shape;
  return shape_of(p, &shape) && lt_usable(device) ? wanted_workspace(p) : 0;
}

LtDone lt_multiply(const Product& p, int device, void* workspace, std::size_t workspace_bytes, void* stream) {
  Shape shape;
  if (!shape_of(p, &shape)) return LtDone::nothing;
  const bool with_old = p.old.data && lies_like_result(p, shape.alignment_out);
  if (p.old.data == p.out && !with_old) return LtDone::nothing;
  shape.device = device;
  shape.workspace = std::min(wanted_workspace(p), static_cast<std::int64_t>(workspace_bytes));
  shape.bias = p.bias && bias_fits(p);
  // A sum that is added to a half afterwards would be added to a number that is rounded already.
  const bool all_at_once = is_half(p.dtype);
  if (all_at_once && ((p.old.data && !with_old) || (p.bias && !shape.bias))) return LtDone::nothing;

  State& s = state();
  std::shared_ptr<LtPlan> plan;
  Target to{nullptr, workspace, static_cast<std::size_t>(shape.workspace), stream};
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    to.handle = usable_handle(s, &shape.api, device, nullptr);
    if (!to.handle) return LtDone::nothing;
    shape.tf32 = s.tf32 && p.dtype == DType::f32;
    plan = plan_of(s, *shape.api, to.handle, shape);
  }
  const LtDone done = run(*plan, p, to, with_old, shape.bias);
  if (done != LtDone::nothing || !shape.bias || all_at_once) return done;
  // There may be no algorithm that adds a bias in this type.
  shape.bias = false;
  {
    const std::lock_guard<std::mutex> lock(s.mutex);
    plan = plan_of(s, *shape.api, to.handle, shape);
  }
  return run(*plan, p, to, with_old, false);
}

std::size_t lt_shapes_kept() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  return s.plans.size();
}

void forget_products() {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.plans.clear();
  s.oldest_first.clear();
  s.handles.clear();
  s.own = is_set_to("TAPEDECK_CUDA_GEMM", "own");
  s.tf32 = is_set_to("TAPEDECK_TF32", "1");
}

}  // namespace tapedeck::kernels::cuda
