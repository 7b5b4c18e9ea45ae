#include <tapedeck/tests/gpu/bench/kernel_bench.h>

#include <tapedeck/tests/gpu/bench/prepared_call.h>

#include <stdexcept>

namespace tapedeck::gpu {

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
  for (const auto& [shape, attributes] :
       {std::pair{"8,4,128,64", "{scale=0.125, causal=true}"}, std::pair{"4,12,1024,64", "{scale=0.125}"}}) {
    const std::string rows = fmt::format("f32[{}]", shape), numbers = rows.substr(0, rows.rfind(',')) + "] in (5,7)";
    cases.push_back({fmt::format("scaled_dot_product_attention({0}, {0}, {0}) {1}", rows, attributes), Unit::teraflops, all});
    cases.push_back(
        {fmt::format("scaled_dot_product_attention_grad({0}, {0}, {0}, {0}, {1}, {0}, {1}) {2}", rows, numbers, attributes),
         Unit::teraflops, all});
  }
  return cases;
}

void bench_kernel(const KernelCase& c, double seconds, Rows* rows) {
  for (const DType real : c.reals) {
    const std::string name = c.example.substr(0, c.example.rfind(")") + 1) + " " + dtype_name(real);
    try {
      PreparedCall prepared(c.example, real);
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
