#include <tapedeck/tests/gpu/bench/kernel_bench.h>

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/engine/text/example.h>
#include <tapedeck/kernels/cuda/kernel_table.h>
#include <tapedeck/kernels/cuda/runtime.h>

#include <cstring>
#include <random>
#include <stdexcept>

namespace tapedeck::gpu {
namespace {

namespace cuda = kernels::cuda;

void must(const char* error) {
  if (error) throw std::runtime_error(error);
}

// Memory of the device, released at the end.
class Memory {
 public:
  ~Memory() {
    for (void* block : blocks_) cuda::device_free(block);
  }
  void* take(std::size_t bytes) {
    void* block = nullptr;
    must(cuda::device_allocate(0, std::max<std::size_t>(bytes, 256), &block));
    blocks_.push_back(block);
    return block;
  }

 private:
  std::vector<void*> blocks_;
};

template <class T>
void fill(std::vector<unsigned char>* bytes, double low, double high) {
  std::mt19937 random(1);
  const std::size_t n = bytes->size() / sizeof(T);
  for (std::size_t i = 0; i < n; ++i) {
    const T value = static_cast<T>(low + (high - low) * (random() % 4096) / 4096.0);
    std::memcpy(bytes->data() + i * sizeof value, &value, sizeof value);
  }
}

// The bits of bf16 and f16 numbers: random mantissas below 2, with both signs.
void fill_halves(std::vector<unsigned char>* bytes, DType d) {
  std::mt19937 random(1);
  for (std::size_t i = 0; i + 1 < bytes->size(); i += 2) {
    const unsigned bits = static_cast<unsigned>(random());
    const auto half = static_cast<std::uint16_t>(d == DType::bf16 ? (bits & 0x807fu) | 0x3f00u : (bits & 0x83ffu) | 0x3800u);
    std::memcpy(bytes->data() + i, &half, 2);
  }
}

std::vector<unsigned char> random_bytes(const Type& type, double low, double high) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(type.bytes()));
  switch (type.dtype) {
    case DType::f32:
      fill<float>(&bytes, low, high);
      break;
    case DType::f64:
      fill<double>(&bytes, low, high);
      break;
    case DType::i32:
      fill<std::int32_t>(&bytes, low, high);
      break;
    case DType::i64:
      fill<std::int64_t>(&bytes, low, high);
      break;
    case DType::f16:
    case DType::bf16:
      fill_halves(&bytes, type.dtype);
      break;
    default:
      break;  // zeros
  }
  return bytes;
}

View dense_view(const Type& type, void* data) {
  View v;
  v.data = data;
  v.dtype = type.dtype;
  v.rank = type.shape.rank;
  for (int d = 0; d < v.rank; ++d) v.sizes[d] = type.shape.sizes[d];
  dense_strides(type.shape, v.strides);
  return v;
}

// A call of an op with all that it reads and writes on the device.
class Prepared {
 public:
  Prepared(const ParsedExample& e, DType real) {
    const Op& op = *e.op;
    entry_ = cuda::find_kernel(op.name);
    if (!entry_ || !entry_->kernel) throw std::runtime_error("no kernel");
    if (is_floating(real) && dtype_size(real) == 2 && !entry_->native_half) throw std::runtime_error("no kernel for halves");
    must(cuda::stream_create(0, &stream_));
    for (const ExampleOperand& o : e.operands) {
      types_.push_back({is_floating(o.type.dtype) ? real : o.type.dtype, o.type.shape});
      const std::vector<unsigned char> bytes = random_bytes(types_.back(), o.low, o.high);
      views_.push_back(dense_view(types_.back(), memory_.take(bytes.size())));
      must(cuda::copy_to_device(views_.back().data, bytes.data(), bytes.size(), stream_));
      must(cuda::synchronize(stream_));
    }
    infer_types(op, types_, e.attrs(), results_);
    for (const Type& t : results_) views_.push_back(dense_view(t, memory_.take(static_cast<std::size_t>(t.bytes()))));
    if (op.cost) flops_ = op.cost(types_, results_, e.attrs()).flops;
    call_.inputs = views_.data();
    call_.outputs = views_.data() + types_.size();
    call_.n_inputs = static_cast<std::int32_t>(types_.size());
    call_.n_outputs = static_cast<std::int32_t>(results_.size());
    call_.attrs = e.attrs();
    call_.stream = stream_;
    call_.fault = &fault_;
    if (entry_->workspace) call_.workspace_bytes = static_cast<std::size_t>(entry_->workspace(call_));
    if (call_.workspace_bytes > 0) call_.workspace = memory_.take(call_.workspace_bytes);
  }
  ~Prepared() {
    if (stream_) cuda::stream_destroy(stream_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  void run() { entry_->kernel(call_); }
  void wait() {
    must(cuda::synchronize(stream_));
    if (const char* what = fault_.what.load()) throw std::runtime_error(what);
  }
  double bytes() const {
    double bytes = 0;
    for (const Type& t : types_) bytes += static_cast<double>(t.bytes());
    for (const Type& t : results_) bytes += static_cast<double>(t.bytes());
    return bytes;
  }
  double flops() const { return flops_; }

 private:
  Memory memory_;
  const cuda::KernelEntry* entry_ = nullptr;
  cuda::Stream stream_ = nullptr;
  std::vector<Type> types_, results_;
  std::vector<View> views_;
  KernelFault fault_;
  KernelCall call_;
  double flops_ = 0;
};

}  // namespace

std::vector<KernelCase> kernel_cases() {
  const std::vector<DType> f32 = {DType::f32};
  std::vector<KernelCase> cases = {
      {"copy(f32[64,1024,1024])", Unit::gigabytes, f32},
      {"add(f32[64,1024,1024], f32[64,1024,1024])"},
      {"relu(f32[64,1024,1024])"},
      {"gelu(f32[64,1024,1024])"},
      {"softmax(f32[8192,1024]) {axis=1}"},
      {"softmax(f32[1024,50257]) {axis=1}"},
      {"layer_norm(f32[65536,768], f32[768], f32[768])"},
      {"sum(f32[64,1024,1024]) {axes=[0,1,2]}"},
      {"sum(f32[65536,768]) {axes=[0]}"},
      {"batch_norm(f32[64,64,56,56], f32[64], f32[64])"},
      {"dropout(f32[64,1024,1024], i64[2] in (0,100)) {p=0.1}"},
      {"adamw(f32[8192,1024], f32[8192,1024], f32[8192,1024], f32[8192,1024] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))",
       Unit::gigabytes, f32},
      {"embedding(f32[50257,768], i32[65536] in (0,50257))"},
      {"embedding_grad(i32[8192] in (0,50257), f32[8192,768]) {rows=50257}"},
      {"cross_entropy(f32[1024,50257], i32[1024] in (0,50257))"}};
  for (const char* shapes : {"[1024,1024], f32[1024,1024]", "[4096,4096], f32[4096,4096]", "[64,256], f32[256,256]",
                             "[1024,256], f32[256,1024]", "[8,4,128,64], f32[8,4,64,128]"})
    cases.push_back({std::string("matmul(f32") + shapes + ")", Unit::teraflops});
  const std::vector<DType> all = {DType::f32, DType::bf16};
  cases.push_back({"conv2d(f32[32,64,32,32], f32[64,64,3,3]) {padding=[1]}", Unit::teraflops, all});
  cases.push_back({"conv2d_input_grad(f32[32,64,32,32], f32[64,64,3,3]) {padding=[1], size=[32,32]}", Unit::teraflops, all});
  cases.push_back({"conv2d_weight_grad(f32[32,64,32,32], f32[32,64,32,32]) {padding=[1], size=[3,3]}", Unit::teraflops, all});
  cases.push_back({"conv2d(f32[32,256,14,14], f32[256,256,3,3]) {padding=[1]}", Unit::teraflops, all});
  cases.push_back({"scaled_dot_product_attention(f32[8,4,128,64], f32[8,4,128,64], f32[8,4,128,64]) {scale=0.125, causal=true}",
                   Unit::teraflops, all});
  cases.push_back({"scaled_dot_product_attention(f32[4,12,1024,64], f32[4,12,1024,64], f32[4,12,1024,64]) {scale=0.125}",
                   Unit::teraflops, all});
  return cases;
}

void bench_kernel(const KernelCase& c, double seconds, Rows* rows) {
  for (const DType real : c.reals) {
    const std::string name = c.example.substr(0, c.example.rfind(")") + 1) + " " + dtype_name(real);
    try {
      const Op* op = find_op(c.example.substr(0, c.example.find('(')));
      if (!op) throw std::runtime_error("no such op");
      const ParsedExample example = parse_example(*op, c.example);
      Prepared prepared(example, real);
      const Times t = measure([&] { prepared.run(); }, [&] { prepared.wait(); }, seconds, 3, 20);
      if (c.unit == Unit::gigabytes)
        rows->add(name, t, {{"GB_per_s", fmt::format("{:.1f}", prepared.bytes() / t.us / 1e3)}});
      else
        rows->add(name, t, {{"TFLOP_per_s", fmt::format("{:.2f}", prepared.flops() / t.us / 1e6)}});
    } catch (const std::exception& error) {
      rows->failed(name, error.what());
    }
  }
}

}  // namespace tapedeck::gpu
