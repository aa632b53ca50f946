/* SPDX-License-Identifier: BSD-3-Clause */
#include "cc/cc_priv.h"

/* No congestion control: the table hands out no entries, so no function is ever called. */
const struct ur_cc_ops ur_cc_none = {.link = false};
