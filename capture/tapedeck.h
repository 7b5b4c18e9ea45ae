// What a program needs that trains, captures, plans, replays, and loads and saves files: #include <tapedeck/tapedeck.h>
// The package has more headers, which programs include by name: for authors of ops, of passes and of registered models, for
// settings, and for questions about graphs and plans. capture/install_headers.cmake lists them.
#pragma once

#include <tapedeck/capture/file/captured_file.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/file/load_executor.h>
#include <tapedeck/capture/file/pytorch_weights.h>
#include <tapedeck/capture/file/training_state.h>
#include <tapedeck/capture/live/live_view.h>
#include <tapedeck/capture/plan/infeasible_plan.h>
#include <tapedeck/capture/plan/plan.h>
#include <tapedeck/capture/planner/planner.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/capture/record/host_scalar.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/capture/replay/replay_pool.h>
#include <tapedeck/capture/step/captured_step.h>
#include <tapedeck/capture/step/freeze_session.h>
#include <tapedeck/engine/eager/checkpoint.h>
#include <tapedeck/engine/eager/eager_profile.h>
#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/memory.h>
#include <tapedeck/engine/eager/print.h>
#include <tapedeck/engine/eager/session.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/engine/eager/threads.h>
#include <tapedeck/engine/gradient/check_gradients.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/gradient/graph_gradient.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/accumulate.h>
#include <tapedeck/engine/ops/device.h>
#include <tapedeck/engine/ops/host.h>
#include <tapedeck/engine/ops/ops.h>
