// oneDNN's convolution primitives for one shape, made once and kept for the life of the process.
//
// Every pass reads two operands a and b and writes `out`: forward x, w -> y; input gradient dy, w -> dx; weight gradient dy, x
// -> dw. oneDNN chooses the layouts ("any"); operands that it wants otherwise than plain NCHW or OIHW are reordered into the
// workspace.
#pragma once

#include <tapedeck/kernels/cpu/convolution/conv.h>

#include <dnnl.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace tapedeck::kernels::cpu {

// One operand: its plain layout, the layout in which oneDNN wants it, and the way from one to the other. Several images that do
// not lie one behind the other go that way one by one, so that their distance needs no primitives of its own.
struct ConvOperand {
  dnnl::memory::desc plain, wanted;
  dnnl::reorder reorder;  // empty if the layouts are the same
  std::int64_t images = 1;
  std::int64_t image_size = 0;   // elements from one image to the next: as plain,
  std::int64_t image_bytes = 0;  // and bytes as wanted; of several only, as are
  dnnl::memory::desc image_plain, image_wanted;
  dnnl::reorder image_reorder;

  bool reordered() const { return static_cast<bool>(reorder); }
  bool apart(std::int64_t stride) const { return images > 1 && stride != image_size; }
  // Of workspace. Several images have room however they lie: strides do not choose the way.
  std::size_t bytes() const { return reordered() || images > 1 ? wanted.get_size() : 0; }
};

struct ConvPrimitives {
  dnnl::primitive compute;
  ConvOperand a, b, out;
  dnnl::memory::desc scratchpad;
  int a_argument, b_argument, out_argument;
};

// The memory objects and the stream of one running task; making them costs more than a small convolution, so they are kept.
class ConvRunner {
 public:
  explicit ConvRunner(const ConvPrimitives& p);

  // Where operands are, and the workspace for what must be moved there; `stride` is from one image to the next.
  void set_a(const float* images, std::int64_t stride, void* wanted) { set(a_, primitives_.a, images, stride, wanted); }
  void set_b(const float* images, std::int64_t stride, void* wanted) { set(b_, primitives_.b, images, stride, wanted); }
  void set_b(const float* weights, void* wanted) { set(b_, primitives_.b, weights, 0, wanted); }
  void set_out(const float* images, std::int64_t stride, void* wanted) { set(out_, primitives_.out, images, stride, wanted); }
  void set_out(const float* weights, void* wanted) { set(out_, primitives_.out, weights, 0, wanted); }
  void set_scratchpad(void* scratch) { scratchpad_.set_data_handle(scratch); }

  bool reorder_a() { return reorder(primitives_.a, a_, a_.plain, a_.wanted); }
  bool reorder_b() { return reorder(primitives_.b, b_, b_.plain, b_.wanted); }
  bool reorder_out() { return reorder(primitives_.out, out_, out_.wanted, out_.plain); }
  bool compute();

 private:
  struct Side {
    dnnl::memory plain, wanted, image_plain, image_wanted;
    float* images = nullptr;  // where they lie apart, and
    char* packed = nullptr;   // the workspace in which they do not
    std::int64_t stride = 0;
  };

  static Side make_side(const ConvOperand& operand);
  static void set(Side& side, const ConvOperand& operand, const float* plain, std::int64_t stride, void* wanted);
  bool reorder(const ConvOperand& operand, Side& side, dnnl::memory& from, dnnl::memory& to);
  bool reorder_images(const ConvOperand& operand, Side& side, bool pack);
  bool execute(const dnnl::reorder& reorder, dnnl::memory& from, dnnl::memory& to);

  const ConvPrimitives& primitives_;
  dnnl::stream stream_;
  Side a_, b_, out_;
  dnnl::memory scratchpad_;
};

// The primitives of one shape and the idle runners on them. Thread safe.
class ConvEntry {
 public:
  explicit ConvEntry(ConvPrimitives primitives) : primitives_(std::move(primitives)) {}
  const ConvPrimitives& primitives() const { return primitives_; }
  std::unique_ptr<ConvRunner> take();
  void give_back(std::unique_ptr<ConvRunner> runner);

 private:
  const ConvPrimitives primitives_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<ConvRunner>> idle_;
};

// The entry for calls of `group` images (`shape.batch` is not looked at), or null if oneDNN refuses the shape. Entries for a
// rest of images say in `main_group` whose layout of the weights they share. Thread safe.
ConvEntry* conv_entry(ConvPass pass, const ConvShape& shape, std::int64_t group, std::int64_t main_group);

}  // namespace tapedeck::kernels::cpu
