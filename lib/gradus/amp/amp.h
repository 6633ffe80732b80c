// All of gradus::amp.
#pragma once
#include <gradus/amp/autocast.h>
#include <gradus/amp/grad_scaler.h>
