// Modules, layers and optimizers.
#pragma once

#include <tapedeck/engine/nn/layers.h>
#include <tapedeck/engine/nn/module.h>
#include <tapedeck/engine/nn/optimizer.h>
#include <tapedeck/engine/tape.h>
