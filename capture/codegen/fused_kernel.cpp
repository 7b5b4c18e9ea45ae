// From requests to loaded kernels. The requests are written as sources first; each different source is then compiled and loaded
// once, and the kernels of equal sources share what is loaded.
#include <tapedeck/capture/codegen/fused_kernel.h>

#include <tapedeck/capture/codegen/compile.h>
#include <tapedeck/capture/codegen/fused_source.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/kernels/cuda/module.h>
#include <tapedeck/kernels/parallel.h>

#include <fmt/format.h>

#include <unordered_map>

namespace tapedeck::codegen {

namespace {

using kernels::cuda::ModuleApi;

void check(const char* error, const char* call) {
  if (error) throw DeviceError(error_text("fused", fmt::format("{}: {}", call, error), {}));
}

// A loaded image, and its kernels.
class LoadedKernels {
 public:
  LoadedKernels(const std::string& image, bool has_wide) : api_(kernels::cuda::module_api()) {
    check(api_.load(image.data(), image.size(), &module_), "loading a kernel");
    try {
      check(api_.kernel(module_, "fused_plain", &plain), "finding a kernel");
      if (has_wide) check(api_.kernel(module_, "fused_wide", &wide), "finding a kernel");
    } catch (...) {
      api_.unload(module_);
      throw;
    }
  }
  ~LoadedKernels() { api_.unload(module_); }
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;

  const ModuleApi& api() const { return api_; }

  kernels::cuda::ModuleKernel plain = nullptr, wide = nullptr;

 private:
  const ModuleApi& api_;
  kernels::cuda::Module module_ = nullptr;
};

class LoadedFusedKernel final : public FusedKernel {
 public:
  LoadedFusedKernel(FusedLayout layout, std::shared_ptr<const LoadedKernels> loaded)
      : layout_(std::move(layout)), loaded_(std::move(loaded)), bytes_(8 * argument_places(layout_).words) {}

  void run(const KernelCall& call) const override {
    FusedLaunch launch;
    fill_launch(layout_, call, &launch);
    if (launch.blocks == 0) return;
    const char* const error = loaded_->api().launch(launch.wide ? loaded_->wide : loaded_->plain, launch.blocks, kFusedThreads,
                                                    launch.words, static_cast<std::size_t>(bytes_), call.stream);
    if (error) call.fault->report(error, 0);
  }

 private:
  const FusedLayout layout_;
  const std::shared_ptr<const LoadedKernels> loaded_;
  const int bytes_;
};

// One source, of one request or several.
struct Unit {
  const std::string* text = nullptr;
  bool has_wide = false;
  std::string image;
  std::shared_ptr<const LoadedKernels> loaded;
  std::string why;
};

void compile_unit(Unit* unit, int sm, const KernelCache& cache) {
  try {
    unit->image = compile_source(*unit->text, sm, cache).image;
  } catch (const DeviceError& error) {
    unit->why = error.what();
  }
}

void load_unit(Unit* unit) {
  if (!unit->why.empty()) return;
  try {
    unit->loaded = std::make_shared<LoadedKernels>(unit->image, unit->has_wide);
  } catch (const DeviceError& error) {
    unit->why = error.what();
  }
}

class Batch {
 public:
  // Writes the source of the request, unless an earlier one has it.
  void add(const FusedRequest& request) {
    Wanted wanted;
    wanted.layout = fused_layout(request.inputs, request.outputs);
    try {
      const FusedSource source = fused_source(*request.region, wanted.layout);
      const auto [place, is_new] = unit_of_.try_emplace(complete_text({&source, 1}), units_.size());
      if (is_new) units_.push_back({&place->first, wanted.layout.lanes > 1, {}, nullptr, {}});
      wanted.unit = place->second;
    } catch (const DeviceError& error) {
      wanted.why = error.what();
    }
    wanted_.push_back(std::move(wanted));
  }

  // Compiles on several threads, and loads on the calling one, which has its own current device.
  void compile_and_load(int sm) {
    const KernelCache cache(kernel_cache_folder());
    kernels::parallel_for(static_cast<std::int64_t>(units_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) compile_unit(&units_[static_cast<std::size_t>(i)], sm, cache);
    });
    for (Unit& unit : units_) load_unit(&unit);
  }

  std::vector<FusedResult> results() {
    std::vector<FusedResult> found;
    for (Wanted& w : wanted_) {
      FusedResult result{nullptr, w.why};
      if (w.why.empty()) {
        const Unit& unit = units_[w.unit];
        result.why = unit.why;
        if (unit.loaded) result.kernel = std::make_unique<LoadedFusedKernel>(std::move(w.layout), unit.loaded);
      }
      found.push_back(std::move(result));
    }
    return found;
  }

 private:
  struct Wanted {
    FusedLayout layout;
    std::size_t unit = 0;
    std::string why;
  };
  std::vector<Wanted> wanted_;
  std::vector<Unit> units_;
  std::unordered_map<std::string, std::size_t> unit_of_;  // by text; its keys stay where they are
};

}  // namespace

void run_fused_kernel(const KernelCall& call) { static_cast<const FusedKernel*>(call.attrs)->run(call); }

std::vector<FusedResult> compile_fused(std::span<const FusedRequest> requests, int sm) {
  Batch batch;
  for (const FusedRequest& request : requests) batch.add(request);
  batch.compile_and_load(sm);
  return batch.results();
}

}  // namespace tapedeck::codegen
