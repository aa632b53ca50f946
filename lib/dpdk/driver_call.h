/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_DRIVER_CALL_H
#define UR_DPDK_DRIVER_CALL_H

/*
 * DPDK's drivers are shared objects that are loaded when the EAL starts, and some of them make C library
 * calls that harm an endpoint. Such a call is redirected to a function of ours in the driver's own table of
 * external functions (its PLT relocations). So nothing else in the process is affected, and it does not
 * matter whether liburoce is linked statically, dynamically or loaded later.
 *
 * Thread class: control, before the driver's first device is made.
 */

typedef void (*ur_driver_fn)(void);

/*
 * Makes `driver` ("librte_net_memif.so") call `with` instead of `function`, a function of the C library of
 * the same type. Returns 0, or a negative errno: -ENOENT if the driver is not loaded or does not call the
 * function.
 */
int ur_driver_call_replace(const char *driver, const char *function, ur_driver_fn with);

#endif
