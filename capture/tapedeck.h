// Everything an author needs: #include <tapedeck/tapedeck.h>
#pragma once

#include <tapedeck/capture/capture.h>
#include <tapedeck/capture/captured_step.h>
#include <tapedeck/capture/executor.h>
#include <tapedeck/capture/file.h>
#include <tapedeck/capture/host_scalar.h>
#include <tapedeck/capture/plan.h>
#include <tapedeck/capture/planner.h>
#include <tapedeck/capture/replay_pool.h>
#include <tapedeck/engine/gradients.h>
#include <tapedeck/engine/graph_gradient.h>
#include <tapedeck/engine/inplace.h>
#include <tapedeck/engine/nn.h>
#include <tapedeck/engine/ops.h>
#include <tapedeck/engine/ops/accumulate.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/tape.h>
#include <tapedeck/engine/tensor.h>
