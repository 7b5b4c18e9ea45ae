// Every op an author can call, family by family.
#pragma once

#include <tapedeck/engine/ops/conv.h>
#include <tapedeck/engine/ops/elementwise.h>
#include <tapedeck/engine/ops/gradients.h>
#include <tapedeck/engine/ops/loss.h>
#include <tapedeck/engine/ops/matmul.h>
#include <tapedeck/engine/ops/movement.h>
#include <tapedeck/engine/ops/optimizer.h>
#include <tapedeck/engine/ops/random.h>
#include <tapedeck/engine/ops/reduce.h>
#include <tapedeck/engine/ops/softmax.h>
#include <tapedeck/engine/ops/special.h>
