// The recordings of a captured step that differ in named dimensions only.
//
// A family is a list of input types with the named axes left open, in one kind of surroundings. Every recorded call adds a
// recording. Once the recordings tell how the graph follows the sizes, a call at any size in range gets a Captured and an
// executor that are made from them, and the function does not run. Belongs to one captured step; not thread safe.
#pragma once

#include <tapedeck/capture/record/call_conditions.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/step/size_buckets.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {

class DimFamilies {
 public:
  // `names`: the names that the inputs of the step were given. Throws UsageError as DimBuckets does.
  DimFamilies(DimOptions dims, PlanOptions plan, ExecutorOptions executor, std::vector<std::string> names);

  // Throws TypeError for inputs that contradict the declaration: another rank, two sizes for one dimension, a size out of
  // range.
  void check(const std::vector<Type>& types) const;
  // Adds a recording. If it uses other tensors than the last one of its family, the family begins anew with it.
  void add(const std::vector<Type>& types, const Surroundings& surroundings, const Captured& captured);
  // The recordings of this family do not hold any more: drops them.
  void forget(const std::vector<Type>& types, const Surroundings& surroundings);

  // The executor for these types; null if the function has to run. State is not bound.
  std::shared_ptr<Executor> executor(const std::vector<Type>& types, const Surroundings& surroundings);
  // The recording that a call at these types would make. REQUIRES: executor() gave one. It has no script, so a checked call is
  // recorded and compared whole.
  Captured captured(const std::vector<Type>& types, const Surroundings& surroundings);

  std::string explain() const;

 private:
  struct Family {
    std::vector<Type> pattern;
    Surroundings surroundings;
    Captured model;  // the last recording
    std::unique_ptr<DimBuckets> buckets;
    std::string begun_anew;  // why earlier recordings were set aside; empty if none were
  };
  std::vector<Type> pattern_of(std::vector<Type> types) const;
  Sizes sizes_of(const std::vector<Type>& types) const;
  std::unique_ptr<DimBuckets> new_buckets() const;
  Family* find(const std::vector<Type>& types, const Surroundings& surroundings);

  DimOptions dims_;
  PlanOptions plan_;
  ExecutorOptions executor_;
  std::vector<std::string> names_;
  std::unique_ptr<DimBuckets> declared_;  // asked for sizes only
  std::vector<Family> families_;
};

}  // namespace tapedeck
