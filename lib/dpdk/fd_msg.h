/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_DPDK_FD_MSG_H
#define UR_DPDK_FD_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Messages over a unix socket, each with UR_FD_MSG_MAX descriptors at most: what uroced and its clients send (edge/lease_msg.h), and memif's.
 * No call waits. Thread class: any.
 */

#define UR_FD_MSG_MAX 253 /* the most that the kernel sends */

/* Sends a message of `len` bytes, with copies of `cnt` descriptors. False: it was not sent, and errno says why. */
bool ur_fd_msg_send(int sock, const void *msg, size_t len, const int *fd, unsigned cnt);

/*
 * Receives a message, and into fd[0] to fd[cnt - 1] the descriptors that came with it, which are the caller's, or -1. Result as of
 * recv(). Of more descriptors than `cnt` the kernel drops the others, which is a close() by this thread and may
 * wait as long as their sender likes: what comes from strangers is received with UR_FD_MSG_MAX.
 */
ssize_t ur_fd_msg_receive(int sock, void *msg, size_t cap, int *fd, unsigned cnt);

#endif
