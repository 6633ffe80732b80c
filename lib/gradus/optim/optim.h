// All of gradus::optim.
#pragma once
#include <gradus/optim/lr_scheduler.h>
#include <gradus/optim/optimizer.h>
