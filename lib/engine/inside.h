/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_ENGINE_INSIDE_H
#define UR_ENGINE_INSIDE_H

#include "engine/engine.h"

/* What the parts of an engine share, for tests that look at a part. The layers above the engine ask engine/query.h. */
struct ur_core *ur_engine_core(struct ur_engine *e);

#endif
