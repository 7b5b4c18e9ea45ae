// Plans of cuDNN for convolutions, through its backend interface. Everything there is a descriptor: a typed list of attributes,
// which is finalized before it is used.
//
//   tensors x w y, convolution  ->  operation  ->  graph  ->  heuristic: a list of engine configurations, the best first
//   engine configuration  ->  notes of its engine  ->  plan with its workspace  ->  execute with a variant pack of pointers
//
// Among the configurations whose engine has no unwanted note, and whose plan cuDNN accepts, the one of the best rank
// (dnn_choice.h) becomes the plan of the shape, or the first of them.
#include <tapedeck/kernels/cuda/convolution/dnn_choice.h>
#include <tapedeck/kernels/cuda/environment.h>
#include <tapedeck/kernels/half.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tapedeck::kernels::cuda {
namespace {

constexpr std::int64_t kMostWorkspace = 256 << 20;
constexpr std::int64_t kAlignment = 16;
constexpr std::int64_t kMostConfigurations = 64;
constexpr std::int64_t kIds[3] = {1, 2, 3};  // of x, w and y

// A descriptor. After the first failure the others do nothing, and status() holds the first error.
class Descriptor {
 public:
  Descriptor(const DnnApi& api, DnnDescriptorKind kind) : api_(&api) {
    status_ = api.cudnnBackendCreateDescriptor(kind, &descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept
      : api_(other.api_), descriptor_(std::exchange(other.descriptor_, nullptr)), status_(other.status_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(api_, other.api_), std::swap(descriptor_, other.descriptor_), std::swap(status_, other.status_);
    return *this;
  }
  ~Descriptor() {
    if (descriptor_) api_->cudnnBackendDestroyDescriptor(descriptor_);
  }

  void set(DnnAttribute attribute, DnnAttributeType type, std::int64_t count, const void* values) {
    if (status_ == 0) status_ = api_->cudnnBackendSetAttribute(descriptor_, attribute, type, count, values);
  }
  void set(DnnAttribute attribute, const Descriptor& value) {
    set(attribute, dnn::CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  void set(DnnAttribute attribute, DnnAttributeType type, int value) { set(attribute, type, 1, &value); }
  void set(DnnAttribute attribute, std::int64_t value) { set(attribute, dnn::CUDNN_TYPE_INT64, 1, &value); }
  void set(DnnAttribute attribute, DnnHandle handle) { set(attribute, dnn::CUDNN_TYPE_HANDLE, 1, &handle); }
  void set(DnnAttribute attribute, const std::vector<std::int64_t>& list) {
    set(attribute, dnn::CUDNN_TYPE_INT64, static_cast<std::int64_t>(list.size()), list.data());
  }
  // Returns how many values there are, at most `wanted`, or 0 after a failure.
  std::int64_t get(DnnAttribute attribute, DnnAttributeType type, std::int64_t wanted, void* values) {
    std::int64_t count = 0;
    if (status_ == 0) status_ = api_->cudnnBackendGetAttribute(descriptor_, attribute, type, wanted, &count, values);
    return status_ == 0 ? std::min(count, wanted) : 0;
  }
  bool finalize() {
    if (status_ == 0) status_ = api_->cudnnBackendFinalize(descriptor_);
    return status_ == 0;
  }
  DnnStatus status() const { return status_; }
  DnnDescriptor get() const { return descriptor_; }

 private:
  const DnnApi* api_;
  DnnDescriptor descriptor_ = nullptr;
  DnnStatus status_ = 0;
};

// ---- the operation ----

int data_type(DType dtype) {
  if (dtype == DType::f16) return dnn::CUDNN_DATA_HALF;
  return dtype == DType::bf16 ? dnn::CUDNN_DATA_BFLOAT16 : dnn::CUDNN_DATA_FLOAT;
}

// The last `dims` of the three spatial numbers.
std::vector<std::int64_t> spatial(const cpu::Spatial& s, int dims) { return {s.end() - dims, s.end()}; }

// A tensor [first, second, spatial], dense but for the stride of its first dimension.
Descriptor tensor(const DnnApi& api, const DnnConvolution& p, std::int64_t id, std::int64_t first, std::int64_t second,
                  const cpu::Spatial& size, std::int64_t stride) {
  std::vector<std::int64_t> sizes = {first, second};
  for (const std::int64_t s : spatial(size, p.dims)) sizes.push_back(s);
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size() - 1; i > 1; --i) strides[i - 1] = strides[i] * sizes[i];
  strides[0] = stride;
  Descriptor t(api, dnn::CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(dnn::CUDNN_ATTR_TENSOR_DATA_TYPE, dnn::CUDNN_TYPE_DATA_TYPE, data_type(p.dtype));
  t.set(dnn::CUDNN_ATTR_TENSOR_DIMENSIONS, sizes);
  t.set(dnn::CUDNN_ATTR_TENSOR_STRIDES, strides);
  t.set(dnn::CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  t.set(dnn::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  t.finalize();
  return t;
}

Descriptor geometry(const DnnApi& api, const DnnConvolution& p) {
  Descriptor c(api, dnn::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, dnn::CUDNN_TYPE_DATA_TYPE, dnn::CUDNN_DATA_FLOAT);
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_CONV_MODE, dnn::CUDNN_TYPE_CONVOLUTION_MODE, dnn::CUDNN_CROSS_CORRELATION);
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{p.dims});
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, spatial(p.shape.before, p.dims));
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, spatial(p.shape.after, p.dims));
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_DILATIONS, spatial(p.shape.dilation, p.dims));
  c.set(dnn::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, spatial(p.shape.stride, p.dims));
  c.finalize();
  return c;
}

// The names that cuDNN gives the operation of a pass and its attributes.
struct OperationNames {
  DnnDescriptorKind kind;
  DnnAttribute x, w, y, geometry, alpha, beta;
};
OperationNames names_of(cpu::ConvPass pass) {
  using namespace dnn;
  switch (pass) {
    case cpu::ConvPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case cpu::ConvPass::input_grad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case cpu::ConvPass::weight_grad:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

// ---- engines ----

// The notes that an engine must not have. A list ends at -1.
struct Notes {
  int all[4] = {-1, -1, -1, -1};
};
Notes unwanted_notes(const DnnConvolution& p) {
  if (p.dtype != DType::f32)
    return {{dnn::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, dnn::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
             dnn::CUDNN_NUMERICAL_NOTE_WINOGRAD, -1}};
  if (p.tf32) return {{dnn::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, dnn::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13, -1, -1}};
  return {{dnn::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, dnn::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
           dnn::CUDNN_NUMERICAL_NOTE_TENSOR_CORE, dnn::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS}};
}

constexpr std::int64_t kMostKnobs = dnn::CUDNN_KNOB_TYPE_COUNTS;

std::vector<int> read_notes(Descriptor& engine, DnnAttribute attribute, DnnAttributeType type, std::int64_t most) {
  std::vector<int> notes(static_cast<std::size_t>(most));
  notes.resize(static_cast<std::size_t>(engine.get(attribute, type, most, notes.data())));
  return notes;
}

bool has(const std::vector<int>& notes, int note) { return std::find(notes.begin(), notes.end(), note) != notes.end(); }

// The engine of a configuration, with its notes. It is not usable if cuDNN does not tell them.
DnnConfiguration read_configuration(const DnnApi& api, Descriptor& configuration, const DnnConvolution& p) {
  Descriptor engine(api, dnn::CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  DnnDescriptor at = engine.get();
  configuration.get(dnn::CUDNN_ATTR_ENGINECFG_ENGINE, dnn::CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &at);
  DnnConfiguration c;
  c.notes = read_notes(engine, dnn::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, dnn::CUDNN_TYPE_NUMERICAL_NOTE,
                       dnn::CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  c.behaviour = read_notes(engine, dnn::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, dnn::CUDNN_TYPE_BEHAVIOR_NOTE,
                           dnn::CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  c.usable = configuration.status() == 0 && engine.status() == 0;
  for (const int unwanted : unwanted_notes(p).all) c.usable = c.usable && !(unwanted >= 0 && has(c.notes, unwanted));
  if (engine.get(dnn::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, dnn::CUDNN_TYPE_INT64, 1, &c.engine) != 1) c.engine = -1;
  return c;
}

// The descriptors of one kind that an attribute lists, at most `most`.
std::vector<Descriptor> listed(const DnnApi& api, Descriptor& from, DnnAttribute attribute, DnnDescriptorKind kind,
                               std::int64_t most) {
  std::vector<Descriptor> all;
  std::vector<DnnDescriptor> at;
  for (std::int64_t i = 0; i < most; ++i) {
    all.emplace_back(api, kind);
    at.push_back(all.back().get());
  }
  const std::int64_t n = from.get(attribute, dnn::CUDNN_TYPE_BACKEND_DESCRIPTOR, most, at.data());
  all.erase(all.begin() + n, all.end());
  return all;
}

std::vector<std::pair<int, std::int64_t>> read_knobs(const DnnApi& api, Descriptor& configuration) {
  std::vector<Descriptor> choices =
      listed(api, configuration, dnn::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, dnn::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMostKnobs);
  std::vector<std::pair<int, std::int64_t>> knobs;
  for (Descriptor& choice : choices) {
    std::pair<int, std::int64_t> knob{-1, -1};
    choice.get(dnn::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, dnn::CUDNN_TYPE_KNOB_TYPE, 1, &knob.first);
    choice.get(dnn::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, dnn::CUDNN_TYPE_INT64, 1, &knob.second);
    knobs.push_back(knob);
  }
  return knobs;
}

// The configurations that a heuristic proposes for the graph, the best first.
std::vector<Descriptor> propose(const DnnApi& api, const Descriptor& graph, int mode) {
  Descriptor heuristic(api, dnn::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(dnn::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristic.set(dnn::CUDNN_ATTR_ENGINEHEUR_MODE, dnn::CUDNN_TYPE_HEUR_MODE, mode);
  if (!heuristic.finalize()) return {};
  return listed(api, heuristic, dnn::CUDNN_ATTR_ENGINEHEUR_RESULTS, dnn::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                kMostConfigurations);
}

std::vector<std::int64_t> key_of(const DnnConvolution& p) {
  const cpu::ConvShape& s = p.shape;
  std::vector<std::int64_t> key = {static_cast<std::int64_t>(p.pass),
                                   static_cast<std::int64_t>(p.dtype),
                                   p.tf32,
                                   p.dims,
                                   p.device,
                                   s.batch,
                                   s.in_channels,
                                   s.out_channels,
                                   s.groups,
                                   p.strides.in,
                                   p.strides.out};
  for (const cpu::Spatial* list : {&s.in, &s.kernel, &s.stride, &s.dilation, &s.before, &s.after})
    key.insert(key.end(), list->begin(), list->end());
  return key;
}

bool is_aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % kAlignment == 0; }

}  // namespace

// ---- plans ----

// The descriptors that a plan was made from live as long as the plan.
struct DnnPlan {
  std::vector<Descriptor> parts;
  Descriptor plan;
  std::int64_t workspace = 0;
  bool refused = false;  // a launch failed, so our own kernels compute the shape from then on
};

namespace {

struct Failure {
  const char* step = "has no engine that fits";
  DnnStatus status = 0;
};

// Makes the descriptors up to the graph, which is the last of the list. An empty list means a failure.
std::vector<Descriptor> make_graph(const DnnApi& api, DnnHandle handle, const DnnConvolution& p, Failure& failure) {
  const cpu::ConvShape& s = p.shape;
  const OperationNames names = names_of(p.pass);
  std::vector<Descriptor> parts;
  parts.push_back(tensor(api, p, kIds[0], s.batch, s.in_channels, s.in, p.strides.in));
  parts.push_back(tensor(api, p, kIds[1], s.out_channels, s.in_per_group(), s.kernel, s.in_per_group() * s.taps()));
  parts.push_back(tensor(api, p, kIds[2], s.batch, s.out_channels, {s.out(0), s.out(1), s.out(2)}, p.strides.out));
  parts.push_back(geometry(api, p));

  const float alpha = 1, beta = 0;
  Descriptor operation(api, names.kind);
  operation.set(names.x, parts[0]);
  operation.set(names.w, parts[1]);
  operation.set(names.y, parts[2]);
  operation.set(names.geometry, parts[3]);
  operation.set(names.alpha, dnn::CUDNN_TYPE_FLOAT, 1, &alpha);
  operation.set(names.beta, dnn::CUDNN_TYPE_FLOAT, 1, &beta);
  operation.finalize();

  Descriptor graph(api, dnn::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(dnn::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph.set(dnn::CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  parts.push_back(std::move(operation));
  parts.push_back(std::move(graph));
  for (const Descriptor& part : parts)
    if (part.status() != 0) {
      failure = {"refuses the convolution", part.status()};
      return {};
    }
  return parts;
}

// Finalizes the plan of a configuration. Null if cuDNN refuses it, or if it wants too much workspace.
std::unique_ptr<DnnPlan> finish_plan(const DnnApi& api, DnnHandle handle, const Descriptor& configuration, Failure& failure) {
  Descriptor plan(api, dnn::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(dnn::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
  plan.set(dnn::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  plan.finalize();
  std::int64_t workspace = 0;
  plan.get(dnn::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, dnn::CUDNN_TYPE_INT64, 1, &workspace);
  if (plan.status() != 0) {
    failure = {"refuses its own engine", plan.status()};
    return nullptr;
  }
  if (workspace < 0 || workspace > kMostWorkspace) return nullptr;
  return std::make_unique<DnnPlan>(DnnPlan{{}, std::move(plan), workspace});
}

// Configurations of a problem, and what is known of each.
struct Proposals {
  std::vector<Descriptor> descriptors;
  std::vector<DnnConfiguration> configurations;
  std::vector<std::size_t> ranks;

  // True if one has the best rank and is not compiled at run time.
  bool have_the_best() const {
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (ranks[i] == 0 && configurations[i].usable && !configurations[i].compiles_at_run_time()) return true;
    return false;
  }
};

// Appends what a mode of the heuristic proposes. The knobs are read only where a preference may ask for them.
void append_proposals(const DnnApi& api, const Descriptor& graph, const DnnConvolution& p, int mode, Proposals* all) {
  const std::vector<DnnPreference> preferences = dnn_preferences(p);
  for (Descriptor& proposed : propose(api, graph, mode)) {
    DnnConfiguration c = read_configuration(api, proposed, p);
    if (c.usable && !preferences.empty()) c.knobs = read_knobs(api, proposed);
    all->ranks.push_back(dnn_rank(preferences, c));
    all->configurations.push_back(std::move(c));
    all->descriptors.push_back(std::move(proposed));
  }
}

// The usable configurations by rank, and within a rank in the order of the heuristic.
std::vector<std::size_t> order_of(const Proposals& all, bool compiled) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.ranks.size(); ++i)
    if (all.configurations[i].usable && all.configurations[i].compiles_at_run_time() == compiled) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return all.ranks[a] < all.ranks[b]; });
  return order;
}

// The first plan that works, with the descriptor of its configuration.
std::unique_ptr<DnnPlan> first_plan(const DnnApi& api, DnnHandle handle, Proposals* all, bool compiled, Failure& failure) {
  for (const std::size_t i : order_of(*all, compiled))
    if (std::unique_ptr<DnnPlan> plan = finish_plan(api, handle, all->descriptors[i], failure)) {
      plan->parts.push_back(std::move(all->descriptors[i]));
      return plan;
    }
  return nullptr;
}

// The best plan that works. The fallback of the heuristic is asked only if mode A proposes nothing of the best rank, or nothing
// that works. Engines that are compiled at run time come after all others.
std::unique_ptr<DnnPlan> make_plan(const DnnApi& api, DnnHandle handle, const DnnConvolution& p, Failure& failure) {
  std::vector<Descriptor> parts = make_graph(api, handle, p, failure);
  if (parts.empty()) return nullptr;
  Proposals all;
  append_proposals(api, parts.back(), p, dnn::CUDNN_HEUR_MODE_A, &all);
  if (own_kernels_are_faster(p, all.configurations)) {
    failure = {"is slower than our own kernels"};
    return nullptr;
  }
  const bool complete = all.have_the_best();
  if (!complete) append_proposals(api, parts.back(), p, dnn::CUDNN_HEUR_MODE_FALLBACK, &all);
  std::unique_ptr<DnnPlan> plan = first_plan(api, handle, &all, false, failure);
  if (!plan && complete) {
    append_proposals(api, parts.back(), p, dnn::CUDNN_HEUR_MODE_FALLBACK, &all);
    plan = first_plan(api, handle, &all, false, failure);
  }
  if (!plan) plan = first_plan(api, handle, &all, true, failure);
  if (plan) std::move(parts.begin(), parts.end(), std::back_inserter(plan->parts));
  return plan;
}

// The plan of one configuration.
std::unique_ptr<DnnPlan> make_plan_of(const DnnApi& api, DnnHandle handle, const DnnConvolution& p, int mode, int index,
                                      Failure& failure) {
  std::vector<Descriptor> parts = make_graph(api, handle, p, failure);
  if (parts.empty()) return nullptr;
  std::vector<Descriptor> all = propose(api, parts.back(), mode);
  if (index < 0 || static_cast<std::size_t>(index) >= all.size()) return nullptr;
  Descriptor& configuration = all[static_cast<std::size_t>(index)];
  std::unique_ptr<DnnPlan> plan = finish_plan(api, handle, configuration, failure);
  if (!plan) return nullptr;
  parts.push_back(std::move(configuration));
  plan->parts = std::move(parts);
  return plan;
}

DnnStatus launch(const DnnApi& api, DnnHandle handle, const DnnPlan& plan, const DnnOperands& operands) {
  if (const DnnStatus status = api.cudnnSetStream(handle, operands.stream); status != 0) return status;
  const void* const pointers[3] = {operands.x, operands.w, operands.y};
  Descriptor pack(api, dnn::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(dnn::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, dnn::CUDNN_TYPE_INT64, 3, kIds);
  pack.set(dnn::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, dnn::CUDNN_TYPE_VOID_PTR, 3, pointers);
  pack.set(dnn::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, dnn::CUDNN_TYPE_VOID_PTR, 1, &operands.workspace);
  if (!pack.finalize()) return pack.status();
  return api.cudnnBackendExecute(handle, plan.plan.get(), pack.get());
}

}  // namespace

// ---- the interface ----

bool is_for_dnn(const DnnConvolution& p) {
  const bool type = p.dtype == DType::f32 || is_half(p.dtype);
  return type && !p.shape.empty() && p.strides.in >= p.shape.in_size() && p.strides.out >= p.shape.out_size();
}

bool dnn_is_wanted() { return !is_set_to("TAPEDECK_CUDA_CONV", "own"); }
bool tf32_is_allowed() { return is_set_to("TAPEDECK_TF32", "1"); }

bool DnnConfiguration::compiles_at_run_time() const { return has(behaviour, dnn::CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION); }

DnnConvolutions::DnnConvolutions(std::size_t most_plans) : most_plans_(most_plans) {}

DnnConvolutions::~DnnConvolutions() {
  plans_.clear();
  const DnnApi* api = dnn_api();
  for (const auto& [device, handle] : handles_)
    if (api && handle) api->cudnnDestroy(handle);
}

void DnnConvolutions::fail(const DnnApi& api, const char* step, DnnStatus status) {
  last_failure_ = std::string("cuDNN ") + step;
  if (status != 0) last_failure_ += std::string(": ") + api.cudnnGetErrorString(status);
}

DnnHandle DnnConvolutions::handle_of(const DnnApi& api, int device) {
  const auto [at, is_new] = handles_.try_emplace(device, nullptr);
  if (!is_new) return at->second;
  if (const DnnStatus status = api.cudnnCreate(&at->second); status != 0) {
    at->second = nullptr;
    fail(api, "does not start", status);
  }
  return at->second;
}

DnnPlan* DnnConvolutions::plan_of(const DnnApi& api, const DnnConvolution& problem, bool may_plan) {
  if (!is_for_dnn(problem)) return nullptr;
  std::vector<std::int64_t> key = key_of(problem);
  if (const auto known = plans_.find(key); known != plans_.end())
    return known->second && !known->second->refused ? known->second.get() : nullptr;
  if (!may_plan || plans_.size() >= most_plans_) return nullptr;
  Failure failure;
  const DnnHandle handle = handle_of(api, problem.device);
  std::unique_ptr<DnnPlan> plan = handle ? make_plan(api, handle, problem, failure) : nullptr;
  if (handle && !plan) fail(api, failure.step, failure.status);
  return (plans_[std::move(key)] = std::move(plan)).get();
}

std::int64_t DnnConvolutions::workspace(const DnnConvolution& problem) {
  const DnnApi* api = dnn_api();
  if (!api) return -1;
  const std::lock_guard lock(mutex_);
  const DnnPlan* plan = plan_of(*api, problem, true);
  return plan ? plan->workspace : -1;
}

bool DnnConvolutions::run(const DnnConvolution& problem, const DnnOperands& operands) {
  const DnnApi* api = dnn_api();
  if (!api || !is_aligned(operands.x) || !is_aligned(operands.w) || !is_aligned(operands.y)) return false;
  const std::lock_guard lock(mutex_);
  DnnPlan* plan = plan_of(*api, problem, operands.may_plan);
  if (!plan || static_cast<std::int64_t>(operands.workspace_bytes) < plan->workspace) return false;
  const DnnStatus status = launch(*api, handle_of(*api, problem.device), *plan, operands);
  if (status == 0) return true;
  fail(*api, "does not launch", status);
  plan->refused = true;
  return false;
}

std::vector<DnnConfiguration> DnnConvolutions::configurations(const DnnConvolution& problem, int mode) {
  const DnnApi* api = dnn_api();
  std::vector<DnnConfiguration> all;
  if (!api || !is_for_dnn(problem)) return all;
  const std::lock_guard lock(mutex_);
  const DnnHandle handle = handle_of(*api, problem.device);
  if (!handle) return all;
  Failure failure;
  const std::vector<Descriptor> parts = make_graph(*api, handle, problem, failure);
  if (parts.empty()) return fail(*api, failure.step, failure.status), all;
  for (Descriptor& proposed : propose(*api, parts.back(), mode)) {
    DnnConfiguration c = read_configuration(*api, proposed, problem);
    c.mode = mode, c.index = static_cast<int>(all.size());
    c.knobs = read_knobs(*api, proposed);
    all.push_back(std::move(c));
  }
  return all;
}

std::int64_t DnnConvolutions::use(const DnnConvolution& problem, int mode, int index) {
  const DnnApi* api = dnn_api();
  if (!api || !is_for_dnn(problem)) return -1;
  const std::lock_guard lock(mutex_);
  const DnnHandle handle = handle_of(*api, problem.device);
  if (!handle) return -1;
  Failure failure;
  std::unique_ptr<DnnPlan> plan = make_plan_of(*api, handle, problem, mode, index, failure);
  if (!plan) return fail(*api, failure.step, failure.status), -1;
  const std::int64_t workspace = plan->workspace;
  plans_[key_of(problem)] = std::move(plan);
  return workspace;
}

std::string DnnConvolutions::last_failure() const {
  const std::lock_guard lock(mutex_);
  return last_failure_;
}

// Never destroyed, because a thread that still runs at exit may use it.
DnnConvolutions& dnn_convolutions() {
  static auto* all = new DnnConvolutions;
  return *all;
}

}  // namespace tapedeck::kernels::cuda
