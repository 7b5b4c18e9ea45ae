#include <tapedeck/tests/gpu/bench/prepared_call.h>

#include <tapedeck/engine/text/example.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>

namespace tapedeck::gpu {

namespace cuda = kernels::cuda;

namespace {

template <class T>
void fill_numbers(std::vector<unsigned char>* bytes, double low, double high) {
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

void fill_type(std::vector<unsigned char>* bytes, DType d, double low, double high) {
  switch (d) {
    case DType::f32:
      return fill_numbers<float>(bytes, low, high);
    case DType::f64:
      return fill_numbers<double>(bytes, low, high);
    case DType::i32:
      return fill_numbers<std::int32_t>(bytes, low, high);
    case DType::i64:
      return fill_numbers<std::int64_t>(bytes, low, high);
    case DType::f16:
    case DType::bf16:
      return fill_halves(bytes, d);
    default:
      return;  // zeros
  }
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

ParsedExample parse_call(const std::string& example) {
  const Op* op = find_op(example.substr(0, example.find('(')));
  if (!op) throw std::runtime_error("no such op");
  return parse_example(*op, example);
}

}  // namespace

void must(const char* error) {
  if (error) throw std::runtime_error(error);
}

DeviceMemory::~DeviceMemory() {
  for (void* block : blocks_) cuda::device_free(block);
}

void* DeviceMemory::take(std::size_t bytes) {
  void* block = nullptr;
  must(cuda::device_allocate(0, std::max<std::size_t>(bytes, 256), &block));
  blocks_.push_back(block);
  return block;
}

std::vector<unsigned char> random_bytes(const Type& type, double low, double high, std::size_t most_random) {
  const auto n = static_cast<std::size_t>(type.bytes());
  std::vector<unsigned char> bytes(std::min(n, most_random));
  fill_type(&bytes, type.dtype, low, high);
  const std::size_t drawn = bytes.size();
  bytes.resize(n);
  for (std::size_t i = drawn; i < n; i += drawn) std::memcpy(bytes.data() + i, bytes.data(), std::min(drawn, n - i));
  return bytes;
}

PreparedCall::PreparedCall(const std::string& example, DType real, std::size_t most_random) {
  const ParsedExample e = parse_call(example);
  const Op& op = *e.op;
  entry_ = cuda::find_kernel(op.name);
  if (!entry_ || !entry_->kernel) throw std::runtime_error("no kernel");
  if (is_floating(real) && dtype_size(real) == 2 && !entry_->native_half) throw std::runtime_error("no kernel for halves");
  attributes_ = e.attributes;
  must(cuda::stream_create(0, &stream_));
  for (const ExampleOperand& o : e.operands) {
    types_.push_back({is_floating(o.type.dtype) ? real : o.type.dtype, o.type.shape});
    const std::vector<unsigned char> bytes = random_bytes(types_.back(), o.low, o.high, most_random);
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
  call_.attrs = op.attrs ? attributes_.data() : nullptr;
  call_.stream = stream_;
  call_.fault = &fault_;
  if (entry_->workspace) call_.workspace_bytes = static_cast<std::size_t>(entry_->workspace(call_));
  if (call_.workspace_bytes > 0) call_.workspace = memory_.take(call_.workspace_bytes);
}

PreparedCall::~PreparedCall() {
  if (stream_) cuda::stream_destroy(stream_);
}

void PreparedCall::wait() {
  must(cuda::synchronize(stream_));
  if (const char* what = fault_.what.load()) throw std::runtime_error(what);
}

double PreparedCall::bytes() const {
  double bytes = 0;
  for (const Type& t : types_) bytes += static_cast<double>(t.bytes());
  for (const Type& t : results_) bytes += static_cast<double>(t.bytes());
  return bytes;
}

}  // namespace tapedeck::gpu
