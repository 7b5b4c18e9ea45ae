// Products on cuBLASLt. A row-major matrix is the transpose of a column-major one, so out = a b is asked for as
// out^T = b^T a^T: the operands change places and nothing is copied.
//
// The descriptors and the algorithm of a shape are chosen once and kept. So a step that is replayed runs the algorithm of the
// eager step, and gives the same bits. Only algorithms without a reduction in the result's own memory are allowed: a product
// and a product that is added to a sum then round alike.
//
// The environment is read once: TAPEDECK_CUDA_GEMM=own leaves every product to our own kernels, and TAPEDECK_TF32=1 lets f32
// products round their operands to TF32.
//
// Thread safety: any thread may call every function of this file.
#pragma once

#include <tapedeck/kernels/cuda/products/product.h>
#include <tapedeck/kernels/export.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace tapedeck::kernels {
namespace cuda TAPEDECK_API {

// Whether cuBLASLt computes products on this device. If not, *why (if given) says in one line why. The first call opens the
// library and makes the device's handle, which lives until the process ends.
bool lt_usable(int device, std::string* why = nullptr);

// The bytes of workspace that a simplified product wants: 0 where cuBLASLt will not compute it.
std::int64_t lt_workspace(const Product& p, int device);

// The part of a product that was launched.
enum class LtDone {
  nothing,     // nothing was launched
  product,     // out = a b was launched, and the caller is to add `old` and the bias; never of f16 or bf16
  everything,  // the whole product was launched
  failed,      // a part of the batch was launched before cuBLASLt failed
};

// Launches a simplified product on the stream. The workspace must hold lt_workspace(p, device) bytes.
LtDone lt_multiply(const Product& p, int device, void* workspace, std::size_t workspace_bytes, void* stream);

// Two functions for tests: lt_shapes_kept() counts the shapes that are kept, and forget_products() drops them all, with the
// handles, and reads the environment anew.
std::size_t lt_shapes_kept();
void forget_products();

}  // namespace TAPEDECK_API
}  // namespace tapedeck::kernels
