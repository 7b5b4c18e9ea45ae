// Convolution as matrix products, f32, for shapes without a fast way in oneDNN: dilated and strided gradients, patches, groups.
//
// For one group of one image, the elements of x that a block of output positions reads are gathered into columns
// [taps, positions]. Then
//   y = w columns        columns = w' dy, added back to the elements of x        dw = sum of dy columns'
// Images are cut into the same chunks as for oneDNN. A block of columns is as large as the chunk's share of the workspace
// allows, so the shape decides, not the threads.
#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/cpu/convolution/conv_plan.h>
#include <tapedeck/kernels/cpu/dispatch.h>
#include <tapedeck/kernels/cpu/onednn.h>
#include <tapedeck/kernels/parallel.h>

#include <dnnl.h>

#include <algorithm>
#include <atomic>

namespace tapedeck::kernels::cpu {
namespace {

constexpr std::int64_t kBlockBytes = 512 * 1024;  // bytes of columns: about as much as stays in the second-level cache
constexpr std::int64_t kFewestColumns = 16;

struct Products {
  ConvShape shape;
  ConvPlan plan;
  std::int64_t rows;           // rows of the columns: the elements of a group that one output position reads
  std::int64_t positions;      // output positions in a block
  std::int64_t sum_bytes = 0;  // bytes per chunk for the dw of the chunk's images
  std::int64_t chunk_bytes = 0;

  float* sum(char* workspace, std::int64_t chunk) const { return reinterpret_cast<float*>(workspace + chunk * chunk_bytes); }
  float* columns(char* workspace, std::int64_t chunk) const {
    return reinterpret_cast<float*>(workspace + chunk * chunk_bytes + sum_bytes);
  }
};

// Returns false if a block would hold few columns, or if the products would be too small to make up for the gathering.
bool prepare(Products& p, ConvPass pass, const ConvShape& shape, std::int64_t workspace_bytes) {
  p.shape = shape;
  p.plan = conv_plan(pass, shape);
  p.rows = shape.in_per_group() * shape.taps();
  if (pass == ConvPass::weight_grad) p.sum_bytes = align64(4 * shape.weight_size());
  p.chunk_bytes = workspace_bytes / p.plan.chunks / 64 * 64;
  const std::int64_t room = std::min(p.chunk_bytes - p.sum_bytes, kBlockBytes) / (4 * p.rows);
  p.positions = std::min(std::max(room, std::int64_t{0}) / kFewestColumns * kFewestColumns, shape.out_plane());
  const bool pays = p.rows >= 16 && shape.out_per_group() >= 4;
  return pays && p.positions >= std::min(kFewestColumns, shape.out_plane()) && p.positions > 0;
}

struct Block {
  std::int64_t begin, end;  // output positions
};

// The input that kernel element k of output o reads along one dimension. It may lie outside the image; is_inside tells.
std::int64_t input_of(const ConvShape& s, std::size_t dim, std::int64_t o, std::int64_t k) {
  return o * s.stride[dim] + k * s.dilation[dim] - s.before[dim];
}
bool is_inside(const ConvShape& s, std::size_t dim, std::int64_t at) { return at >= 0 && at < s.in[dim]; }

// Calls f(place in the block, input offset, n) for every run of n output positions that read elements inside x. The elements
// lie `stride` apart.
template <class F>
void for_runs(const ConvShape& s, std::int64_t tap, Block block, F&& f) {
  const std::int64_t kd = tap / (s.kernel[1] * s.kernel[2]), kh = tap / s.kernel[2] % s.kernel[1], kw = tap % s.kernel[2];
  const std::int64_t height = s.out(1), width = s.out(2), stride = s.stride[2];
  for (std::int64_t at = block.begin; at < block.end;) {
    const std::int64_t row = at / width, n = std::min(width - at % width, block.end - at);
    const std::int64_t d = input_of(s, 0, row / height, kd), h = input_of(s, 1, row % height, kh),
                       w = input_of(s, 2, at % width, kw);
    const std::int64_t from = w < 0 ? std::min(n, (stride - 1 - w) / stride) : 0;
    const std::int64_t to = w >= s.in[2] ? 0 : std::min(n, (s.in[2] - 1 - w) / stride + 1);
    if (is_inside(s, 0, d) && is_inside(s, 1, h) && from < to)
      f(at - block.begin + from, (d * s.in[1] + h) * s.in[2] + w + from * stride, to - from);
    at += n;
  }
}

// Fills the columns of one block. x points to the first channel of the group.
void gather(const Products& p, const float* x, Block block, float* columns) {
  const ConvShape& s = p.shape;
  const std::int64_t stride = s.stride[2], taps = s.taps(), n = block.end - block.begin;
  const bool gaps = s.before != Spatial{} || s.after != Spatial{};
  for (std::int64_t row = 0; row < p.rows; ++row, columns += p.positions) {
    const float* from = x + row / taps * s.in_plane();
    if (gaps) std::fill(columns, columns + n, 0.0f);
    for_runs(s, row % taps, block, [&](std::int64_t at, std::int64_t in, std::int64_t count) {
      if (stride == 1) {
        std::copy(from + in, from + in + count, columns + at);
        return;
      }
      for (std::int64_t i = 0; i < count; ++i) columns[at + i] = from[in + i * stride];
    });
  }
}

void scatter(const Products& p, const float* columns, Block block, float* dx) {
  const ConvShape& s = p.shape;
  const std::int64_t stride = s.stride[2], taps = s.taps();
  for (std::int64_t row = 0; row < p.rows; ++row, columns += p.positions) {
    float* to = dx + row / taps * s.in_plane();
    for_runs(s, row % taps, block, [&](std::int64_t at, std::int64_t in, std::int64_t count) {
      TAPEDECK_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) to[in + i * stride] += columns[at + i];
    });
  }
}

// Calls f(group, block of positions) for one image. Stops and returns false if f returns false.
template <class F>
bool for_blocks(const Products& p, F&& f) {
  const std::int64_t plane = p.shape.out_plane();
  for (std::int64_t g = 0; g < p.shape.groups; ++g)
    for (std::int64_t at = 0; at < plane; at += p.positions)
      if (!f(g, Block{at, std::min(plane, at + p.positions)})) return false;
  return true;
}

bool product(char turn_a, char turn_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, std::int64_t lda,
             const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  return dnnl_sgemm(turn_a, turn_b, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}

bool forward(const Products& p, const float* x, const float* w, float* y, float* columns) {
  const ConvShape& s = p.shape;
  const std::int64_t channels = s.out_per_group(), plane = s.out_plane();
  return for_blocks(p, [&](std::int64_t g, Block b) {
    gather(p, x + g * s.in_per_group() * s.in_plane(), b, columns);
    return product('N', 'N', channels, b.end - b.begin, p.rows, w + g * channels * p.rows, p.rows, columns, p.positions, 0,
                   y + g * channels * plane + b.begin, plane);
  });
}

bool input_grad(const Products& p, const float* dy, const float* w, float* dx, float* columns) {
  const ConvShape& s = p.shape;
  const std::int64_t channels = s.out_per_group(), plane = s.out_plane();
  std::fill(dx, dx + s.in_size(), 0.0f);
  return for_blocks(p, [&](std::int64_t g, Block b) {
    if (!product('T', 'N', p.rows, b.end - b.begin, channels, w + g * channels * p.rows, p.rows,
                 dy + g * channels * plane + b.begin, plane, 0, columns, p.positions))
      return false;
    scatter(p, columns, b, dx + g * s.in_per_group() * s.in_plane());
    return true;
  });
}

// Adds the gradient of one image to `dw`. If `begin`, the gradient replaces the old content of `dw`.
bool weight_grad(const Products& p, const float* dy, const float* x, float* dw, float* columns, bool begin) {
  const ConvShape& s = p.shape;
  const std::int64_t channels = s.out_per_group(), plane = s.out_plane();
  return for_blocks(p, [&](std::int64_t g, Block b) {
    gather(p, x + g * s.in_per_group() * s.in_plane(), b, columns);
    return product('N', 'T', channels, p.rows, b.end - b.begin, dy + g * channels * plane + b.begin, plane, columns,
                   p.positions, begin && b.begin == 0 ? 0.0f : 1.0f, dw + g * channels * p.rows, p.rows);
  });
}

bool run_image(const Products& p, ConvPass pass, const ConvStrides& strides, std::int64_t image, bool begin, const float* first,
               const float* second, float* output, float* columns) {
  const std::int64_t in = image * strides.in, out = image * strides.out;
  switch (pass) {
    case ConvPass::forward:
      return forward(p, first + in, second, output + out, columns);
    case ConvPass::input_grad:
      return input_grad(p, first + out, second, output + in, columns);
    case ConvPass::weight_grad:
      return weight_grad(p, first + out, second + in, output, columns, begin);
  }
  return false;
}

void add_chunks(const Products& p, float* dw, char* workspace) {
  const std::int64_t n = p.shape.weight_size();
  std::copy(p.sum(workspace, 0), p.sum(workspace, 0) + n, dw);
  for (std::int64_t c = 1; c < p.plan.chunks; ++c) {
    const float* sum = p.sum(workspace, c);
    TAPEDECK_INDEPENDENT
    for (std::int64_t i = 0; i < n; ++i) dw[i] += sum[i];
  }
}

}  // namespace

bool convolve_products(ConvPass pass, const ConvShape& shape, const ConvStrides& strides, const float* first,
                       const float* second, float* output, void* workspace, std::size_t workspace_bytes) {
  Products p;
  if (!prepare(p, pass, shape, static_cast<std::int64_t>(workspace_bytes))) return false;
  char* const scratch = static_cast<char*>(workspace);
  std::atomic<bool> ok{true};
  parallel_for(p.plan.chunks, 1, [&](std::int64_t begin, std::int64_t end) {
    const OneThread one_thread;
    for (std::int64_t c = begin; c < end; ++c) {
      const std::int64_t start = c * p.plan.images_per_chunk, stop = std::min(shape.batch, start + p.plan.images_per_chunk);
      float* const to = pass == ConvPass::weight_grad ? p.sum(scratch, c) : output;
      for (std::int64_t i = start; i < stop; ++i)
        if (!run_image(p, pass, strides, i, i == start, first, second, to, p.columns(scratch, c))) ok = false;
    }
  });
  if (ok && pass == ConvPass::weight_grad) add_chunks(p, output, scratch);
  return ok;
}

}  // namespace tapedeck::kernels::cpu
