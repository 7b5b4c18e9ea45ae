// Every op an author can call, family by family.
#pragma once

#include <tapedeck/engine/ops/activation.h>
#include <tapedeck/engine/ops/attention.h>
#include <tapedeck/engine/ops/bitwise.h>
#include <tapedeck/engine/ops/conv.h>
#include <tapedeck/engine/ops/create.h>
#include <tapedeck/engine/ops/elementwise.h>
<<<<<<< HEAD
#include <tapedeck/engine/ops/functions.h>
#include <tapedeck/engine/ops/index.h>
#include <tapedeck/engine/ops/interpolate.h>
#include <tapedeck/engine/ops/linear.h>
=======
#include <tapedeck/engine/ops/gradients.h>
>>>>>>> loss
#include <tapedeck/engine/ops/loss.h>
#include <tapedeck/engine/ops/matmul.h>
#include <tapedeck/engine/ops/movement.h>
#include <tapedeck/engine/ops/norm.h>
#include <tapedeck/engine/ops/optimizer.h>
#include <tapedeck/engine/ops/pool.h>
#include <tapedeck/engine/ops/random.h>
#include <tapedeck/engine/ops/rearrange.h>
#include <tapedeck/engine/ops/recurrent.h>
#include <tapedeck/engine/ops/reduce.h>
#include <tapedeck/engine/ops/scan.h>
#include <tapedeck/engine/ops/softmax.h>
#include <tapedeck/engine/ops/sort.h>
#include <tapedeck/engine/ops/special.h>
#include <tapedeck/engine/ops/statistics.h>
#include <tapedeck/engine/ops/unfold.h>
