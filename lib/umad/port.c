/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibumad: open ports, agents, and MADs in and out. A port is the file descriptor of a connection to uroce-hca, which
 * programs may also pass to poll().
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "umad/client.h"
#include "umad/pass.h"

#define SMP_LID_CLASS	   0x01
#define SMP_DIRECTED_CLASS 0x81
#define OPENIB_OUI	   0x001405u
#define RETRY_PAUSE_US	   100000 /* OpenSM calls umad_recv() again at once when it fails */

int umad_open_port(const char *ca_name, int portnum)
{
	struct ur_umad_open open = {.kind = UR_UMAD_OPEN, .version = UR_UMAD_VERSION};
	struct ur_umad_result result;
	struct ur_umad_ca ca;
	int fd, rc = ur_umad_resolve(ca_name, portnum, &ca);

	if (rc < 0)
		return rc;
	fd = ur_umad_connect(ca.name);
	if (fd < 0)
		return fd;
	open.port = ca.port.number;
	rc = -EIO;
	if (send(fd, &open, sizeof(open), MSG_NOSIGNAL) == (ssize_t)sizeof(open) &&
	    recv(fd, &result, sizeof(result), 0) == (ssize_t)sizeof(result))
		rc = result.value;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	ur_umad_debug(1, "opened %s port %u: fd %d", ca.name, open.port, fd);
	return fd;
}

int umad_close_port(int fd)
{
	close(fd);
	return 0;
}

int umad_get_fd(int fd)
{
	return fd;
}

static int register_agent(int fd, struct ur_umad_register *r)
{
	int rc;

	r->kind = UR_UMAD_REGISTER;
	rc = ur_umad_ask(fd, r, sizeof(*r));
	ur_umad_debug(1, "fd %d: register class 0x%02x version %u: %d", fd, r->mgmt_class,
		      r->class_version, rc);
	return rc;
}

static void copy_mask(struct ur_umad_register *r, const long *mask)
{
	if (mask != NULL)
		memcpy(r->methods, mask, sizeof(r->methods));
}

int umad_register(int fd, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)])
{
	struct ur_umad_register r = {.mgmt_class = (uint8_t)mgmt_class,
				     .class_version = (uint8_t)mgmt_version,
				     .rmpp_version = rmpp_version,
				     .oui = OPENIB_OUI};
	int rc;

	copy_mask(&r, method_mask);
	rc = register_agent(fd, &r);
	return rc < 0 ? -EPERM : rc;
}

int umad_register_oui(int fd, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)])
{
	struct ur_umad_register r = {.mgmt_class = (uint8_t)mgmt_class,
				     .class_version = 1,
				     .rmpp_version = rmpp_version,
				     .oui = (uint32_t)oui[0] << 16 | (uint32_t)oui[1] << 8 |
					    oui[2]};
	int rc;

	if (mgmt_class < 0x30 || mgmt_class > 0x4f)
		return -EINVAL;
	copy_mask(&r, method_mask);
	rc = register_agent(fd, &r);
	return rc < 0 ? -EPERM : rc;
}

int umad_register2(int fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct ur_umad_register r;
	int rc;

	if (attr == NULL || agent_id == NULL)
		return EINVAL;
	if (attr->mgmt_class >= 0x30 && attr->mgmt_class <= 0x4f &&
	    ((attr->oui & 0xffffff) == 0 || (attr->oui & 0xff000000) != 0))
		return EINVAL;
	/* As the kernel does, tell what is supported. */
	if ((attr->flags & ~(uint32_t)UMAD_USER_RMPP) != 0) {
		attr->flags = UMAD_USER_RMPP;
		return EINVAL;
	}
	r = (struct ur_umad_register){.mgmt_class = attr->mgmt_class,
				      .class_version = attr->mgmt_class_version,
				      .rmpp_version = attr->rmpp_version,
				      .user_rmpp = (attr->flags & UMAD_USER_RMPP) != 0,
				      .methods = {attr->method_mask[0], attr->method_mask[1]},
				      .oui = attr->oui};
	rc = register_agent(fd, &r);
	if (rc < 0)
		return -rc;
	*agent_id = (uint32_t)rc;
	return 0;
}

int umad_unregister(int fd, int agentid)
{
	const struct ur_umad_unregister u = {.kind = UR_UMAD_UNREGISTER,
					     .agent = (uint32_t)agentid};
	int rc = ur_umad_ask(fd, &u, sizeof(u));

	if (rc < 0)
		errno = -rc;
	return rc < 0 ? -1 : 0;
}

int umad_send(int fd, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *user = umad;
	struct ur_umad_mad head = {.kind = UR_UMAD_MAD, .length = (uint32_t)length};
	int rc;

	user->timeout_ms = (uint32_t)timeout_ms;
	user->retries = (uint32_t)retries;
	user->agent_id = (uint32_t)agentid;
	if (ur_umad_debug_level > 1)
		umad_dump(umad);
	if (agentid < 0 || agentid >= UR_UMAD_AGENTS || length < UR_UMAD_MIN_BYTES ||
	    length > (int)UR_UMAD_MAX_BYTES) {
		errno = EINVAL;
		return -EIO;
	}
	memcpy(&head.umad, user, sizeof(head.umad));
	rc = ur_umad_send_mad(fd, &head, user->data, 0);
	errno = -rc;
	return rc < 0 ? -EIO : 0;
}

int umad_poll(int fd, int timeout_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int n = poll(&ready, 1, timeout_ms);

	if (n == 0)
		return -ETIMEDOUT;
	return n == 1 ? 0 : -EIO;
}

/* Takes the next message, for which the caller has looked that it fits; 0, or a negative errno. */
static int take_message(int fd, struct ib_user_mad *user, size_t room)
{
	struct ur_umad_mad head;
	int memfd, rc = 0;
	ssize_t n = ur_umad_receive(fd, &head, sizeof(head), user->data, room, &memfd, 0);

	if (n < (ssize_t)sizeof(head))
		rc = n < 0 ? (int)n : -EIO;
	else if (head.length > room)
		rc = -ENOSPC; /* another thread took what the caller saw */
	else if (memfd >= 0)
		rc = ur_umad_read_rest(memfd, user->data, (size_t)n - sizeof(head), head.length);
	if (memfd >= 0)
		close(memfd);
	if (rc == 0)
		memcpy(user, &head.umad, sizeof(head.umad));
	return rc;
}

/*
 * A message that is longer than the program's room stays where it is; the program gets its beginning and its length, and
 * calls again. That is how the kernel delivers an RMPP response. UMAD-RECV-01
 */
static int receive(int fd, struct ib_user_mad *user, int *length, int flags)
{
	struct ur_umad_mad head;
	struct iovec iov[2] = {{.iov_base = &head, .iov_len = sizeof(head)},
			       {.iov_base = user->data, .iov_len = UR_UMAD_MAD_BYTES}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	size_t room = *length < 0 ? 0 : (size_t)*length;
	ssize_t n;
	int rc;

	if (room < UR_UMAD_MAD_BYTES)
		iov[1].iov_len = room;
	n = recvmsg(fd, &msg, MSG_PEEK | flags);
	if (n < 0)
		return -errno;
	if (n < (ssize_t)sizeof(head) || head.kind != UR_UMAD_MAD) {
		usleep(RETRY_PAUSE_US);
		return -EIO;
	}
	*length = (int)head.length;
	if (head.length > room) {
		memcpy(user, &head.umad, sizeof(head.umad));
		return -ENOSPC;
	}
	rc = take_message(fd, user, room);
	return rc < 0 ? rc : (int)user->agent_id;
}

int umad_recv(int fd, void *umad, int *length, int timeout_ms)
{
	int rc;

	if (umad == NULL || length == NULL) {
		errno = EINVAL;
		return -EINVAL;
	}
	errno = 0;
	if (timeout_ms != 0) {
		rc = umad_poll(fd, timeout_ms);
		if (rc < 0) {
			if (errno == 0)
				errno = -rc;
			return rc;
		}
	}
	rc = receive(fd, umad, length, MSG_DONTWAIT);
	if (rc < 0)
		errno = -rc;
	else
		ur_umad_debug(1, "fd %d: MAD of %d bytes for agent %d", fd, *length, rc);
	return rc;
}
