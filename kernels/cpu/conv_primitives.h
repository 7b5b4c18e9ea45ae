// oneDNN's convolution primitives for one shape, made once and kept for the life of the process.
//
// Every pass reads two operands a and b and writes `out`: forward x, w -> y; input gradient dy, w -> dx; weight gradient dy, x
// -> dw. oneDNN chooses the layouts ("any"); operands that it wants otherwise than plain NCHW or OIHW are reordered into the
// workspace.
#pragma once

#include <tapedeck/kernels/cpu/conv.h>

#include <dnnl.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace tapedeck::kernels::cpu {

// One operand: its plain layout, the layout in which oneDNN wants it, and the way from one to the other.
struct ConvOperand {
  dnnl::memory::desc plain, wanted;
  dnnl::reorder reorder;  // empty if the layouts are the same
  bool reordered() const { return static_cast<bool>(reorder); }
  std::size_t bytes() const { return reordered() ? wanted.get_size() : 0; }  // of workspace
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

  // Pointers to operands; a null one stays what it was.
  void set_a(const float* plain, void* wanted) { set(a_plain_, a_, primitives_.a, plain, wanted); }
  void set_b(const float* plain, void* wanted) { set(b_plain_, b_, primitives_.b, plain, wanted); }
  void set_out(const float* plain, void* wanted) { set(out_plain_, out_, primitives_.out, plain, wanted); }
  void set_scratchpad(void* scratch) { scratchpad_.set_data_handle(scratch); }

  bool reorder_a() { return reorder(primitives_.a, a_plain_, a_); }
  bool reorder_b() { return reorder(primitives_.b, b_plain_, b_); }
  bool reorder_out() { return reorder(primitives_.out, out_, out_plain_); }
  bool compute();

 private:
  static void set(dnnl::memory& plain_memory, dnnl::memory& memory, const ConvOperand& operand, const float* plain,
                  void* wanted);
  bool reorder(const ConvOperand& operand, dnnl::memory& from, dnnl::memory& to);

  const ConvPrimitives& primitives_;
  dnnl::stream stream_;
  dnnl::memory a_plain_, a_, b_plain_, b_, out_plain_, out_, scratchpad_;
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
