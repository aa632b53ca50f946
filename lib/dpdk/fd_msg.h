/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_FD_MSG_H
#define UR_DPDK_FD_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Messages over a unix socket, each with a descriptor at most: what uroced and its clients send (edge/lease_msg.h), and memif's.
 * No call waits. Thread class: any.
 */

/* Sends a message of `len` bytes, with a copy of `fd` unless it is -1. False: it was not sent, and errno says why. */
bool ur_fd_msg_send(int sock, const void *msg, size_t len, int fd);

/*
 * Receives a message, and into *fd the descriptor that came with it, which is the caller's, or -1. Result as of recv(). Of more
 * descriptors than one the kernel drops the others unopened: that does not wait, as close() of a stranger's descriptor can.
 */
ssize_t ur_fd_msg_receive(int sock, void *msg, size_t cap, int *fd);

#endif
