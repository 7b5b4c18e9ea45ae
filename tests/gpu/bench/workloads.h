// The workloads W1 to W6. peers.py has the same in PyTorch.
#pragma once

#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/record/capture.h>

#include <functional>
#include <string>
#include <vector>

namespace tapedeck::gpu {

struct Workload {
  std::string name;
  std::function<Captured()> record;
  PlanOptions plan = {};
};

std::vector<Workload> workloads();

}  // namespace tapedeck::gpu
