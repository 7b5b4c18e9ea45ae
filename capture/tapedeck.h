// Everything an author needs: #include <tapedeck/tapedeck.h>
#pragma once

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/pytorch_weights.h>
#include <tapedeck/capture/file/training_state.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/host_scalar.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/load_executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/print.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/accumulate.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>
