// Calls kernels on a GPU at the sizes of real models: odd, skinny and batched products, convolutions of ResNet and MobileNet,
// rows of 50,257 numbers, sums of 16 million. The oracle is the CPU in f64.
#include <tapedeck/tests/gpu/harness/check_op.h>
#include <tapedeck/tests/gpu/harness/gpu_test.h>

#include <iostream>

namespace tapedeck::gpu {
namespace {

struct Sizes {
  const char* family;
  std::vector<const char*> examples;
};

void PrintTo(const Sizes& sizes, std::ostream* out) { *out << sizes.family; }

const std::vector<Sizes> kSizes = {
    {"matmul",
     {"matmul(f32[512,512], f32[512,512])", "matmul(f32[127,129], f32[129,255])", "matmul(f32[1,768], f32[768,3072])",
      "matmul(f32[1000,3], f32[3,1000])", "matmul(f32[8,4,128,64], f32[8,4,64,128])", "matmul(f32[64,784], f32[784,256])",
      "matmul(f32[37,4099], f32[4099,11])", "matmul(f32[32,128,256], f32[256,65])", "matmul(f32[1024,1], f32[1,1024])",
      "matmul(f32[2048,33], f32[33,10])", "matmul(f32[10,2048], f32[2048,10])"}},
    {"conv2d",
     {"conv2d(f32[8,64,32,32], f32[64,64,3,3]) {padding=[1]}",
      "conv2d(f32[4,3,64,64], f32[64,3,7,7]) {stride=[2], padding=[3]}",
      "conv2d(f32[4,64,16,16], f32[128,64,1,1]) {stride=[2]}",
      "conv2d(f32[4,32,28,28], f32[32,1,3,3]) {padding=[1], groups=32}", "conv2d(f32[4,96,14,14], f32[24,96,1,1])",
      "conv2d(f32[2,256,7,7], f32[512,256,3,3]) {stride=[2], padding=[1]}",
      "conv2d(f32[32,128,2,2], f32[256,128,3,3]) {stride=[2], padding=[1]}",
      "conv2d(f32[32,256,1,1], f32[128,256,3,3]) {padding=[1]}"}},
    {"conv2d_input_grad",
     {"conv2d_input_grad(f32[8,64,32,32], f32[64,64,3,3]) {padding=[1], size=[32,32]}",
      "conv2d_input_grad(f32[4,128,8,8], f32[128,64,3,3]) {stride=[2], padding=[1], size=[16,16]}",
      "conv2d_input_grad(f32[4,32,28,28], f32[32,1,3,3]) {padding=[1], groups=32, size=[28,28]}",
      "conv2d_input_grad(f32[4,128,8,8], f32[128,64,1,1]) {stride=[2], size=[16,16]}",
      "conv2d_input_grad(f32[32,256,1,1], f32[256,128,3,3]) {stride=[2], padding=[1], size=[2,2]}"}},
    {"conv2d_weight_grad",
     {"conv2d_weight_grad(f32[8,64,32,32], f32[8,64,32,32]) {padding=[1], size=[3,3]}",
      "conv2d_weight_grad(f32[4,64,32,32], f32[4,3,64,64]) {stride=[2], padding=[3], size=[7,7]}",
      "conv2d_weight_grad(f32[4,32,28,28], f32[4,32,28,28]) {padding=[1], groups=32, size=[3,3]}",
      "conv2d_weight_grad(f32[4,128,8,8], f32[4,64,16,16]) {stride=[2], size=[1,1]}",
      "conv2d_weight_grad(f32[32,128,2,2], f32[32,64,2,2]) {padding=[1], size=[3,3]}"}},
    {"rows",
     {"softmax(f32[64,50257]) {axis=1}", "softmax(f32[1000,33]) {axis=1}", "softmax(f32[4,2,128,128]) {axis=3}",
      "softmax_grad(f32[64,5025] in (0,0.001), f32[64,5025]) {axis=1}", "layer_norm(f32[1024,768], f32[768], f32[768])",
      "layer_norm(f32[3,50257], f32[50257], f32[50257])",
      "layer_norm_grad(f32[1024,768], f32[1024,768], f32[1024], f32[1024] in (0.5,2), f32[1024], f32[1024], f32[768])",
      "cross_entropy(f32[256,50257], i32[256] in (0,50257))", "cross_entropy(f32[2048,10], i64[2048] in (0,10))",
      "cross_entropy_grad(f32[64,50257], i32[64] in (0,50257), f32[])"}},
    {"batch_norm",
     {"batch_norm(f32[32,64,32,32], f32[64], f32[64])", "batch_norm(f32[512,1000], f32[1000], f32[1000])",
      "batch_norm_grad(f32[16,64,16,16], f32[16,64,16,16], f32[64], f32[64] in (0.5,2), f32[64], f32[64], f32[64])"}},
    {"embedding",
     {"embedding(f32[50000,768], i32[1024] in (0,50000))", "embedding_grad(i32[1024] in (0,50000), f32[1024,768]) {rows=50000}",
      "embedding_grad(i64[4096] in (0,7), f32[4096,65]) {rows=1000}"}},
    {"attention",
     {"scaled_dot_product_attention(f32[8,4,128,64], f32[8,4,128,64], f32[8,4,128,64]) {scale=0.125, causal=true}",
      "scaled_dot_product_attention(f32[2,3,100,64], f32[2,3,77,64], f32[2,3,77,64]) {scale=0.125}",
      "scaled_dot_product_attention(f32[1,2,257,80], f32[1,2,257,80], f32[1,2,257,80]) {scale=0.1}",
      "scaled_dot_product_attention(f32[16,20,130,32], f32[16,20,130,32], f32[16,20,130,32]) {scale=0.2, causal=true}",
      "scaled_dot_product_attention(f32[2,2,97,33], f32[2,2,150,33], f32[2,2,150,128], f32[2,1,97,150]) {scale=0.2}",
      "scaled_dot_product_attention_grad(f32[2,4,128,64], f32[2,4,128,64], f32[2,4,128,64], f32[2,4,128,64], f32[2,4,128] in "
      "(5,7), f32[2,4,128,64], f32[2,4,128]) {scale=0.125, causal=true}",
      "scaled_dot_product_attention_grad(f32[16,20,130,32], f32[16,20,130,32], f32[16,20,130,32], f32[16,20,130,32], "
      "f32[16,20,130] in (5,7), f32[16,20,130,32], f32[16,20,130]) {scale=0.2, causal=true}",
      "scaled_dot_product_attention_grad(f32[1,3,65,80], f32[1,3,97,80], f32[1,3,97,80], f32[1,3,65,80], f32[1,3,65] in (5,7), "
      "f32[1,3,65,80], f32[1,3,65]) {scale=0.1}"}},
    {"sums",
     {"sum(f32[16777216]) {axes=[0]}", "sum(f32[1023,4097]) {axes=[0]}", "sum(f32[1023,4097]) {axes=[1]}",
      "sum(f32[32,64,33,31]) {axes=[0,2,3]}", "mean(f32[4096,1000]) {axes=[0,1]}", "mean(f32[64,512,7,7]) {axes=[2,3]}"}},
    {"pools",
     {"max_pool2d(f32[8,64,112,112]) {window=[3], stride=[2], padding=[1]}",
      "max_pool2d_index(f32[8,64,33,33]) {window=[3], stride=[2], padding=[1]}", "avg_pool2d(f32[8,64,56,56])",
      "avg_pool2d_grad(f32[8,64,28,28]) {size=[56,56]}"}},
    {"pointwise",
     {"add(f32[3,500,777], f32[3,500,777])", "add(f32[512,1000], f32[1000])", "mul(f32[3,500,777], f32[1])",
      "relu(f32[1048583])", "gelu(f32[1000,3072])", "tanh(f32[1000,1001])", "gelu_grad(f32[1000,77], f32[1000,77])",
      "lstm_cell(f32[20,2600], f32[20,650])", "gru_cell(f32[32,768], f32[32,768], f32[32,256])",
      "dropout(f32[1048583], i64[2] in (0,100)) {p=0.1}",
      "adamw(f32[1000,777], f32[1000,777], f32[1000,777], f32[1000,777] in (0,1), i64[] in (1,9), f32[] in (0.01,0.1))"}},
    {"movement",
     {"concat(f32[64,100], f32[64,3], f32[64,201]) {axis=1}", "pad(f32[64,3,33,33]) {before=[0,0,1,1], after=[0,0,1,1]}"}},
};

class SizesGpu : public GpuTest, public ::testing::WithParamInterface<Sizes> {};

TEST_P(SizesGpu, EqualTheCpu) {
  guarded([&] {
    Findings all;
    const DType reals[] = {DType::f32, DType::bf16, DType::f16};
    for (const char* example : GetParam().examples) {
      const std::string text = example;
      const Op* op = find_op(text.substr(0, text.find('(')));
      ASSERT_NE(op, nullptr) << text;
      if (!device().has(*op)) {
        ADD_FAILURE() << text << ": no kernel";
        continue;
      }
      all.add(check_example(device(), text, reals));
    }
    EXPECT_TRUE(all.wrong.empty()) << all.text();
    for (const std::string& note : all.notes) std::cout << "note: " << note << "\n";
  });
}

INSTANTIATE_TEST_SUITE_P(Family, SizesGpu, ::testing::ValuesIn(kSizes),
                         [](const auto& info) { return std::string(info.param.family); });

}  // namespace
}  // namespace tapedeck::gpu
