/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_DRIVER_CALL_H
#define UR_DPDK_DRIVER_CALL_H

/*
 * DPDK's drivers are shared objects that are loaded when the EAL starts, and some of them ask the C
 * library for what they should not. Such a call is directed to a function of ours by the driver's own
 * table of external functions (its PLT relocations), so that nothing else in the process sees a
 * difference, and whether liburoce is linked statically, dynamically or loaded later does not matter.
 *
 * Thread class: control, before the driver's first device is made.
 */

typedef void (*ur_driver_fn)(void);

/*
 * From now on `driver` ("librte_net_memif.so") calls `with` where it called `function`, whose type is
 * that of the C library's. Returns 0, or a negative errno: -ENOENT when the driver is not loaded or
 * does not call the function.
 */
int ur_driver_call_replace(const char *driver, const char *function, ur_driver_fn with);

#endif
