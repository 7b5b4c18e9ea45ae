#include <tapedeck/kernels/cpu/elementwise/tiles.h>

#include <tapedeck/kernels/cpu/elementwise/pairs.h>
#include <tapedeck/kernels/cpu/loops.h>
#include <tapedeck/kernels/half.h>
#include <tapedeck/kernels/parallel.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace tapedeck::kernels::cpu {

namespace {

constexpr std::int64_t kThreadBytes = 128 << 10;  // of a thread's stack: slots, and scratch for steps that run in f32
constexpr std::int64_t kLongestTile = 1024;       // 4 KiB of floats: a few values of a tile fit in the first-level cache
constexpr std::int64_t kTileMultiple = 16;        // keeps slots aligned to 64 bytes for elements of four bytes and more
constexpr std::int64_t kWidest = 8;               // bytes of an element
// Between two slots. Without it all slots lie at the same place of a page, and a processor then takes a load from one slot for
// a load of what it has just stored to another: chains took twice as long.
constexpr std::int64_t kGap = 192;

std::int64_t scratch_operands(const TileProgram::Step& step) {
  return step.f32_kernel ? static_cast<std::int64_t>(step.operands.size()) + 1 : 0;
}

// The step that reads each value last; the number of steps for results, which stay until the tile is done.
std::vector<std::int32_t> last_readers(const TileProgram& p) {
  const auto n_steps = static_cast<std::int32_t>(p.steps.size());
  std::vector<std::int32_t> last(p.steps.size() + static_cast<std::size_t>(p.n_operands), -1);
  for (std::int32_t s = 0; s < n_steps; ++s)
    for (std::int32_t v : p.steps[s].operands) last[v] = s;
  for (std::int32_t v : p.results) last[v] = n_steps;
  return last;
}

// The number of steps that read each value, and one more for a result.
std::vector<std::int32_t> reads_of_values(const TileProgram& p) {
  std::vector<std::int32_t> reads(p.steps.size() + static_cast<std::size_t>(p.n_operands), 0);
  for (const TileProgram::Step& step : p.steps)
    for (std::int32_t v : step.operands) ++reads[v];
  for (std::int32_t v : p.results) ++reads[v];
  return reads;
}

bool is_f32_of_two(const TileProgram::Step& step) {
  return step.kernel && step.dtype == DType::f32 && step.operands.size() == 2;
}

// A step whose result is only the first operand of a later step becomes a part of that step, where one kernel does both. A
// kernel of a pair is no part of a further pair.
void join_pairs(TileProgram* p) {
  const std::vector<std::int32_t> reads = reads_of_values(*p);
  for (TileProgram::Step& second : p->steps) {
    if (!is_f32_of_two(second) || second.operands[0] < p->n_operands || reads[second.operands[0]] != 1) continue;
    TileProgram::Step& first = p->steps[second.operands[0] - p->n_operands];
    if (!is_f32_of_two(first)) continue;
    const Kernel both = pair_kernel(first.kernel, second.kernel);
    if (!both) continue;
    second.kernel = both;
    second.operands = {first.operands[0], first.operands[1], second.operands[1]};
    first.kernel = nullptr;
    first.operands.clear();
  }
}

}  // namespace

void prepare_tiles(TileProgram* p) {
  join_pairs(p);
  const std::vector<std::int32_t> last = last_readers(*p);
  p->slot_of.assign(last.size(), -1);
  p->n_slots = p->n_operands;
  for (std::int32_t i = 0; i < p->n_operands; ++i) p->slot_of[i] = i;
  std::vector<std::int32_t> free;
  std::int64_t scratch = 0;
  for (std::int32_t s = 0; s < static_cast<std::int32_t>(p->steps.size()); ++s) {
    if (!p->steps[s].kernel) continue;
    const std::int32_t made = p->n_operands + s;
    if (free.empty()) free.push_back(p->n_slots++);
    p->slot_of[made] = free.back();
    free.pop_back();
    // The slots of operands are free after the step, so that no kernel writes over what it reads.
    for (std::int32_t v : p->steps[s].operands)
      if (v >= p->n_operands && last[v] == s && std::find(free.begin(), free.end(), p->slot_of[v]) == free.end())
        free.push_back(p->slot_of[v]);
    if (last[made] < 0) free.push_back(p->slot_of[made]);
    scratch = std::max(scratch, scratch_operands(p->steps[s]));
  }
  // Each copy in f32 is rounded up to 64 bytes, which the margin pays for.
  constexpr std::int64_t margin = (kMostTileOperands + 1) * 64;
  const std::int64_t per_element = p->n_slots * kWidest + scratch * 4;
  const std::int64_t fits =
      (kThreadBytes - margin - p->n_slots * kGap) / std::max<std::int64_t>(per_element, 1) / kTileMultiple * kTileMultiple;
  p->tile = std::clamp(fits, kTileMultiple, kLongestTile);
}

namespace {

enum class Access : std::uint8_t { direct, repeated, walked, staged };

// The layout of one operand or one result of the call. There is room for many of them, and few are used: so they are filled in
// by hand, and not when the room is made.
struct Layout {
  Access access;
  std::int64_t width;  // bytes of an element
  char* data;
  alignas(Walk) unsigned char walk_bytes[sizeof(Walk)];  // if walked

  const Walk& walk() const { return *reinterpret_cast<const Walk*>(walk_bytes); }
};

bool repeats_one_element(const View& v) {
  for (int d = 0; d < v.rank; ++d)
    if (v.sizes[d] != 1 && v.strides[d] != 0) return false;
  return true;
}

void set_layout(Layout* l, const View& v) {
  l->width = static_cast<std::int64_t>(dtype_size(v.dtype));
  l->data = v.as<char>();
  l->access = v.dense() ? Access::direct : repeats_one_element(v) ? Access::repeated : Access::walked;
  const View* const views[] = {&v};
  if (l->access == Access::walked) new (l->walk_bytes) Walk(make_walk(views, 1));
}

void copy_strided(char* to, std::int64_t to_step, const char* from, std::int64_t from_step, std::int64_t n,
                  std::int64_t width) {
  if (to_step == width && from_step == width) {
    std::memcpy(to, from, static_cast<std::size_t>(n * width));
    return;
  }
  const auto copy = [&](auto item) {
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(&item, from + i * from_step, sizeof item);
      std::memcpy(to + i * to_step, &item, sizeof item);
    }
  };
  if (width == 4) return copy(std::uint32_t{});
  if (width == 8) return copy(std::uint64_t{});
  if (width == 2) return copy(std::uint16_t{});
  copy(std::uint8_t{});
}

// The dense side of a walk over a strided view.
struct Dense {
  char* at;
  std::int64_t width;
};

void gather_row(const void* f, char* const* ptr, const std::int64_t* strides, std::int64_t n) {
  auto& to = *static_cast<Dense*>(const_cast<void*>(f));
  copy_strided(to.at, to.width, ptr[0], strides[0], n, to.width);
  to.at += n * to.width;
}

void scatter_row(const void* f, char* const* ptr, const std::int64_t* strides, std::int64_t n) {
  auto& from = *static_cast<Dense*>(const_cast<void*>(f));
  copy_strided(ptr[0], strides[0], from.at, from.width, n, from.width);
  from.at += n * from.width;
}

void set_row_view(View* v, char* data, DType dtype, std::int64_t n, std::int64_t stride) {
  v->data = data;
  v->dtype = dtype;
  v->rank = 1;
  v->sizes[0] = n;
  v->strides[0] = stride;
}

// The loop of a step, if its kernel is one loop, and the strides of result and operands in bytes. As with layouts, there is
// room for many.
struct StepLoop {
  BoundLoop loop;
  std::int64_t strides[kMaxOperands];
};

// Program and call together. It is made once for a call and read by all threads.
struct Bound {
  const TileProgram& program;
  const KernelCall& call;
  Layout operands[kMostTileOperands];
  Layout results[kMostTileSteps];
  std::int32_t result_of[kMostTileSteps];  // by step: which result it makes; -1 for none
  StepLoop loops[kMostTileSteps];

  Bound(const TileProgram& p, const KernelCall& c) : program(p), call(c) {
    for (std::int32_t i = 0; i < p.n_operands; ++i) set_layout(&operands[i], c.inputs[i]);
    std::fill_n(result_of, p.steps.size(), -1);
    for (std::size_t k = 0; k < p.results.size(); ++k) {
      result_of[p.results[k] - p.n_operands] = static_cast<std::int32_t>(k);
      set_layout(&results[k], c.outputs[k]);
      if (results[k].access == Access::repeated) results[k].access = Access::direct;  // one element
      if (results[k].access == Access::direct && lies_on_an_operand(results[k].data)) results[k].access = Access::staged;
    }
    for (std::size_t s = 0; s < p.steps.size(); ++s)
      if (p.steps[s].kernel) bind(p.steps[s], &loops[s]);
  }

  DType dtype_of(std::int32_t value) const {
    return value < program.n_operands ? call.inputs[value].dtype : program.steps[value - program.n_operands].dtype;
  }

  bool repeats(std::int32_t value) const { return value < program.n_operands && operands[value].access == Access::repeated; }

  void bind(const TileProgram::Step& step, StepLoop* l) const {
    l->loop.loops = 0;
    const std::size_t n = step.operands.size();
    if (n >= kMaxOperands || step.f32_kernel) return;
    View inputs[kMaxOperands], output;
    l->strides[0] = static_cast<std::int64_t>(dtype_size(step.dtype));
    set_row_view(&output, nullptr, step.dtype, 0, 1);
    for (std::size_t i = 0; i < n; ++i) {
      const DType dtype = dtype_of(step.operands[i]);
      const std::int64_t stride = repeats(step.operands[i]) ? 0 : 1;
      l->strides[i + 1] = stride * static_cast<std::int64_t>(dtype_size(dtype));
      set_row_view(&inputs[i], nullptr, dtype, 0, stride);
    }
    KernelCall bind_call;
    bind_call.inputs = inputs;
    bind_call.outputs = &output;
    bind_call.n_inputs = static_cast<std::int32_t>(n);
    bind_call.n_outputs = kBindLoop;
    bind_call.attrs = step.attrs;
    bind_call.workspace = &l->loop;
    bind_call.fault = call.fault;
    step.kernel(bind_call);
  }

  // Later steps may read the operand, so such a result is written when the steps are done with the tile.
  bool lies_on_an_operand(const char* data) const {
    for (std::int32_t i = 0; i < program.n_operands; ++i)
      if (operands[i].data == data) return true;
    return false;
  }
};

// A run of tiles on one thread.
class Piece {
 public:
  explicit Piece(const Bound& bound) : bound_(bound), p_(bound.program) {
    for (std::int32_t i = 0; i < p_.n_operands; ++i)
      at_[i] = bound_.operands[i].access == Access::repeated ? bound_.operands[i].data : slot(i);
  }

  void run(std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += p_.tile) run_tile(at, std::min(at + p_.tile, end));
  }

 private:
  char* slot(std::int32_t value) { return memory_ + p_.slot_of[value] * slot_bytes(); }
  std::int64_t slot_bytes() const { return p_.tile * kWidest + kGap; }

  void run_tile(std::int64_t begin, std::int64_t end) {
    for (std::int32_t i = 0; i < p_.n_operands; ++i) {
      const Layout& l = bound_.operands[i];
      if (l.access == Access::direct) at_[i] = l.data + begin * l.width;
      if (l.access == Access::walked) walk(l, slot(i), begin, end, gather_row);
    }
    for (std::size_t s = 0; s < p_.steps.size(); ++s) run_step(s, begin, end - begin);
    for (std::size_t k = 0; k < p_.results.size(); ++k) {
      const Layout& l = bound_.results[k];
      const auto bytes = static_cast<std::size_t>((end - begin) * l.width);
      if (l.access == Access::staged) std::memcpy(l.data + begin * l.width, at_[p_.results[k]], bytes);
      if (l.access == Access::walked) walk(l, at_[p_.results[k]], begin, end, scatter_row);
    }
  }

  static void walk(const Layout& l, char* dense, std::int64_t begin, std::int64_t end, RowBody body) {
    Dense side{dense, l.width};
    walk_range(l.walk(), begin, end, body, &side);
  }

  void run_step(std::size_t s, std::int64_t begin, std::int64_t n) {
    const TileProgram::Step& step = p_.steps[s];
    if (!step.kernel) return;
    const std::size_t value = static_cast<std::size_t>(p_.n_operands) + s;
    const std::int32_t k = bound_.result_of[s];
    const bool direct = k >= 0 && bound_.results[k].access == Access::direct;
    at_[value] = direct ? bound_.results[k].data + begin * bound_.results[k].width : slot(static_cast<std::int32_t>(value));
    const StepLoop& l = bound_.loops[s];
    if (l.loop.loops == 1)
      run_loop(step, l, at_[value], n);
    else
      call_kernel(step, at_[value], n);
  }

  void run_loop(const TileProgram::Step& step, const StepLoop& l, char* out, std::int64_t n) {
    char* ptr[kMaxOperands] = {out};
    for (std::size_t i = 0; i < step.operands.size(); ++i) ptr[i + 1] = at_[step.operands[i]];
    l.loop.body(l.loop.functor, ptr, l.strides, n);
  }

  void call_kernel(const TileProgram::Step& step, char* out, std::int64_t n) {
    View* const views = reinterpret_cast<View*>(view_bytes_);
    for (std::size_t i = 0; i < step.operands.size(); ++i) {
      const std::int32_t v = step.operands[i];
      set_row_view(&views[i], at_[v], bound_.dtype_of(v), n, bound_.repeats(v) ? 0 : 1);
    }
    View output;
    set_row_view(&output, out, step.dtype, n, 1);
    KernelCall call;
    call.inputs = views;
    call.outputs = &output;
    call.n_inputs = static_cast<std::int32_t>(step.operands.size());
    call.n_outputs = 1;
    call.attrs = step.attrs;
    call.fault = bound_.call.fault;
    if (step.f32_kernel) {
      call.f32_kernel = step.f32_kernel;
      call.workspace = memory_ + p_.n_slots * slot_bytes();
      call.workspace_bytes = static_cast<std::size_t>(kThreadBytes - p_.n_slots * slot_bytes());
    }
    step.kernel(call);
  }

  const Bound& bound_;
  const TileProgram& p_;
  char* at_[kMostTileOperands + kMostTileSteps];                              // by value: its elements of this tile
  alignas(View) unsigned char view_bytes_[sizeof(View) * kMostTileOperands];  // not initialised, as the rest
  alignas(64) char memory_[kThreadBytes];
};

}  // namespace

void run_tiles(const TileProgram& program, const KernelCall& call) {
  const std::int64_t n = call.outputs[0].numel();
  if (n == 0) return;
  const Bound bound(program, call);
  const std::int64_t tiles = (n + program.tile - 1) / program.tile;
  parallel_for(tiles, grain_for(program.ns_per_element * static_cast<double>(program.tile)),
               [&](std::int64_t begin, std::int64_t end) {
                 const OneThreadScope alone;  // the loops inside a tile are short
                 Piece(bound).run(begin * program.tile, std::min(end * program.tile, n));
               });
}

}  // namespace tapedeck::kernels::cpu
