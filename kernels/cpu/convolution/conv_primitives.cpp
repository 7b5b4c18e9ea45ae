// Makes oneDNN's primitives and keeps them in a cache: (pass, shape, dtype, group) -> ConvEntry, or null if oneDNN refuses the
// shape. Making a primitive is slow, so each shape makes its primitives once; see conv_primitives.h.
#include <tapedeck/kernels/cpu/convolution/conv_primitives.h>

#include <tapedeck/kernels/cpu/onednn.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>
#include <unordered_map>

namespace tapedeck::kernels::cpu {
namespace {

using dnnl::memory;

// The engine is never destroyed, because runners may outlive static destructors.
const dnnl::engine& cpu_engine() {
  static const dnnl::engine* const forever = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *forever;
}

memory::data_type data_type_of(DType dtype) { return dtype == DType::bf16 ? memory::data_type::bf16 : memory::data_type::f32; }

dnnl::reorder reorder_between(const memory::desc& plain, const memory::desc& wanted, bool is_output) {
  const memory::desc &from = is_output ? wanted : plain, &to = is_output ? plain : wanted;
  return dnnl::reorder(dnnl::reorder::primitive_desc(cpu_engine(), from, cpu_engine(), to));
}

ConvOperand operand(const memory::desc& plain, const memory::desc& wanted, bool is_output) {
  ConvOperand o;
  o.plain = plain;
  o.wanted = wanted;
  o.element_bytes = static_cast<std::int64_t>(memory::data_type_size(plain.data_type()));
  if (plain != wanted) o.reorder = reorder_between(plain, wanted, is_output);
  return o;
}

bool interleaves_images(const dnnl_blocking_desc_t& blocks) {
  return std::find(blocks.inner_idxs, blocks.inner_idxs + blocks.inner_nblks, 0) != blocks.inner_idxs + blocks.inner_nblks;
}

ConvOperand images_operand(const memory::desc& plain, const memory::desc& wanted, bool is_output) {
  ConvOperand o = operand(plain, wanted, is_output);
  memory::dims one = plain.dims();
  o.images = one[0];
  if (o.images == 1) return o;
  const dnnl_blocking_desc_t& blocks = wanted.data.format_desc.blocking;
  if (interleaves_images(blocks)) throw dnnl::error(dnnl_unimplemented, "images do not lie one behind the other");
  o.image_size = plain.data.format_desc.blocking.strides[0];
  o.image_bytes = blocks.strides[0] * static_cast<std::int64_t>(memory::data_type_size(wanted.data_type()));
  if (!o.reordered()) return o;
  one[0] = 1;
  const memory::dims start(one.size(), 0);
  o.image_plain = plain.submemory_desc(one, start);
  o.image_wanted = wanted.submemory_desc(one, start);
  o.image_reorder = reorder_between(o.image_plain, o.image_wanted, is_output);
  return o;
}

// The three descriptors and the geometry, from which every pass is made. oneDNN counts dilation from 0.
struct Descs {
  memory::desc x, w, y;
  memory::dims stride, dilation, before, after;
};

void append(memory::dims& dims, const Spatial& spatial, bool flat, std::int64_t less = 0) {
  for (std::size_t i = flat ? 1 : 0; i < 3; ++i) dims.push_back(spatial[i] - less);
}

Descs plain_descs(const ConvShape& s, memory::data_type type, std::int64_t batch) {
  using tag = memory::format_tag;
  const bool flat = s.flat(), grouped = s.groups > 1;
  memory::dims x = {batch, s.in_channels}, y = {batch, s.out_channels}, w;
  if (grouped) w.push_back(s.groups);
  w.insert(w.end(), {s.out_per_group(), s.in_per_group()});
  append(x, s.in, flat);
  append(w, s.kernel, flat);
  append(y, {s.out(0), s.out(1), s.out(2)}, flat);
  const tag images = flat ? tag::nchw : tag::ncdhw;
  const tag weights = flat ? (grouped ? tag::goihw : tag::oihw) : (grouped ? tag::goidhw : tag::oidhw);
  Descs d{{x, type, images}, {w, type, weights}, {y, type, images}, {}, {}, {}, {}};
  append(d.stride, s.stride, flat);
  append(d.dilation, s.dilation, flat, 1);
  append(d.before, s.before, flat);
  append(d.after, s.after, flat);
  return d;
}

// Throws if oneDNN would use one of its slow ways. Its reference loops, and its matrix products for groups, are slower than
// convolve_products and convolve_directly.
template <class Desc>
void require_fast(const Desc& pd, const ConvShape& s) {
  const std::string_view way = pd.impl_info_str();
  const bool slow = way.find("ref") != way.npos || (s.groups > 1 && way.find("gemm") != way.npos);
  if (slow) throw dnnl::error(dnnl_unimplemented, "no fast way");
}

ConvPrimitives make_primitives(ConvPass pass, const ConvShape& s, DType dtype, std::int64_t batch,
                               const memory::desc* weights) {
  const memory::data_type type = data_type_of(dtype);
  const Descs plain = plain_descs(s, type, batch);
  const auto any = memory::format_tag::any;
  const memory::desc x(plain.x.dims(), type, any), y(plain.y.dims(), type, any), any_w(plain.w.dims(), type, any),
      any_dw(plain.w.dims(), memory::data_type::f32, any);
  const memory::desc w = weights ? *weights : pass == ConvPass::weight_grad ? any_dw : any_w;
  const auto direct = dnnl::algorithm::convolution_direct;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);

  const auto forward = [&](const memory::desc& weight_desc) {
    return dnnl::convolution_forward::primitive_desc(
        {dnnl::prop_kind::forward_training, direct, x, weight_desc, y, plain.stride, plain.dilation, plain.before, plain.after},
        attr, cpu_engine());
  };
  if (pass == ConvPass::forward) {
    const auto pd = forward(w);
    require_fast(pd, s);
    return {dnnl::convolution_forward(pd),
            images_operand(plain.x, pd.src_desc(), false),
            operand(plain.w, pd.weights_desc(), false),
            images_operand(plain.y, pd.dst_desc(), true),
            pd.scratchpad_desc(),
            DNNL_ARG_SRC,
            DNNL_ARG_WEIGHTS,
            DNNL_ARG_DST};
  }
  const auto hint = forward(any_w);
  if (pass == ConvPass::input_grad) {
    const dnnl::convolution_backward_data::primitive_desc pd(
        {direct, x, w, y, plain.stride, plain.dilation, plain.before, plain.after}, attr, cpu_engine(), hint);
    require_fast(pd, s);
    return {dnnl::convolution_backward_data(pd),
            images_operand(plain.y, pd.diff_dst_desc(), false),
            operand(plain.w, pd.weights_desc(), false),
            images_operand(plain.x, pd.diff_src_desc(), true),
            pd.scratchpad_desc(),
            DNNL_ARG_DIFF_DST,
            DNNL_ARG_WEIGHTS,
            DNNL_ARG_DIFF_SRC};
  }
  const dnnl::convolution_backward_weights::primitive_desc pd(
      {direct, x, w, y, plain.stride, plain.dilation, plain.before, plain.after}, attr, cpu_engine(), hint);
  require_fast(pd, s);
  return {dnnl::convolution_backward_weights(pd),
          images_operand(plain.y, pd.diff_dst_desc(), false),
          images_operand(plain.x, pd.src_desc(), false),
          operand(plain.w, pd.diff_weights_desc(), true),
          pd.scratchpad_desc(),
          DNNL_ARG_DIFF_DST,
          DNNL_ARG_SRC,
          DNNL_ARG_DIFF_WEIGHTS};
}

struct Key {
  ConvPass pass;
  ConvShape shape;
  DType dtype;
  std::int64_t main_group;
  bool operator==(const Key& o) const {
    return pass == o.pass && shape == o.shape && dtype == o.dtype && main_group == o.main_group;
  }
};

struct KeyHash {
  std::size_t operator()(const Key& k) const {
    const ConvShape& s = k.shape;
    std::size_t hash = static_cast<std::size_t>(k.pass) + 8 * static_cast<std::size_t>(k.dtype);
    const auto mix = [&hash](std::int64_t v) { hash = (hash ^ static_cast<std::size_t>(v)) * 0x9E3779B97F4A7C15u; };
    for (const std::int64_t v : {s.batch, s.in_channels, s.out_channels, s.groups, k.main_group}) mix(v);
    for (const Spatial& list : {s.in, s.kernel, s.stride, s.dilation, s.before, s.after})
      for (const std::int64_t v : list) mix(v);
    return hash ^ (hash >> 32);
  }
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<Key, std::unique_ptr<ConvEntry>, KeyHash> entries;  // null if oneDNN refused the shape
};

Cache& cache() {
  static Cache* const forever = new Cache;
  return *forever;
}

std::unique_ptr<ConvEntry> make_entry(ConvPass pass, const ConvShape& shape, DType dtype, std::int64_t group,
                                      const memory::desc* weights) {
  try {
    return std::make_unique<ConvEntry>(make_primitives(pass, shape, dtype, group, weights));
  } catch (const dnnl::error&) {
    return nullptr;
  }
}

}  // namespace

namespace {
memory unset(const memory::desc& desc) { return memory(desc, cpu_engine(), DNNL_MEMORY_NONE); }
}  // namespace

ConvRunner::ConvRunner(const ConvPrimitives& p)
    : primitives_(p),
      stream_(cpu_engine()),
      a_(make_side(p.a)),
      b_(make_side(p.b)),
      out_(make_side(p.out)),
      scratchpad_(unset(p.scratchpad)) {}

ConvRunner::Side ConvRunner::make_side(const ConvOperand& operand) {
  Side side;
  side.plain = unset(operand.plain), side.wanted = unset(operand.wanted);
  if (operand.image_reorder) side.image_plain = unset(operand.image_plain), side.image_wanted = unset(operand.image_wanted);
  return side;
}

void ConvRunner::set(Side& side, const ConvOperand& operand, const void* plain, std::int64_t stride, void* wanted) {
  void* const data = const_cast<void*>(plain);
  const bool apart = operand.apart(stride);
  side.images = apart ? static_cast<char*>(data) : nullptr;
  side.packed = static_cast<char*>(wanted);
  side.stride = stride * operand.element_bytes;
  if (!apart) side.plain.set_data_handle(data);
  side.wanted.set_data_handle(operand.reordered() || apart ? wanted : data);
}

bool ConvRunner::execute(const dnnl::reorder& reorder, memory& from, memory& to) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
  return dnnl_primitive_execute(reorder.get(), stream_.get(), 2, args) == dnnl_success;
}

bool ConvRunner::reorder(const ConvOperand& operand, Side& side, memory& from, memory& to) {
  if (side.images) return reorder_images(operand, side, &from == &side.plain);
  return !operand.reordered() || execute(operand.reorder, from, to);
}

bool ConvRunner::reorder_images(const ConvOperand& operand, Side& side, bool pack) {
  for (std::int64_t i = 0; i < operand.images; ++i) {
    char* const image = side.images + i * side.stride;
    char* const packed = side.packed + i * operand.image_bytes;
    if (!operand.reordered()) {
      std::memcpy(pack ? packed : image, pack ? image : packed, static_cast<std::size_t>(operand.image_bytes));
      continue;
    }
    side.image_plain.set_data_handle(image);
    side.image_wanted.set_data_handle(packed);
    if (!execute(operand.image_reorder, pack ? side.image_plain : side.image_wanted,
                 pack ? side.image_wanted : side.image_plain))
      return false;
  }
  return true;
}

bool ConvRunner::compute() {
  const dnnl_exec_arg_t args[] = {{primitives_.a_argument, a_.wanted.get()},
                                  {primitives_.b_argument, b_.wanted.get()},
                                  {primitives_.out_argument, out_.wanted.get()},
                                  {DNNL_ARG_SCRATCHPAD, scratchpad_.get()}};
  return dnnl_primitive_execute(primitives_.compute.get(), stream_.get(), 4, args) == dnnl_success;
}

std::unique_ptr<ConvRunner> ConvEntry::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<ConvRunner> runner = std::move(idle_.back());
      idle_.pop_back();
      return runner;
    }
  }
  return std::make_unique<ConvRunner>(primitives_);
}

void ConvEntry::give_back(std::unique_ptr<ConvRunner> runner) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(runner));
}

ConvEntry* conv_entry(ConvPass pass, const ConvShape& shape, DType dtype, std::int64_t group, std::int64_t main_group) {
  Key key{pass, shape, dtype, main_group};
  key.shape.batch = group;
  const memory::desc* weights = nullptr;
  if (group != main_group) {
    ConvEntry* const main = conv_entry(pass, shape, dtype, main_group, main_group);
    if (!main) return nullptr;
    weights = pass == ConvPass::weight_grad ? &main->primitives().out.wanted : &main->primitives().b.wanted;
  }
  Cache& c = cache();
  const std::lock_guard<std::mutex> lock(c.mutex);
  const auto found = c.entries.find(key);
  if (found != c.entries.end()) return found->second.get();
  const OneThread one_thread;  // a primitive remembers the number of threads at its creation
  return (c.entries[key] = make_entry(pass, shape, dtype, group, weights)).get();
}

}  // namespace tapedeck::kernels::cpu
