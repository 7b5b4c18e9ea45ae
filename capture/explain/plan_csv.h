// A plan's buffers as CSV, in the dialect of placement benchmarks: what `tapedeck offsets` and MiniMalloc read.
#pragma once

#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// A row for each buffer of the arena: id,lower,upper,size,offset,alignment, then name,where,reason,node,phase,site,dtype,shape
// of the value that is in it first. Lifetimes are half open and in numbers of nodes. Values that hand a buffer on are one row;
// windows and parts have none; externals are not in the arena and not listed. Of an arena in chunks `offset` counts from the
// start of the chunk, whose number stands in a further column `arena` (`tapedeck offsets` wants --anew then). Text with commas
// or quotes stands in quotes, lines in text become spaces. REQUIRES: check_plan(plan) finds nothing. O(values log values).
std::string plan_csv(const Plan& plan);

}  // namespace TAPEDECK_API
