// A profile beside the costs that were expected: for people and for JSON.
#pragma once

#include <tapedeck/capture/cost/calibration.h>
#include <tapedeck/capture/cost/profile.h>
#include <tapedeck/capture/plan/plan.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck::tool {

struct ProfileRow {
  std::string name, op;
  double us = 0;          // of one run
  std::int32_t runs = 1;  // in a step: clones counted
  double share = 0;       // of the kernel time of the step
  double estimate_us = 0;
  double ratio = 0;  // measured to estimated; 0 if no cost was expected
};

struct ProfileTable {
  Profile profile;
  std::string estimates;         // estimate, calibrated
  std::vector<ProfileRow> rows;  // dearest first
  double kernels_us = 0;         // in one step: the sum over all nodes of the median time of a run, clones included
  double estimate_us = 0;        // the same sum, of the expected times
  std::string saved;             // the file it was written to; empty: none
};

ProfileTable profile_table(const Plan& plan, const Profile& profile, const Calibration* calibration);
std::string profile_text(const ProfileTable& table);  // the dearest twenty, and totals

// The steps of one replay, timed node by node on one thread; the first few warm up and do not count.
class NodeTimer {
 public:
  NodeTimer(const Plan& plan, int steps);  // `plan` must outlive it
  Timeline* timeline() { return &step_; }  // for Executor::run
  void step_done();                        // after each run
  Profile finish(std::int64_t observed_peak_bytes) const;

 private:
  ProfileBuilder builder_;
  Timeline step_;
  int warm_up_;
};

}  // namespace tapedeck::tool
