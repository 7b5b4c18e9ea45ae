// oneDNN's convolution primitives for one shape. They are made once and kept until the process ends.
//
// Every pass reads two operands a and b and writes `out`:
//   forward           a = x,  b = w,  out = y
//   input gradient    a = dy, b = w,  out = dx
//   weight gradient   a = dy, b = x,  out = dw
// The operands are f32 or bf16. oneDNN sums in f32, and writes dw in f32, so that the parts of a batch can be added before dw
// is rounded. It chooses the layouts ("any"). An operand for which it chooses another layout than plain NCHW or OIHW is
// reordered into the workspace.
#pragma once

#include <tapedeck/kernels/cpu/convolution/conv.h>
#include <tapedeck/kernels/dtype.h>

#include <dnnl.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace tapedeck::kernels::cpu {

// One operand: its plain layout, the layout that oneDNN wants, and the reorder from one to the other. Images that do not lie
// one behind the other are reordered one by one, so that no primitive depends on the distance between images.
struct ConvOperand {
  dnnl::memory::desc plain, wanted;
  dnnl::reorder reorder;  // empty if the layouts are the same
  std::int64_t images = 1;
  std::int64_t image_size = 0;     // elements from one image to the next in the plain layout
  std::int64_t element_bytes = 0;  // of one element in the plain layout
  // Bytes from one image to the next in the wanted layout; this and the next three fields are set if images > 1.
  std::int64_t image_bytes = 0;
  dnnl::memory::desc image_plain, image_wanted;
  dnnl::reorder image_reorder;

  bool reordered() const { return static_cast<bool>(reorder); }
  bool apart(std::int64_t stride) const { return images > 1 && stride != image_size; }
  // Bytes of workspace for this operand. Several images always get room, so that strides do not change the size.
  std::size_t bytes() const { return reordered() || images > 1 ? wanted.get_size() : 0; }
};

// The primitive that computes a pass, its operands, and oneDNN's own scratch memory.
struct ConvPrimitives {
  dnnl::primitive compute;
  ConvOperand a, b, out;
  dnnl::memory::desc scratchpad;
  int a_argument, b_argument, out_argument;
};

// The memory objects and the stream of one running task. They are kept for later tasks, because making them takes longer than a
// small convolution.
class ConvRunner {
 public:
  explicit ConvRunner(const ConvPrimitives& p);

  // Set the addresses of the operands and of the workspace for reordered operands. `stride` is the number of elements from one
  // image to the next.
  void set_a(const void* images, std::int64_t stride, void* wanted) { set(a_, primitives_.a, images, stride, wanted); }
  void set_b(const void* images, std::int64_t stride, void* wanted) { set(b_, primitives_.b, images, stride, wanted); }
  void set_b(const void* weights, void* wanted) { set(b_, primitives_.b, weights, 0, wanted); }
  void set_out(const void* images, std::int64_t stride, void* wanted) { set(out_, primitives_.out, images, stride, wanted); }
  void set_out(const void* weights, void* wanted) { set(out_, primitives_.out, weights, 0, wanted); }
  void set_scratchpad(void* scratch) { scratchpad_.set_data_handle(scratch); }

  bool reorder_a() { return reorder(primitives_.a, a_, a_.plain, a_.wanted); }
  bool reorder_b() { return reorder(primitives_.b, b_, b_.plain, b_.wanted); }
  bool reorder_out() { return reorder(primitives_.out, out_, out_.wanted, out_.plain); }
  bool compute();

 private:
  struct Side {
    dnnl::memory plain, wanted, image_plain, image_wanted;
    char* images = nullptr;   // the images, if they lie apart
    char* packed = nullptr;   // the workspace that holds them one behind the other
    std::int64_t stride = 0;  // bytes from one image to the next
  };

  static Side make_side(const ConvOperand& operand);
  static void set(Side& side, const ConvOperand& operand, const void* plain, std::int64_t stride, void* wanted);
  bool reorder(const ConvOperand& operand, Side& side, dnnl::memory& from, dnnl::memory& to);
  bool reorder_images(const ConvOperand& operand, Side& side, bool pack);
  bool execute(const dnnl::reorder& reorder, dnnl::memory& from, dnnl::memory& to);

  const ConvPrimitives& primitives_;
  dnnl::stream stream_;
  Side a_, b_, out_;
  dnnl::memory scratchpad_;
};

// The primitives of one shape, and the idle runners for them. Thread safe.
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

// The entry for calls of `group` images of f32 or bf16 elements, or null if oneDNN refuses the shape. `shape.batch` is ignored.
// The entry for a last, smaller group shares the layout of the weights with the entry for `main_group` images. Thread safe.
ConvEntry* conv_entry(ConvPass pass, const ConvShape& shape, DType dtype, std::int64_t group, std::int64_t main_group);

}  // namespace tapedeck::kernels::cpu
