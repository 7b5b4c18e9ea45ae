// The descriptors of the fake cuDNN, and the execution of its plans.
#include <tapedeck/tests/kernels/conv3d.h>
#include <tapedeck/tests/kernels/cuda/convolution/fake_dnn.h>

#include <tapedeck/kernels/attrs.h>
#include <tapedeck/kernels/cpu/kernels.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace tapedeck::testing {
namespace {

using namespace kernels::cuda;
using namespace kernels::cuda::dnn;

FakeDnn state;

struct Value {
  int type = 0;
  std::vector<char> bytes;
};
struct Fake {
  int kind = 0;
  bool finalized = false;
  std::map<int, Value> values;
  int engine = -1;        // of a configuration, an engine, or a plan
  std::size_t knob = 0;   // of a choice: its place among the knobs of the engine
  Fake* graph = nullptr;  // of a configuration or a plan
};

constexpr DnnStatus kBadParameter = 2000, kNotSupported = 3000;

DnnStatus misuse(const std::string& what) {
  if (state.misuse.empty()) state.misuse = what;
  return kBadParameter;
}
Fake* fake(DnnDescriptor d) { return static_cast<Fake*>(d); }

std::size_t bytes_of(int type) {
  switch (type) {
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

template <class T>
std::vector<T> list(const Fake& f, int attribute) {
  const auto at = f.values.find(attribute);
  if (at == f.values.end()) return misuse("attribute " + std::to_string(attribute) + " is missing"), std::vector<T>(8);
  std::vector<T> all(at->second.bytes.size() / sizeof(T));
  std::memcpy(all.data(), at->second.bytes.data(), all.size() * sizeof(T));
  return all;
}
template <class T>
T one(const Fake& f, int attribute) {
  return list<T>(f, attribute)[0];
}

DnnStatus create(DnnDescriptorKind kind, DnnDescriptor* descriptor) {
  *descriptor = new Fake{.kind = kind, .values = {}};
  ++state.live_descriptors;
  return 0;
}
DnnStatus destroy(DnnDescriptor descriptor) {
  delete fake(descriptor);
  --state.live_descriptors;
  return 0;
}

DnnStatus set(DnnDescriptor descriptor, DnnAttribute attribute, DnnAttributeType type, std::int64_t count, const void* values) {
  Fake& f = *fake(descriptor);
  if (f.finalized) return misuse("an attribute is set after the finalization");
  const auto* from = static_cast<const char*>(values);
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (std::int64_t i = 0; i < count; ++i) {
      DnnDescriptor other = nullptr;
      std::memcpy(&other, from + i * 8, 8);
      const bool configuration = fake(other)->kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;  // comes from the heuristic
      if (!configuration && !fake(other)->finalized) return misuse("a descriptor is used before its finalization");
    }
  f.values[attribute] = {type, {from, from + static_cast<std::size_t>(count) * bytes_of(type)}};
  return 0;
}

const FakeEngine& engine(int number) {
  const auto n = static_cast<std::size_t>(number);
  return n < state.engines.size() ? state.engines[n] : state.fallback_engines[n - state.engines.size()];
}

DnnStatus finalize(DnnDescriptor descriptor) {
  Fake& f = *fake(descriptor);
  if (f.finalized) return misuse("a descriptor is finalized twice");
  f.finalized = true;
  state.graphs += f.kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR;
  if (f.kind != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) return 0;
  const Fake& configuration = *one<Fake*>(f, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  f.engine = configuration.engine, f.graph = configuration.graph;
  return engine(f.engine).plan_status;
}

DnnStatus get_configurations(Fake& heuristic, std::int64_t wanted, std::int64_t* count, void* values) {
  const int mode = one<int>(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE);
  const std::size_t n = mode == CUDNN_HEUR_MODE_A ? state.engines.size() : state.fallback_engines.size();
  *count = static_cast<std::int64_t>(n);
  auto** to = static_cast<Fake**>(values);
  for (std::int64_t i = 0; i < std::min(wanted, *count); ++i) {
    to[i]->engine = static_cast<int>(i) + (mode == CUDNN_HEUR_MODE_A ? 0 : static_cast<int>(state.engines.size()));
    to[i]->graph = one<Fake*>(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    to[i]->finalized = true;
  }
  return 0;
}

DnnStatus get_notes(const std::vector<int>& notes, std::int64_t wanted, std::int64_t* count, void* values) {
  *count = static_cast<std::int64_t>(notes.size());
  if (*count > wanted) return misuse("there is no room for the notes");
  std::copy(notes.begin(), notes.end(), static_cast<int*>(values));
  return 0;
}

DnnStatus get_choices(const Fake& configuration, std::int64_t wanted, std::int64_t* count, void* values) {
  const std::size_t n = engine(configuration.engine).knobs.size();
  *count = static_cast<std::int64_t>(n);
  if (*count > wanted) return misuse("there is no room for the knobs");
  for (std::size_t i = 0; i < n; ++i) {
    Fake& choice = *static_cast<Fake**>(values)[i];
    choice.engine = configuration.engine, choice.knob = i;
  }
  return 0;
}

template <class T>
DnnStatus get_one(T value, std::int64_t* count, void* values) {
  std::memcpy(values, &value, sizeof value);
  *count = 1;
  return 0;
}

DnnStatus get(DnnDescriptor descriptor, DnnAttribute attribute, DnnAttributeType, std::int64_t wanted, std::int64_t* count,
              void* values) {
  Fake& f = *fake(descriptor);
  switch (attribute) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      return f.finalized ? get_configurations(f, wanted, count, values) : misuse("a heuristic is not finalized");
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      (*static_cast<Fake**>(values))->engine = f.engine;
      *count = 1;
      return 0;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
      return get_notes(engine(f.engine).notes, wanted, count, values);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      return get_notes(engine(f.engine).behaviour, wanted, count, values);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return get_one(engine(f.engine).workspace, count, values);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return get_one(engine(f.engine).index, count, values);
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      return get_choices(f, wanted, count, values);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE:
      return get_one(engine(f.engine).knobs[f.knob].first, count, values);
    case CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE:
      return get_one(engine(f.engine).knobs[f.knob].second, count, values);
    default:
      return misuse("no such attribute can be read");
  }
}

// ---- execution ----

View view_of(const Fake& tensor, const Fake& pack) {
  const auto ids = list<std::int64_t>(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = list<void*>(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto sizes = list<std::int64_t>(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = list<std::int64_t>(tensor, CUDNN_ATTR_TENSOR_STRIDES);
  if (one<int>(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_FLOAT) misuse("the fake computes f32 only");
  View v;
  v.rank = static_cast<std::int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), v.sizes);
  std::copy(strides.begin(), strides.end(), v.strides);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] == one<std::int64_t>(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID)) v.data = pointers[i];
  return v;
}

Ints ints(const std::vector<std::int64_t>& values) {
  Ints all;
  for (const std::int64_t v : values) all.push_back(v);
  return all;
}

// The attributes of a convolution; `size` holds the spatial sizes of the result of a gradient.
ConvInputGradAttrs attrs_of(const Fake& geometry, const View& x, const View& w, const View& size) {
  ConvInputGradAttrs a;
  a.stride = ints(list<std::int64_t>(geometry, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
  a.dilation = ints(list<std::int64_t>(geometry, CUDNN_ATTR_CONVOLUTION_DILATIONS));
  a.padding = ints(list<std::int64_t>(geometry, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
  for (const std::int64_t after : list<std::int64_t>(geometry, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS))
    a.padding.push_back(after);
  a.groups = x.sizes[1] / w.sizes[1];
  for (int d = 2; d < size.rank; ++d) a.size.push_back(size.sizes[d]);
  const bool right = one<int>(geometry, CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION &&
                     one<int>(geometry, CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_FLOAT &&
                     one<std::int64_t>(geometry, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) == x.rank - 2;
  if (!right) misuse("the convolution is none in f32, or has the wrong dimensions");
  return a;
}

void call_cpu(Kernel kernel, const View& a, const View& b, const View& out, const void* attrs) {
  const View inputs[2] = {a, b};
  KernelFault fault;
  KernelCall call;
  call.inputs = inputs, call.outputs = &out, call.n_inputs = 2, call.n_outputs = 1, call.attrs = attrs, call.fault = &fault;
  kernel(call);
}

void compute(const Fake& op, const Fake& pack) {
  namespace cpu = kernels::cpu;
  const auto view = [&](int attribute) { return view_of(*one<Fake*>(op, attribute), pack); };
  const auto factors = [&](int alpha, int beta) {
    if (one<float>(op, alpha) != 1 || one<float>(op, beta) != 0) misuse("the result is scaled");
  };
  if (op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
    factors(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
    const View x = view(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), w = view(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
    const View y = view(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
    const auto a = attrs_of(*one<Fake*>(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), x, w, x);
    const ConvAttrs attrs{a.stride, a.padding, a.dilation, a.groups};
    call_cpu(x.rank == 4 ? &cpu::conv2d : &cpu::conv3d, x, w, y, &attrs);
  } else if (op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
    factors(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
    const View x = view(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX), w = view(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
    const View y = view(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
    const auto attrs = attrs_of(*one<Fake*>(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC), x, w, x);
    call_cpu(x.rank == 4 ? &cpu::conv2d_input_grad : &cpu::conv3d_input_grad, y, w, x, &attrs);
  } else if (op.kind == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) {
    factors(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
    const View x = view(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
               w = view(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
    const View y = view(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
    const auto a = attrs_of(*one<Fake*>(op, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC), x, w, w);
    const ConvWeightGradAttrs attrs{a.stride, a.padding, a.dilation, a.groups, a.size};
    call_cpu(x.rank == 4 ? &cpu::conv2d_weight_grad : &cpu::conv3d_weight_grad, y, x, w, &attrs);
  } else {
    misuse("no convolution");
  }
}

DnnStatus execute(DnnHandle, DnnDescriptor plan, DnnDescriptor pack) {
  if (!fake(plan)->finalized || !fake(pack)->finalized) return misuse("a plan is executed before its finalization");
  ++state.executions;
  state.engine = fake(plan)->engine;
  state.workspace = one<void*>(*fake(pack), CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (const int status = engine(state.engine).execute_status; status != 0) return status;
  compute(*one<Fake*>(*fake(plan)->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS), *fake(pack));
  return 0;
}

}  // namespace

FakeDnn& new_fake_dnn() {
  state = {};
  return state;
}

DnnApi fake_dnn_table() {
  DnnApi api;
  api.cudnnGetErrorString = [](DnnStatus status) { return status == kNotSupported ? "NOT_SUPPORTED" : "OTHER"; };
  api.cudnnCreate = [](DnnHandle* handle) -> DnnStatus {
    state.handles += state.create_status == 0;
    *handle = reinterpret_cast<DnnHandle>(&state);
    return state.create_status;
  };
  api.cudnnDestroy = [](DnnHandle) -> DnnStatus {
    --state.handles;
    return 0;
  };
  api.cudnnSetStream = [](DnnHandle, DnnStream stream) -> DnnStatus {
    state.stream = stream;
    return 0;
  };
  api.cudnnBackendCreateDescriptor = &create;
  api.cudnnBackendDestroyDescriptor = &destroy;
  api.cudnnBackendSetAttribute = &set;
  api.cudnnBackendGetAttribute = &get;
  api.cudnnBackendFinalize = &finalize;
  api.cudnnBackendExecute = &execute;
  return api;
}

}  // namespace tapedeck::testing
