// One name of each header that tapedeck.h, nn.h and ops.h include, found through tapedeck.h alone. The comment behind a name is
// its header; CMakeLists.txt compares the comments with the installed headers, so a header without a name here is an error.
#include <tapedeck/tapedeck.h>

namespace found {

using tapedeck::AdamW;                         // engine/nn/optimizer.h
using tapedeck::addmm;                         // engine/ops/accumulate.h
using tapedeck::AlphaDropout;                  // engine/nn/dropout.h
using tapedeck::argmax;                        // engine/ops/reduce.h
using tapedeck::backward;                      // engine/eager/tape.h
using tapedeck::before_call;                   // engine/nn/hooks.h
using tapedeck::bitwise_not;                   // engine/ops/bitwise.h
using tapedeck::capture;                       // capture/step/captured_step.h
using tapedeck::CaptureReport;                 // capture/record/capture.h
using tapedeck::check_gradients;               // engine/gradient/check_gradients.h
using tapedeck::checkpoint;                    // engine/eager/checkpoint.h
using tapedeck::clip_grad_norm_;               // engine/nn/gradients.h
using tapedeck::conv1d;                        // engine/ops/conv.h
using tapedeck::ConvTranspose2d;               // engine/nn/conv.h
using tapedeck::count_nonzero;                 // engine/ops/statistics.h
using tapedeck::custom_gradient;               // engine/gradient/gradients.h
using tapedeck::EagerProfile;                  // engine/eager/eager_profile.h
using tapedeck::einsum;                        // engine/ops/linear.h
using tapedeck::Embedding;                     // engine/nn/embedding.h
using tapedeck::exclude_from_capture;          // engine/ops/host.h
using tapedeck::fold;                          // engine/ops/unfold.h
using tapedeck::from_bytes;                    // engine/eager/tensor.h
using tapedeck::full;                          // engine/ops/special.h
using tapedeck::gelu;                          // engine/ops/activation.h
using tapedeck::global_norm;                   // engine/ops/gradients.h
using tapedeck::GradScaler;                    // engine/nn/grad_scaler.h
using tapedeck::GraphGradient;                 // engine/gradient/graph_gradient.h
using tapedeck::GroupNorm;                     // engine/nn/norm.h
using tapedeck::gumbel;                        // engine/ops/random.h
using tapedeck::HostScalar;                    // capture/record/host_scalar.h
using tapedeck::huber_loss;                    // engine/ops/loss.h
using tapedeck::index_put_;                    // engine/ops/subscript.h
using tapedeck::InfeasiblePlanError;           // capture/plan/infeasible_plan.h
using tapedeck::instance_norm;                 // engine/ops/norm.h
using tapedeck::interpolate;                   // engine/ops/interpolate.h
using tapedeck::kaiming_normal_;               // engine/nn/initialise.h
using tapedeck::lerp;                          // engine/ops/functions.h
using tapedeck::Linear;                        // engine/nn/layers.h
using tapedeck::linspace;                      // engine/ops/create.h
using tapedeck::live_bytes;                    // capture/plan/plan.h
using tapedeck::load_executor;                 // capture/file/load_executor.h
using tapedeck::load_tape;                     // capture/file/file.h
using tapedeck::logcumsumexp;                  // engine/ops/scan.h
using tapedeck::Lstm;                          // engine/nn/recurrent.h
using tapedeck::make_plan;                     // capture/planner/planner.h
using tapedeck::masked_fill_;                  // engine/eager/inplace.h
using tapedeck::matmul;                        // engine/ops/matmul.h
using tapedeck::max_pool1d;                    // engine/ops/pool.h
using tapedeck::Module;                        // engine/nn/module.h
using tapedeck::one_hot;                       // engine/ops/softmax.h
using tapedeck::PeakMemory;                    // engine/eager/memory.h
using tapedeck::PoolReport;                    // capture/replay/replay_pool.h
using tapedeck::pytorch_names;                 // capture/file/pytorch_weights.h
using tapedeck::rnn_cell;                      // engine/ops/recurrent.h
using tapedeck::roll;                          // engine/ops/rearrange.h
using tapedeck::run_eagerly;                   // capture/replay/executor.h
using tapedeck::save_state;                    // capture/file/training_state.h
using tapedeck::scaled_dot_product_attention;  // engine/ops/attention.h
using tapedeck::scatter_add;                   // engine/ops/index.h
using tapedeck::Sequential;                    // engine/nn/containers.h
using tapedeck::set_threads;                   // engine/eager/threads.h
using tapedeck::tape_of;                       // capture/file/captured_file.h
using tapedeck::TensorPrintOptions;            // engine/eager/print.h
using tapedeck::topk;                          // engine/ops/sort.h
using tapedeck::TransformerBlock;              // engine/nn/attention.h
using tapedeck::transpose;                     // engine/ops/movement.h
using tapedeck::where;                         // engine/ops/elementwise.h
using tapedeck::ops::count_next;               // engine/ops/optimizer.h
using tapedeck::ops::while_loop;               // engine/ops/control.h
using tapedeck::schedule::one_cycle;           // engine/nn/schedule.h

}  // namespace found
