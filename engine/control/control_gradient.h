// The gradients of control flow. Each of them runs the gradient of the region, which gradient(graph) generates:
//   scan                           a scan in the other direction, over the values that the passes kept
//   while, scan with checkpoints   the loop again, with the gradient of each pass (loop_grad)
//   cond                           a cond with the gradients of the branches
// The gradient of a captured operand is handed from pass to pass. It begins with -0, which changes no sum.
#pragma once

#include <tapedeck/engine/eager/vjp.h>

namespace tapedeck {

void vjp_while(Vjp& b);
void vjp_scan(Vjp& b);
void vjp_cond(Vjp& b);

}  // namespace tapedeck
